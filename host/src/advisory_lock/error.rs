//! What goes wrong with a lock, told apart by who has to do what.

use std::time::Duration;

use thiserror::Error;

use crate::database;
use crate::error::{Class, Code, Exit, Failure};
use crate::leadership::Refusal;

/// A failed step of the toolkit.
#[derive(Debug, Error)]
pub enum Error {
    /// A database did not do what was asked.
    #[error(transparent)]
    Database(database::error::Error),
    /// Somebody else holds it, and the wait is over.
    #[error("the lock {key} is held by {holder}{}", after(.waited))]
    Held {
        /// The lock.
        key: String,
        /// Who, as far as it could be found out.
        holder: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The session that held the lock is gone, or in doubt.
    #[error("the lock {key} was lost: {reason}")]
    Lost {
        /// The lock.
        key: String,
        /// What happened to the session.
        reason: String,
    },
    /// The server says that the lock was not held when it was given back.
    #[error("the lock {key} was not held when it was given back")]
    NotHeld {
        /// The lock.
        key: String,
    },
    /// The server has no room for another lock.
    #[error(
        "the server has no room for another lock ({0}); end whoever holds thousands of them, or raise \
         max_locks_per_transaction"
    )]
    Exhausted(String),
    /// Locks do not count on this connection.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// Two names have one key.
    #[error("the lock names {first} and {second} have the same {what} {key}; rename one of them")]
    Collision {
        /// One of the names.
        first: String,
        /// The other.
        second: String,
        /// `key` or `slot class`.
        what: &'static str,
        /// What they share.
        key: String,
    },
    /// A number that cannot be.
    #[error("{0}")]
    Usage(String),
}

fn after(waited: &Duration) -> String {
    if waited.is_zero() {
        String::new()
    } else {
        format!("; waited {}", humantime::format_duration(*waited))
    }
}

impl Error {
    /// Whether trying again can help.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Database(error) => error.class(),
            Self::Held { .. } | Self::Lost { .. } | Self::Exhausted(_) => Class::Transient,
            Self::NotHeld { .. } | Self::Refused(_) | Self::Collision { .. } | Self::Usage(_) => {
                Class::Fatal
            }
        }
    }

    /// The page that explains it.
    #[must_use]
    pub const fn code(&self) -> Option<Code> {
        Some(Code(match self {
            Self::Refused(refusal) => return Some(refusal.code),
            Self::Held { .. } => 406,
            Self::Lost { .. } => 407,
            Self::Exhausted(_) => 408,
            Self::Collision { .. } => 409,
            Self::NotHeld { .. } => 410,
            Self::Database(_) | Self::Usage(_) => return None,
        }))
    }

    /// As the end of a command.
    #[must_use]
    pub fn to_failure(&self) -> Failure {
        let exit = match self {
            Self::Database(error) if error.is_unavailable() => Exit::Unavailable,
            Self::Database(_) => Exit::Failed,
            Self::Held { .. } | Self::Lost { .. } | Self::Exhausted(_) | Self::NotHeld { .. } => {
                Exit::TryAgain
            }
            Self::Refused(refusal) => refusal.exit.unwrap_or(Exit::Config),
            Self::Collision { .. } => Exit::Config,
            Self::Usage(_) => Exit::Usage,
        };
        Failure {
            exit,
            code: self.code(),
            message: self.to_string(),
        }
    }
}

impl From<database::error::Error> for Error {
    fn from(error: database::error::Error) -> Self {
        match error.sqlstate() {
            // `out of shared memory`: for a lock it always means that the lock table is full. New connections
            // need entries too, so it may come while connecting.
            Some("53200") => Self::Exhausted(error.to_string()),
            _ => Self::Database(error),
        }
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        database::error::Error::from(error).into()
    }
}

impl From<crate::leadership::Error> for Error {
    fn from(error: crate::leadership::Error) -> Self {
        match error {
            crate::leadership::Error::Database(error) => error.into(),
            crate::leadership::Error::Refused(refusal) => Self::Refused(refusal),
            other => Self::Usage(other.to_string()),
        }
    }
}
