//! Why the event store cannot be read.

use thiserror::Error;

use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::error::Class;

/// A failed read, or a store that cannot be read safely.
#[derive(Debug, Clone, Error)]
pub enum Error {
    /// The database did not answer as it should.
    #[error("event store: {0}")]
    Database(String),
    /// There is no events table.
    #[error(
        "PH0301: the event store has no table {0}.events; run `projector-host migrate up`, or set [event_store] schema"
    )]
    NoTable(Identifier),
    /// Numbers may be drawn long before they are used.
    #[error(
        "PH0302: the sequence of {table} cannot be read without losing events: {why}; run `{remedy}`"
    )]
    UnsafeSequence {
        /// The table.
        table: String,
        /// Which setting.
        why: String,
        /// The statement that mends it.
        remedy: String,
    },
    /// A standby shows no locks of the primary's writers.
    #[error(
        "PH0303: the event store's server is a standby, where open writers cannot be seen; connect to the primary"
    )]
    Standby,
    /// The store is another one, or an older copy.
    #[error(
        "PH0304: the event store is not the one that was read before ({0}); checkpoints do not fit it"
    )]
    OtherStore(String),
    /// The reader has ended.
    #[error("the event store's reader has ended")]
    Ended,
}

impl Error {
    /// Whether trying again may help.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Database(_) | Self::Standby | Self::Ended => Class::Transient,
            Self::NoTable(_) | Self::UnsafeSequence { .. } | Self::OtherStore(_) => Class::Fatal,
        }
    }
}

impl From<DatabaseError> for Error {
    fn from(error: DatabaseError) -> Self {
        Self::Database(error.to_string())
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        DatabaseError::from(error).into()
    }
}
