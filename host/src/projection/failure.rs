//! Why a batch did not pass, in the words that people see.

use crate::database::error::Error as DatabaseError;
use crate::error::{Class, Code};
use crate::event_store;
use crate::event_store::event::Event;
use crate::guest::error::{CallError, Category};
use crate::guest::thread::ThreadError;
use crate::read_model::check::Fault;
use crate::read_model::write;

/// Category of a write that is refused before any SQL.
pub const BAD_WRITE: &str = "bad-write";
/// Category of a write that the database refuses.
pub const CONSTRAINT: &str = "constraint";
/// Category of an event that ended the whole process again and again.
pub const CRASH: &str = "crash";
/// Category of a plugin whose file is not the recorded one.
pub const PLUGIN_CHANGED: &str = "plugin-changed";
/// Category of an event store that is not the one that was read before.
pub const STORE_CHANGED: &str = "store-changed";

/// Category of an event that waits behind another one of its stream.
pub const WAITING: &str = "waiting";

/// Why a batch did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What can be done about it.
    pub class: Class,
    /// Whether attempts at a single event are counted.
    pub counted: bool,
    /// A word from a closed set.
    pub category: &'static str,
    /// The event in the batch, where it is known.
    pub event: Option<usize>,
    /// The table of the write that was refused, and its column where that is known.
    pub place: Option<Place>,
    /// What happened, with its code.
    pub message: String,
}

/// Where a write was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The table, as the plugin named it.
    pub table: String,
    /// The column, when it is about one.
    pub column: Option<String>,
}

impl Failure {
    /// A failure of the database's state, tried again without end.
    pub fn transient(message: impl Into<String>) -> Self {
        Self {
            class: Class::Transient,
            counted: false,
            category: "database",
            event: None,
            place: None,
            message: message.into(),
        }
    }

    /// Whether splitting the batch can find an event to blame. A plugin that says `fatal` is asked again with less,
    /// too: what stands before the event is committed, whatever the size of batches.
    #[must_use]
    pub fn is_isolated(&self) -> bool {
        self.class == Class::Poison || self.counted || self.category == Category::Fatal.as_str()
    }
}

impl Place {
    fn of(fault: &Fault) -> Self {
        Self {
            table: fault.table.clone(),
            column: fault.column.clone(),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        Self {
            class: error.class(),
            counted: error.is_counted(),
            category: error.category.as_str(),
            event: error.event,
            place: None,
            message: format!("{}: {error}", error.code()),
        }
    }
}

impl From<Box<Fault>> for Failure {
    fn from(fault: Box<Fault>) -> Self {
        Self {
            class: Class::Poison,
            counted: false,
            category: BAD_WRITE,
            event: Some(fault.event),
            message: fault.to_string(),
            place: Some(Place::of(&fault)),
        }
    }
}

impl From<write::Error> for Failure {
    fn from(error: write::Error) -> Self {
        let category = match &error {
            write::Error::Refused { .. } if error.class() == Class::Poison => CONSTRAINT,
            write::Error::Refused { .. } | write::Error::Changed { .. } => "database",
            write::Error::Fault(_) | write::Error::Encode { .. } => BAD_WRITE,
        };
        let place = match &error {
            write::Error::Fault(fault) => Place::of(fault),
            write::Error::Refused { table, column, .. } => Place {
                table: table.clone(),
                column: column.clone(),
            },
            write::Error::Encode { table, .. } | write::Error::Changed { table } => Place {
                table: table.clone(),
                column: None,
            },
        };
        Self {
            class: error.class(),
            counted: false,
            category,
            event: error.event(),
            place: Some(place),
            message: error.to_string(),
        }
    }
}

impl From<event_store::Error> for Failure {
    fn from(error: event_store::Error) -> Self {
        let (class, category) = match &error {
            event_store::Error::Late { .. } => (Class::Fatal, STORE_CHANGED),
            // The reader notices, too, and ends the term; the next one asks whether the checkpoint fits.
            event_store::Error::OtherStore(_) => (Class::Transient, STORE_CHANGED),
            _ => (error.class(), "database"),
        };
        Self {
            class,
            category,
            ..Self::transient(error.to_string())
        }
    }
}

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Self::transient(error.to_string())
    }
}

impl From<ThreadError> for Failure {
    fn from(error: ThreadError) -> Self {
        Self {
            class: Class::Fatal,
            counted: false,
            category: Category::Bug.as_str(),
            event: None,
            place: None,
            message: format!("{}: {error}", Code(613)),
        }
    }
}

/// What happened to an event, for a person who sees nothing else of it.
#[must_use]
pub fn told(event: &Event, failure: &Failure) -> String {
    if failure.category == CRASH {
        return failure.message.clone();
    }
    format!(
        "{} at position {}: {}",
        event.event_type, event.position, failure.message
    )
}
