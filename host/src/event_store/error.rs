//! Why the event store cannot be read.

use thiserror::Error;

use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::error::Class;

use super::event::Position;

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
    /// What was read does not continue what was read before.
    #[error(
        "PH0305: the event store's rows came out of order: position {found} where only positions after {after} can stand"
    )]
    OutOfOrder {
        /// What was found.
        found: Position,
        /// What it does not rise above.
        after: Position,
    },
    /// Events came to stand where a projection had passed already.
    #[error(
        "PH0805: the event store now holds events at positions that were passed before they stood there: {positions}; \
         they were inserted with positions of their own, restored, or changed, and no projection has read them"
    )]
    Late {
        /// Where, as text.
        positions: String,
    },
    /// Not everything that is in the store can be seen.
    #[error("PH0306: events of {table} may be hidden from this reader: {why}; {remedy}")]
    Hidden {
        /// The table.
        table: String,
        /// What hides them.
        why: String,
        /// What mends it.
        remedy: String,
    },
    /// The reader has ended.
    #[error("the event store's reader has ended")]
    Ended,
}

impl Error {
    pub(super) fn late(positions: &[Position]) -> Self {
        let texts: Vec<String> = positions.iter().map(Position::to_string).collect();
        Self::Late {
            positions: texts.join(", "),
        }
    }

    pub(super) fn out_of_order(found: Position, after: Position) -> Self {
        Self::OutOfOrder { found, after }
    }

    /// Whether trying again may help.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Database(_) | Self::Standby | Self::OutOfOrder { .. } | Self::Ended => {
                Class::Transient
            }
            Self::NoTable(_)
            | Self::UnsafeSequence { .. }
            | Self::OtherStore(_)
            | Self::Late { .. }
            | Self::Hidden { .. } => Class::Fatal,
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
