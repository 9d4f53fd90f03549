//! Where log lines go: standard error, as text for people or as JSON for collectors.
//!
//! Must never: write to standard output, which belongs to the answers of commands.

use std::io;

use thiserror::Error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For people who look at them all the time: without date and module.
    Short,
    /// For collectors.
    Json,
}

/// Why logging could not start.
#[derive(Debug, Error)]
pub enum Error {
    /// The filter is malformed.
    #[error("the log filter is malformed: {0}")]
    Filter(#[from] ParseError),
    /// Somebody else set a subscriber before.
    #[error("logging was started twice: {0}")]
    Twice(#[from] TryInitError),
}

/// Starts logging for the whole process; called once, by `commands`.
///
/// # Errors
/// When the filter is malformed or logging runs already.
pub fn init(format: Format, filter: &str, colors: bool) -> Result<(), Error> {
    let filter = EnvFilter::try_new(filter)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    match format {
        Format::Text => lines.with_ansi(colors).finish().try_init()?,
        Format::Short => lines
            .with_ansi(colors)
            .with_target(false)
            .with_timer(tracing_subscriber::fmt::time::uptime())
            .finish()
            .try_init()?,
        Format::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .finish()
            .try_init()?,
    }
    Ok(())
}
