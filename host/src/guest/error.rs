//! How a call of a plugin failed: the category, whom it is blamed on, and a text for the plugin's author.

use std::fmt;

use thiserror::Error;

use crate::error::{Class, Code};

/// What kind of failure ended a call. The words stand in logs, metrics and control tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    /// The guest says that an event cannot pass.
    Rejected,
    /// The guest asks to be called again later.
    Retry,
    /// The guest says that its projection must stop.
    Fatal,
    /// An instruction could not be executed, most often a panic of the plugin's code.
    Trap,
    /// The instruction budget is used up.
    Fuel,
    /// More memory, tables or instances than allowed.
    Memory,
    /// The call stack is used up.
    Stack,
    /// Too much, or something malformed, came back.
    Output,
    /// The wall-clock limit is over.
    Timeout,
    /// More look-ups than one batch may make.
    LookupLimit,
    /// A look-up could not be answered by the database.
    Lookup,
    /// The machine could not give the memory for an instance.
    Host,
    /// The host itself is at fault.
    Bug,
}

impl Category {
    /// All of them, for labels and documentation.
    pub const ALL: [Self; 13] = [
        Self::Rejected,
        Self::Retry,
        Self::Fatal,
        Self::Trap,
        Self::Fuel,
        Self::Memory,
        Self::Stack,
        Self::Output,
        Self::Timeout,
        Self::LookupLimit,
        Self::Lookup,
        Self::Host,
        Self::Bug,
    ];

    /// The word for logs, metrics and control tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rejected => "rejected",
            Self::Retry => "retry",
            Self::Fatal => "fatal",
            Self::Trap => "trap",
            Self::Fuel => "fuel",
            Self::Memory => "memory",
            Self::Stack => "stack",
            Self::Output => "output",
            Self::Timeout => "timeout",
            Self::LookupLimit => "lookup-limit",
            Self::Lookup => "lookup",
            Self::Host => "host",
            Self::Bug => "bug",
        }
    }

    /// What can be done about it.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Self::Rejected
            | Self::Trap
            | Self::Fuel
            | Self::Memory
            | Self::Stack
            | Self::Output
            | Self::LookupLimit => Class::Poison,
            Self::Retry | Self::Timeout | Self::Lookup | Self::Host => Class::Transient,
            Self::Fatal | Self::Bug => Class::Fatal,
        }
    }

    /// Whether attempts are counted: after `attempts_max` of them, for a single event, the error policy
    /// decides. Other transient failures are the database's or the machine's and are tried without end.
    #[must_use]
    pub const fn is_counted(self) -> bool {
        matches!(self, Self::Retry | Self::Timeout)
    }

    /// The page that explains it.
    #[must_use]
    pub const fn code(self) -> Code {
        Code(match self {
            Self::Trap => 601,
            Self::Fuel => 602,
            Self::Memory => 603,
            Self::Stack => 604,
            Self::Output => 605,
            Self::Timeout => 606,
            Self::Rejected => 607,
            Self::Retry => 608,
            Self::Fatal => 609,
            Self::LookupLimit => 610,
            Self::Lookup => 611,
            Self::Host => 612,
            Self::Bug => 613,
        })
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A call that failed. Nothing of its output is left.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct CallError {
    /// What kind of failure it is.
    pub category: Category,
    /// The place in the batch of the event that the guest blames, if it names one.
    pub event: Option<usize>,
    /// What happened, in a sentence or a few lines.
    pub message: String,
}

impl CallError {
    /// A failure that blames no event.
    pub fn new(category: Category, message: impl Into<String>) -> Self {
        Self {
            category,
            event: None,
            message: message.into(),
        }
    }

    /// What can be done about it.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.category.class()
    }

    /// Whether attempts are counted, see [`Category::is_counted`].
    #[must_use]
    pub const fn is_counted(&self) -> bool {
        self.category.is_counted()
    }

    /// The page that explains it.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.category.code()
    }
}
