//! Why a schema cannot be used or migrated, with the page and the exit code of each.

use thiserror::Error;

use super::Part;
use crate::database::error::{Error as DatabaseError, UNAVAILABLE};
use crate::database::identifier::Identifier;
use crate::error::{Class, Code, Exit, Failure};

/// Code of a schema without its tables.
pub const UNMIGRATED: Code = Code(202);

/// Code of a server that takes no writes.
pub const READ_ONLY: Code = Code(205);

/// Code of a missing privilege.
pub const DENIED: Code = Code(208);

/// A schema that the host cannot work with, or a database that cannot be asked.
#[derive(Debug, Error)]
pub enum Error {
    /// The database cannot be used at all.
    #[error("{0}")]
    Unavailable(DatabaseError),
    /// Migrations are missing.
    #[error(
        "the {} schema `{schema}` is not migrated ({pending} to apply, from {first:04}); run `projector-host migrate up`",
        .part.as_str()
    )]
    Unmigrated {
        /// Which tables.
        part: Part,
        /// Where.
        schema: Identifier,
        /// How many are missing.
        pending: usize,
        /// The first of them.
        first: i32,
    },
    /// A newer version of the host was here.
    #[error(
        "the {} schema `{schema}` was migrated by a newer version of projector-host: it has migration {found:04}, \
         this version knows {known:04}; use that newer version",
        .part.as_str()
    )]
    Newer {
        /// Which tables.
        part: Part,
        /// Where.
        schema: Identifier,
        /// The newest migration there.
        found: i32,
        /// The newest migration known here.
        known: usize,
    },
    /// The text of an applied migration differs.
    #[error(
        "migration {version:04} ({name}) of the {} schema `{schema}` has another checksum than the one that was applied; \
         use the build that migrated it (`projector-host explain PH0204` has the other way out)",
        .part.as_str()
    )]
    Changed {
        /// Which tables.
        part: Part,
        /// Where.
        schema: Identifier,
        /// Which migration.
        version: i32,
        /// Its name.
        name: String,
    },
    /// The server takes no writes.
    #[error(
        "the server of the {} is read-only (a standby, or default_transaction_read_only is on); use the primary",
        .part.as_str()
    )]
    ReadOnly {
        /// Which tables.
        part: Part,
    },
    /// The database cannot be worked with.
    #[error("{message}")]
    Unfit {
        /// The page that explains it.
        code: Code,
        /// What is wrong.
        message: String,
    },
    /// Another process migrates.
    #[error(
        "another process has been migrating the {} schema `{schema}` for more than {} s; try again when it is done",
        .part.as_str(), super::LOCK_WAIT_MAX.as_secs()
    )]
    Busy {
        /// Which tables.
        part: Part,
        /// Where.
        schema: Identifier,
    },
    /// The role may not do it.
    #[error(
        "{source}; grant this role what `projector-host explain {DENIED}` lists for the {}",
        .part.as_str()
    )]
    Denied {
        /// Which tables.
        part: Part,
        /// What the server said.
        source: Box<DatabaseError>,
    },
    /// A statement failed.
    #[error("migrating the {} schema `{schema}` failed: {source}", .part.as_str())]
    Statement {
        /// Which tables.
        part: Part,
        /// Where.
        schema: Identifier,
        /// What the server said.
        source: Box<DatabaseError>,
    },
}

impl Error {
    /// The page that explains it.
    #[must_use]
    pub const fn code(&self) -> Code {
        match self {
            Self::Unavailable(_) => UNAVAILABLE,
            Self::Unmigrated { .. } => UNMIGRATED,
            Self::Newer { .. } => Code(203),
            Self::Changed { .. } => Code(204),
            Self::ReadOnly { .. } => READ_ONLY,
            Self::Denied { .. } => DENIED,
            Self::Unfit { code, .. } => *code,
            Self::Busy { .. } => Code(206),
            Self::Statement { .. } => Code(207),
        }
    }

    /// How a command ends with it.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Unavailable(_) => Exit::Unavailable,
            Self::Unmigrated { .. }
            | Self::Newer { .. }
            | Self::Changed { .. }
            | Self::ReadOnly { .. }
            | Self::Unfit { .. }
            | Self::Denied { .. } => Exit::Config,
            Self::Busy { .. } => Exit::TryAgain,
            Self::Statement { .. } => Exit::Failed,
        }
    }

    /// Whether the database could not be used at all.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Whether a privilege is missing, which no waiting mends.
    #[must_use]
    pub const fn is_denied(&self) -> bool {
        matches!(self, Self::Denied { .. })
    }

    /// Whether trying again may help.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Unavailable(_) | Self::Busy { .. } | Self::ReadOnly { .. } => Class::Transient,
            Self::Statement { source, .. } => source.class(),
            Self::Unmigrated { .. }
            | Self::Newer { .. }
            | Self::Changed { .. }
            | Self::Unfit { .. }
            | Self::Denied { .. } => Class::Fatal,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::coded(error.exit(), error.code(), error.to_string())
    }
}

/// A database's error in the words of migrations.
pub(super) fn told(target: &super::Target, error: DatabaseError) -> Error {
    if error.is_unavailable() {
        return Error::Unavailable(error);
    }
    if let DatabaseError::Unfit { code, message } = error {
        return Error::Unfit { code, message };
    }
    if error.sqlstate() == Some("25006") {
        return Error::ReadOnly { part: target.part };
    }
    if error.sqlstate() == Some("42501") {
        return Error::Denied {
            part: target.part,
            source: Box::new(error),
        };
    }
    Error::Statement {
        part: target.part,
        schema: target.schema.clone(),
        source: Box::new(error),
    }
}
