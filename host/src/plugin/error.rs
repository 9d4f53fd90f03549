//! Why a file in the plugin folder is not used.
//!
//! Promises: each message says what is wrong and what to do; the name of the file stands beside it.

use std::path::PathBuf;

use thiserror::Error;

use super::manifest::ManifestFault;
use crate::error::{Class, Code};
use crate::guest::{CallError, LoadError};

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
    #[error("{what} is also claimed by {}; remove one of the two files", .other.display())]
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
        .configured.display()
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
    /// The host's own fault.
    #[error("the host panicked while it loaded this file: {0}; please report it, with the file")]
    Bug(String),
}

impl Error {
    /// The page that explains it.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code(match self {
            Self::Read(_) | Self::TooLarge { .. } => 501,
            Self::Empty | Self::Text | Self::NotWasm | Self::Truncated { .. } => 502,
            Self::Precompiled => 503,
            Self::Invalid(_) => 504,
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
        })
    }

    /// Whether more of the file may still come: it looks like the beginning of something, or like nothing yet.
    #[must_use]
    pub const fn is_incomplete(&self) -> bool {
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
            Self::Read(_) | Self::Folder(_) => Class::Transient,
            _ => Class::Fatal,
        }
    }
}

fn lines(faults: &[ManifestFault]) -> String {
    faults
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
