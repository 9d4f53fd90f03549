//! What went wrong between the host and PostgreSQL, told apart by SQLSTATE.

use std::time::Duration;

use thiserror::Error;

use crate::error::{Class, Code, Exit, Failure};

use super::migrate::{DENIED, READ_ONLY, UNMIGRATED};

/// Code of a database that cannot be used.
pub const UNAVAILABLE: Code = Code(201);

/// Code of a database that cannot hold every text.
pub const OTHER_ENCODING: Code = Code(112);

/// A failed step on a database. The text never holds the connection URL.
#[derive(Debug, Error)]
pub enum Error {
    /// No session could be opened.
    #[error("cannot connect to the {database} database: {reason}")]
    Connect {
        /// Which database, in the user's words: `event store` or `read model`.
        database: &'static str,
        /// What the server or the network said.
        reason: String,
        /// SQLSTATE, when the server answered.
        sqlstate: Option<String>,
    },
    /// The server did not answer in time; the connection was dropped.
    #[error("no answer from the {database} database within {limit:?}")]
    TimedOut {
        /// Which database.
        database: &'static str,
        /// The bound that ran out.
        limit: Duration,
    },
    /// The database, or the way to it, is not what the host can work with, until a person mends it.
    #[error("{message}")]
    Unfit {
        /// The page that explains it.
        code: Code,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// The connection broke.
    #[error("lost the connection to the database: {0}")]
    Lost(String),
    /// The server refused a statement.
    #[error("{message} (SQLSTATE {sqlstate})")]
    Statement {
        /// Five characters.
        sqlstate: String,
        /// The server's message, with its detail when there is one.
        message: String,
        /// Table named by the server.
        table: Option<String>,
        /// Column named by the server.
        column: Option<String>,
        /// Constraint named by the server.
        constraint: Option<String>,
    },
    /// Something else that the driver reports, such as a value that could not be decoded.
    #[error("{0}")]
    Driver(String),
}

impl Error {
    /// SQLSTATE, when the server gave one.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match self {
            Self::Connect { sqlstate, .. } => sqlstate.as_deref(),
            Self::Statement { sqlstate, .. } => Some(sqlstate),
            _ => None,
        }
    }

    /// Whether it is the database's state, and not the statement's content, that failed it.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            // Nobody's event: whoever mends the database, it is waited for.
            Self::Connect { .. } | Self::TimedOut { .. } | Self::Lost(_) | Self::Unfit { .. } => {
                Class::Transient
            }
            Self::Statement { sqlstate, .. } => class_of_sqlstate(sqlstate),
            Self::Driver(_) => Class::Fatal,
        }
    }

    /// Whether the database could not be used at all: unreachable, refused, missing.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Connect { .. } | Self::TimedOut { .. } | Self::Lost(_)
        ) || self
            .sqlstate()
            .is_some_and(|s| s.starts_with("57P") || s.starts_with("08"))
    }
}

/// How a command ends with it. All that commands ask for are the host's own tables, so one that is not there
/// means that nobody has migrated yet.
impl From<&Error> for Failure {
    fn from(error: &Error) -> Self {
        if let Error::Unfit { code, message } = error {
            return Self::coded(Exit::Config, *code, message.clone());
        }
        match error.sqlstate() {
            Some("42501") => Self::coded(
                Exit::Config,
                DENIED,
                format!("{error}; grant this role what `projector-host explain {DENIED}` lists"),
            ),
            Some("25006") => Self::coded(Exit::Config, READ_ONLY, error.to_string()),
            Some("42P01" | "3F000" | "42703" | "42883") => Self::coded(
                Exit::Config,
                UNMIGRATED,
                format!("{error}; run `projector-host migrate up`"),
            ),
            _ if error.is_unavailable() => {
                Self::coded(Exit::Unavailable, UNAVAILABLE, error.to_string())
            }
            _ => Self::new(Exit::Failed, error.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

/// Classes after the SQLSTATE list of PostgreSQL (appendix A of its manual).
fn class_of_sqlstate(sqlstate: &str) -> Class {
    match sqlstate {
        // Privileges, missing objects and read-only servers wait for a person but are nobody's event.
        "42501" | "42P01" | "3F000" | "42703" | "42883" | "25006" => Class::Transient,
        // A statement that cannot be parsed is a bug of the host; trying again would hide it.
        "42601" => Class::Fatal,
        // A value that a column or a constraint refuses.
        _ if sqlstate.starts_with("22")
            || sqlstate.starts_with("23")
            || sqlstate.starts_with("54") =>
        {
            Class::Poison
        }
        _ => Class::Transient,
    }
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(inner) => {
                let pg = inner.try_downcast_ref::<sqlx::postgres::PgDatabaseError>();
                let detail = pg.and_then(sqlx::postgres::PgDatabaseError::detail);
                let message = match detail {
                    Some(detail) => format!("{} ({detail})", inner.message()),
                    None => inner.message().to_owned(),
                };
                Self::Statement {
                    sqlstate: inner
                        .code()
                        .map_or_else(|| "XX000".to_owned(), |code| code.into_owned()),
                    message,
                    table: inner.table().map(str::to_owned),
                    column: pg
                        .and_then(sqlx::postgres::PgDatabaseError::column)
                        .map(str::to_owned),
                    constraint: inner.constraint().map(str::to_owned),
                }
            }
            sqlx::Error::Io(error) => Self::Lost(error.to_string()),
            sqlx::Error::Tls(error) => Self::Lost(format!("TLS: {error}")),
            sqlx::Error::Protocol(text) => Self::Lost(format!("protocol: {text}")),
            sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
                Self::Lost(error.to_string())
            }
            other => Self::Driver(other.to_string()),
        }
    }
}
