//! Why an event or a batch does not pass, in the three classes that the host tells apart.

use std::fmt;

use crate::contract;

/// What the host should do about a [`Failure`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Transient: the same call may succeed later.
    Retry,
    /// Poison: this event cannot pass.
    Rejected,
    /// The projection must stop.
    Fatal,
}

/// Why [`Projection`](crate::Projection) did not handle an event. The SDK adds which event it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    kind: Kind,
    code: String,
    message: String,
}

impl Failure {
    /// This event cannot pass. `code` is a short stable word such as `missing-field`.
    pub fn rejected(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kind::Rejected, code, message)
    }

    /// The same call may succeed later.
    pub fn retry(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kind::Retry, code, message)
    }

    /// The projection must stop.
    pub fn fatal(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Kind::Fatal, code, message)
    }

    /// A required field that the event does not have.
    #[must_use]
    pub fn missing_field(name: &str) -> Self {
        Self::rejected("missing-field", format!("missing field `{name}`"))
    }

    /// A field whose value cannot be used, and why.
    pub fn invalid_field(name: &str, reason: impl fmt::Display) -> Self {
        Self::rejected("invalid-field", format!("field `{name}`: {reason}"))
    }

    /// Which of the three classes it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The short stable word.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// The text for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The contract's form, naming the event at this index of the batch when it is known.
    pub(crate) fn at(self, event: Option<usize>) -> contract::Failure {
        let fault = contract::Fault {
            event: event.and_then(|index| u32::try_from(index).ok()).into(),
            code: self.code.into(),
            message: self.message.into(),
        };
        match self.kind {
            Kind::Retry => contract::Failure::Retry(fault),
            Kind::Rejected => contract::Failure::Rejected(fault),
            Kind::Fatal => contract::Failure::Fatal(fault),
        }
    }

    fn new(kind: Kind, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            kind,
            code: code.into(),
            message: message.into(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Failure {}
