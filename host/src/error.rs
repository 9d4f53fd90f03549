//! What every error of the host can say of itself: its class and, where a user can meet it, its code.
//!
//! Each module has an error enum of its own; this module holds only the words that they share.

use std::fmt;

/// What can be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The same step may succeed later: retried with backoff, never blamed on an event.
    Transient,
    /// This event cannot pass, however often it is tried.
    Poison,
    /// The projection, or the process, has to stop until somebody acts.
    Fatal,
}

impl Class {
    /// The word used in logs, metrics and control tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Poison => "poison",
            Self::Fatal => "fatal",
        }
    }
}

/// The number of a page under `docs/errors/`, printed by `projector-host explain PH0001`.
///
/// Ranges: 01xx configuration, 02xx databases and migrations, 03xx event store, 04xx leadership and locks,
/// 05xx loading plugins, 06xx calling plugins, 07xx read-model writes, 08xx projections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u16);

impl Code {
    /// The code that a text begins with, and the rest.
    #[must_use]
    pub fn split(text: &str) -> Option<(Self, &str)> {
        let (code, rest) = text.split_once(": ")?;
        Some((Self(code.strip_prefix("PH")?.parse().ok()?), rest))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PH{:04}", self.0)
    }
}

/// How the process ends; one table for all commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Failed, or a `--check` found a difference.
    Failed,
    /// Wrong usage of the command line.
    Usage,
    /// A database is unavailable: unreachable, wrong password, missing.
    Unavailable,
    /// A bug in the host.
    Bug,
    /// Try again: a lock is held elsewhere, or leadership is moving.
    TryAgain,
    /// Config, plugin or schema is invalid.
    Config,
    /// The code of a command that ran under a lock.
    Child(u8),
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unavailable => 69,
            Self::Bug => 70,
            Self::TryAgain => 75,
            Self::Config => 78,
            Self::Child(code) => code,
        }
    }
}

/// An error that ends a command: the text for people, the exit code, and the page that explains it.
#[derive(Debug)]
pub struct Failure {
    /// How the process ends.
    pub exit: Exit,
    /// The page that explains it, if there is one.
    pub code: Option<Code>,
    /// What happened, where, and what to do next.
    pub message: String,
}

impl Failure {
    /// A failure without a page of its own.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            code: None,
            message: message.into(),
        }
    }

    /// A failure whose text begins with its code, if it has one: `PH0301: …`.
    #[must_use]
    pub fn from_text(exit: Exit, text: &str) -> Self {
        match Code::split(text) {
            Some((code, rest)) => Self::coded(exit, code, rest),
            None => Self::new(exit, text),
        }
    }

    /// A failure with a page under `docs/errors/`.
    pub fn coded(exit: Exit, code: Code, message: impl Into<String>) -> Self {
        Self {
            exit,
            code: Some(code),
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "{code}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Failure {}
