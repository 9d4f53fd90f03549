//! What can go wrong, in sentences that say what to do next.

use std::{io, path::PathBuf, time::Duration};

/// Short for a result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server or a database could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No folder with PostgreSQL's programs anywhere we look.
    #[error(
        "no PostgreSQL server found: install it (on Debian `apt-get install postgresql`, on macOS `brew install \
         postgresql`) or name the folder that holds initdb, postgres and pg_ctl in PROJECTOR_PG_BIN"
    )]
    NotInstalled,

    /// A folder was named, but it lacks the programs.
    #[error("{} has no {missing}: name a folder that holds initdb, postgres and pg_ctl", .folder.display())]
    Incomplete {
        /// The folder that was looked at.
        folder: PathBuf,
        /// The first program that is not there.
        missing: &'static str,
    },

    /// One program is needed and not found beside the server or in PATH.
    #[error("{program} is neither in {} nor in PATH: install PostgreSQL's client programs", .folder.display())]
    ToolMissing {
        /// The program.
        program: String,
        /// The folder of the server's own programs.
        folder: PathBuf,
    },

    /// A program ran and failed.
    #[error("{program} failed ({status}): {output}")]
    ToolFailed {
        /// The program.
        program: String,
        /// Its exit status as text.
        status: String,
        /// What it wrote to standard error, or else to standard output.
        output: String,
    },

    /// PostgreSQL refuses to run as root, and no other account could be had.
    #[error(
        "PostgreSQL refuses to run as root, and there is no account `postgres` or `nobody`: create one, for example \
         with `useradd --system postgres`"
    )]
    NoAccount,

    /// The server ended while it should have started.
    #[error("the PostgreSQL server ended while starting ({status}); the end of its log:\n{log}")]
    EndedEarly {
        /// Its exit status as text.
        status: String,
        /// The last lines of its log.
        log: String,
    },

    /// A bounded wait ran out.
    #[error("the PostgreSQL server did not {what} within {} s; the end of its log:\n{log}", .limit.as_secs())]
    TooSlow {
        /// What was waited for.
        what: &'static str,
        /// The limit.
        limit: Duration,
        /// The last lines of its log.
        log: String,
    },

    /// The server runs already.
    #[error("the PostgreSQL server runs already: stop it before starting it again")]
    Running,

    /// The server is stopped.
    #[error("the PostgreSQL server is stopped: start it again first")]
    Stopped,

    /// The address in [`SERVER_VARIABLE`](crate::SERVER_VARIABLE) cannot be used.
    #[error(
        "PROJECTOR_TEST_SERVER is `{0}`: it must look like postgresql://user@host:port/postgres"
    )]
    BadUrl(String),

    /// The operating system refused something.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried, with the path or program.
        doing: String,
        /// The system's answer.
        source: io::Error,
    },
}

impl Error {
    /// For `map_err`: keeps the system's answer and says what was tried.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }
}
