//! `run`: a replica, from start to drain.

use std::time::Duration;

use super::Context;
use crate::app::reload::Reread;
use crate::app::{self, Start};
use crate::error::Failure;

/// Arguments of `run`, which are also those of a command line without a command.
#[derive(Debug, Clone, Default, PartialEq, Eq, clap::Args)]
pub struct Args {
    /// Project until every projection has reached the head that it saw, then end
    #[arg(long)]
    pub until_caught_up: bool,
    /// With --until-caught-up: give up after this long, such as 60s or 5m
    #[arg(long, value_name = "DURATION", requires = "until_caught_up", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// For development: a saved plugin runs at once, its projection begins anew when it changed, plugins are
    /// compiled fast instead of optimised, and log lines are short
    #[arg(long)]
    pub dev: bool,
    /// Address of probes and metrics [env: PROJECTOR_HTTP_LISTEN]
    #[arg(long, value_name = "ADDRESS")]
    pub http_listen: Option<String>,
}

/// Runs a replica.
///
/// # Errors
/// When it cannot start, or ends in another way than it was asked to.
pub async fn run(args: Args, context: Context, reread: Reread) -> Result<(), Failure> {
    let start = Start {
        until_caught_up: args.until_caught_up,
        timeout: args.timeout,
        dev: args.dev,
    };
    app::run(context.config, reread, start).await
}

/// A duration on the command line.
pub(super) fn duration(text: &str) -> Result<Duration, humantime::DurationError> {
    humantime::parse_duration(text)
}
