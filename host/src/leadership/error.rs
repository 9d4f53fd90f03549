//! What keeps a replica from leading.

use std::time::Duration;

use thiserror::Error;

use crate::database;
use crate::error::{Class, Code, Exit, Failure};

/// A primary that was replaced.
pub const OLD_PRIMARY: Code = Code(412);

/// A failed step of the election.
#[derive(Debug, Error)]
pub enum Error {
    /// A database did not do what was asked.
    #[error(transparent)]
    Database(#[from] database::error::Error),
    /// Leading is forbidden here until somebody acts, or until a standby is promoted.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The session is not the one that won the lock.
    #[error("the lock session changed: {0}")]
    SessionChanged(String),
    /// The lock is not held although it was won.
    #[error("the lock is no longer held by the session that won it")]
    LockGone,
    /// The claim waited for a session that could not be ended.
    #[error("the claim of a term was blocked for {waited:?} by {blockers}")]
    ClaimBlocked {
        /// How long.
        waited: Duration,
        /// Pids and names.
        blockers: String,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(String),
    /// No thread for the election.
    #[error("cannot start the thread of the election: {0}")]
    Thread(std::io::Error),
}

impl Error {
    /// Whether trying again can help.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Database(error) => error.class(),
            Self::Refused(_) | Self::Options(_) | Self::Thread(_) => Class::Fatal,
            Self::SessionChanged(_) | Self::LockGone | Self::ClaimBlocked { .. } => {
                Class::Transient
            }
        }
    }
}

/// A reason not to lead that a person has to deal with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The page that explains it.
    pub code: Code,
    /// How `run` ends when it meets this at its start; `None` when it may pass by itself.
    pub exit: Option<Exit>,
    /// What is wrong and what to do.
    pub message: String,
}

impl Refusal {
    /// A transaction-mode pooler stands before the lock database.
    #[must_use]
    pub fn pooler(database: &str) -> Self {
        Self {
            code: Code(401),
            exit: Some(Exit::Config),
            message: format!(
                "the {database} database is reached through a pooler in transaction mode (or statement mode), where two clients can \
                 both win one lock; give a direct address (or a pooler in session mode) for the lock"
            ),
        }
    }

    /// A server on which locks do not count.
    #[must_use]
    pub fn standby(database: &str, read_only: bool) -> Self {
        let what = if read_only {
            "is read-only"
        } else {
            "is a standby in recovery"
        };
        Self {
            code: Code(402),
            exit: None,
            message: format!(
                "the {database} database {what}; its locks are invisible to the primary, so no replica leads \
                 through it; give the address of the primary, or set [leader] database = \"read_model\""
            ),
        }
    }

    /// One control schema, two keys.
    #[must_use]
    pub fn two_keys(control: &str, own: &str, other: &str, node: &str, host: &str) -> Self {
        Self {
            code: Code(403),
            exit: Some(Exit::Config),
            message: format!(
                "the control schema `{control}` is in use under the lock key {other} by node `{node}` on {host}, but \
                 this replica is configured with {own}; give both the same [leader] key and database, or their own \
                 control schemas"
            ),
        }
    }

    /// The server was replaced by its promoted standby and goes on as if nothing had happened.
    #[must_use]
    pub fn old_primary(what: &str, timeline: &str, seen: &str, control: &str) -> Self {
        Self {
            code: OLD_PRIMARY,
            exit: None,
            message: format!(
                "the {what} is an old primary: it stands on timeline {timeline}, but timeline {seen} was read already; \
                 give the address of the new one; if going back was intended, run DELETE FROM {control}.sources"
            ),
        }
    }

    /// The control schema has not been created.
    #[must_use]
    pub fn unmigrated(control: &str) -> Self {
        Self {
            code: Code(404),
            exit: Some(Exit::Config),
            message: format!(
                "the control schema `{control}` has no leadership table this version can use; run `projector-host migrate up`"
            ),
        }
    }

    /// The same as an error that ends a command.
    #[must_use]
    pub fn to_failure(&self) -> Failure {
        Failure::coded(
            self.exit.unwrap_or(Exit::TryAgain),
            self.code,
            self.message.clone(),
        )
    }
}
