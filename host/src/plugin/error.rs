//! Why a file in the plugin folder is not used.
//!
//! Promises: each message says what is wrong and what to do; the name of the file stands beside it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::manifest::ManifestFault;
use crate::error::{Class, Code};
use crate::guest::logging::{cut, tidy};
use crate::guest::{CallError, LoadError};
use crate::telemetry::escape::escaped;

/// What another process found wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relayed {
    code: u16,
    message: String,
    is_incomplete: bool,
}

impl Relayed {
    pub(super) fn of(error: &Error) -> Self {
        Self {
            code: error.code().0,
            // Its parts are tidy, and it may have lines.
            message: cut(error.to_string(), RELAYED_BYTES_MAX),
            is_incomplete: error.is_incomplete(),
        }
    }
}

/// Bytes of what a library says.
const REASON_BYTES_MAX: usize = 4096;
/// Bytes of such a message.
const RELAYED_BYTES_MAX: usize = 64 << 10;

/// A plugin that cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// The file system says no.
    #[error("it cannot be read: {0}")]
    Read(#[source] std::io::Error),
    /// Refused before parsing.
    #[error(
        "it has more than {max} bytes, the most that a plugin may have; build it without debug information"
    )]
    TooLarge {
        /// The bound.
        max: u64,
    },
    /// Nothing there.
    #[error("it is empty; was the disk full when it was built? Build or copy it again")]
    Empty,
    /// WebAssembly text, or any text.
    #[error(
        "it is text, not a WebAssembly binary; translate it first, for example with `wasm-tools parse`"
    )]
    Text,
    /// Something else.
    #[error("it is no WebAssembly file; a plugin begins with the bytes `\\0asm`")]
    NotWasm,
    /// The end is missing.
    #[error(
        "it is cut off at byte {at}; copy it again, and let the copy finish under another name before renaming it"
    )]
    Truncated {
        /// Where the bytes end.
        at: u64,
    },
    /// Native code.
    #[error(
        "it is precompiled native code (`.cwasm`), which this host never loads from a plugin folder; put the \
         component itself there, the host keeps compiled code in its own cache"
    )]
    Precompiled,
    /// Malformed, or uses a feature that is off.
    #[error("it is no valid WebAssembly for this host: {0}")]
    Invalid(String),
    /// More of something than a plugin may have.
    #[error(
        "it has {found} or more {what}, and a plugin may have {max}; no compiler makes so many, so it was made by hand, \
         or is damaged"
    )]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much was seen until reading ended.
        found: u64,
        /// The bound.
        max: u64,
    },
    /// A core module that does not say what it is.
    #[error(
        "it is a core module without the section that says which contract it was built for; build it with the \
         projector SDK or `wit-bindgen` against plugins/wit, or as a component (`wasm32-wasip2`). A file whose \
         end is missing looks the same"
    )]
    NoComponentType,
    /// A core module that cannot become a component.
    #[error("it is a core module that cannot be made a component: {0}")]
    Encode(String),
    /// Names or types are not the contract's.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// The compiler says no.
    #[error("it cannot be compiled: {0}")]
    Compile(String),
    /// `describe` failed.
    #[error("it cannot be asked what it is: {0}")]
    Describe(CallError),
    /// `describe` returned nonsense.
    #[error("what it says of itself is wrong: {}", lines(.0))]
    Manifest(Vec<ManifestFault>),
    /// Another plugin has the same name or table.
    #[error("{what} is also claimed by {}; remove one of the two files", shown(.other))]
    Claimed {
        /// What both claim.
        what: String,
        /// The other file.
        other: PathBuf,
    },
    /// Not the bytes that the configuration pins.
    #[error(
        "its sha256 is {found}, but the configuration of `{name}` pins {pinned}; install that build, or change \
         `sha256`"
    )]
    Pin {
        /// The projection.
        name: String,
        /// The digest in the configuration.
        pinned: String,
        /// The digest of the file.
        found: String,
    },
    /// A configured projection without a file.
    #[error(
        "projection `{name}` is configured, but this file does not exist, and no other file of the folder calls itself that"
    )]
    Missing {
        /// The projection.
        name: String,
    },
    /// A configured file that does not exist.
    #[error(
        "the configuration names this file for `{name}`, but it does not exist; put it there, or change `component`"
    )]
    NoComponent {
        /// The projection.
        name: String,
    },
    /// A file that another configured projection has already.
    #[error(
        "the configuration names this file for `{name}`, but it is the file of `{owner}` already, and a file is loaded \
         once: `{name}` does not run; copy the file under another name for it, or remove its `[[projection]]`"
    )]
    Shared {
        /// The projection.
        name: String,
        /// The one that has the file.
        owner: String,
    },
    /// A file that calls itself like a projection whose file is another one.
    #[error(
        "it calls itself `{name}`, but the configured file of `{name}` is {}; remove this file, or change `component`",
        shown(.configured)
    )]
    StandIn {
        /// The projection.
        name: String,
        /// Its file.
        configured: PathBuf,
    },
    /// Two names for one plugin.
    #[error(
        "the configuration calls it `{configured}`, but it calls itself `{described}`; change `name` or `component`"
    )]
    OtherName {
        /// The name in the configuration.
        configured: String,
        /// The name in the manifest.
        described: String,
    },
    /// The folder itself.
    #[error("the plugin folder cannot be read: {0}; create it, or set `[plugins] dir`")]
    Folder(#[source] std::io::Error),
    /// More files than the host looks at.
    #[error("the plugin folder has more than {max} plugin files; the others are not looked at")]
    TooMany {
        /// The bound.
        max: usize,
    },
    /// What the process that loads it found.
    #[error("{}", .0.message)]
    Relayed(Relayed),
    /// No process for it.
    #[error("the process that loads it cannot be started: {0}")]
    Process(#[source] std::io::Error),
    /// It did harm, but only to the process that loads it.
    #[error("the process that loaded it {how}, and said: {said}")]
    Crashed {
        /// How it ended.
        how: String,
        /// What it wrote to standard error.
        said: String,
    },
    /// It costs too much time.
    #[error("loading it takes more than {} s", .max.as_secs())]
    Slow {
        /// The bound.
        max: Duration,
    },
    /// It costs too much memory.
    #[error("loading it takes more than {} MiB of memory", .max >> 20)]
    Starved {
        /// The bound.
        max: u64,
    },
    /// The host's own fault.
    #[error("the host panicked while it loaded this file: {0}; please report it, with the file")]
    Bug(String),
}

impl Error {
    /// What the library says of a file of so many bytes.
    pub(super) fn malformed(error: &wasmparser::Error, bytes: usize) -> Self {
        if error.message().starts_with("unexpected end") {
            return Self::Truncated { at: bytes as u64 };
        }
        Self::Invalid(reason(error))
    }

    /// The page that explains it.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code(match self {
            Self::Read(_) | Self::TooLarge { .. } => 501,
            Self::Empty | Self::Text | Self::NotWasm | Self::Truncated { .. } => 502,
            Self::Precompiled => 503,
            Self::Invalid(_) | Self::Limit { .. } => 504,
            Self::NoComponentType | Self::Encode(_) => 505,
            Self::Load(
                LoadError::OtherWorld { .. }
                | LoadError::HalfAWorld { .. }
                | LoadError::Mismatch(_),
            ) => 506,
            Self::Load(LoadError::ContractVersion { .. }) => 507,
            Self::Load(LoadError::UnknownImports { .. }) => 508,
            Self::Compile(_) | Self::Bug(_) => 509,
            Self::Describe(_) => 510,
            Self::Manifest(_) => 511,
            Self::Claimed { .. } => 512,
            Self::Pin { .. } => 513,
            Self::Missing { .. } | Self::NoComponent { .. } => 514,
            Self::OtherName { .. } => 515,
            Self::Folder(_) | Self::TooMany { .. } => 516,
            Self::StandIn { .. } => 518,
            Self::Shared { .. } => 831,
            Self::Process(_) => 519,
            Self::Crashed { .. } => 520,
            Self::Slow { .. } => 521,
            Self::Starved { .. } => 522,
            Self::Relayed(relayed) => relayed.code,
        })
    }

    /// Whether more of the file may still come: it looks like the beginning of something, or like nothing yet.
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
        if let Self::Relayed(relayed) = self {
            return relayed.is_incomplete;
        }
        matches!(
            self,
            Self::Empty
                | Self::Truncated { .. }
                | Self::Invalid(_)
                | Self::NoComponentType
                | Self::Load(LoadError::OtherWorld { .. } | LoadError::HalfAWorld { .. })
        )
    }

    /// What can be done about it: reading may succeed later, everything else needs somebody.
    #[must_use]
    pub const fn class(&self) -> Class {
        match self {
            Self::Read(_) | Self::Folder(_) | Self::Process(_) => Class::Transient,
            _ => Class::Fatal,
        }
    }
}

/// What a library says, which may have names of the plugin in it.
pub(super) fn reason(error: &dyn std::fmt::Display) -> String {
    tidy(&format!("{error:#}"), REASON_BYTES_MAX)
}

/// A file's name for people.
pub(super) fn shown(file: &Path) -> String {
    escaped(&file.display().to_string()).into_owned()
}

fn lines(faults: &[ManifestFault]) -> String {
    faults
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
