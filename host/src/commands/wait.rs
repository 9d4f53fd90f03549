//! `wait`: until projections have caught up, for tests and deployments.

use std::time::Duration;

use super::Context;
use super::run::duration;
use crate::app::caught_up::{self, Goal};
use crate::app::gate::Databases;
use crate::database::session::{Purpose, bounded};
use crate::error::{Exit, Failure};
use crate::event_store::event::Position;
use crate::read_model::control::Control;

/// Arguments of `wait`.
#[derive(Debug, Clone, clap::Args)]
#[command(group = clap::ArgGroup::new("goal").required(true))]
pub struct Args {
    /// Which projections; all when none is named
    pub names: Vec<String>,
    /// Until they have reached the head as it is now
    #[arg(long, group = "goal")]
    pub until_caught_up: bool,
    /// Until they have reached this position
    #[arg(long, value_name = "POSITION", group = "goal", value_parser = clap::value_parser!(i64).range(0..))]
    pub position: Option<i64>,
    /// Give up after this long
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub timeout: Duration,
}

/// Longest wait for the list of projections.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Waits.
///
/// # Errors
/// When the time is over, or a projection stands still.
pub async fn run(args: Args, context: &Context) -> Result<(), Failure> {
    let config = &context.config.config;
    let databases = Databases::of(config)?;
    let names = if args.names.is_empty() {
        all(context, &databases).await?
    } else {
        args.names
    };
    let goal = args
        .position
        .map_or(Goal::Head, |position| Goal::Position(Position(position)));
    caught_up::wait(config, &databases, &names, goal, Some(args.timeout)).await
}

async fn all(context: &Context, databases: &Databases) -> Result<Vec<String>, Failure> {
    let mut connection = databases.read_model.connect(&Purpose::Admin).await?;
    let control = Control::new(context.config.config.read_model.control_schema.clone());
    let rows = bounded("read model", ANSWER_TIMEOUT, control.list(&mut connection)).await?;
    if rows.is_empty() {
        return Err(Failure::new(
            Exit::Failed,
            "there is no projection to wait for: no replica has led with this control schema yet; name the projections",
        ));
    }
    Ok(rows.into_iter().map(|row| row.name).collect())
}
