//! `wait`: until projections have caught up, for tests and deployments.

use std::path::Path;
use std::time::Duration;

use super::Context;
use super::control::{near, unknown};
use super::run::duration;
use crate::app::caught_up::{self, Goal, Reached, Who};
use crate::app::gate::Databases;
use crate::database::session::{Purpose, bounded};
use crate::error::Failure;
use crate::event_store::event::Position;
use crate::read_model::control::Control;
use crate::read_model::dead_letter::Letters;

/// Arguments of `wait`.
#[derive(Debug, Clone, clap::Args)]
#[command(group = clap::ArgGroup::new("goal").required(true))]
pub struct Args {
    /// Which projections; all when none is named. One that has not begun is waited for
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
    let who = if args.names.is_empty() {
        Who::All
    } else {
        misspelt(context, &databases, &args.names).await?;
        Who::Named(args.names)
    };
    let goal = args
        .position
        .map_or(Goal::Head, |position| Goal::Position(Position(position)));
    let reached = caught_up::wait(config, &databases, &who, goal, Some(args.timeout)).await?;
    note(context, &databases, &reached).await;
    Ok(())
}

/// Fails at once for a name that no projection will ever have: it is like one that is there, and neither the
/// configuration nor a plugin file can bring it. Whatever may still begin is waited for.
async fn misspelt(
    context: &Context,
    databases: &Databases,
    names: &[String],
) -> Result<(), Failure> {
    let config = &context.config.config;
    let Ok(mut connection) = databases.read_model.connect(&Purpose::Admin).await else {
        // A database that is down is waited for.
        return Ok(());
    };
    let control = Control::new(config.read_model.control_schema.clone());
    let rows = bounded("read model", ANSWER_TIMEOUT, control.list(&mut connection)).await;
    let rows = rows.unwrap_or_default();
    let known: Vec<String> = rows.into_iter().map(|row| row.name).collect();
    let configured = |name: &str| config.projection.iter().any(|own| own.name == name);
    let missing = names
        .iter()
        .filter(|name| !known.contains(name) && !configured(name));
    let Some(files) = files(&config.plugins.dir) else {
        return Ok(());
    };
    for name in missing {
        // A file may bear another name than its projection.
        let may_come = files.iter().any(|file| !known.contains(file));
        if !may_come && near(name, &known).is_some() {
            return Err(unknown(name, &known));
        }
    }
    Ok(())
}

/// The plugin files without their endings; none when the folder cannot be read here.
fn files(dir: &Path) -> Option<Vec<String>> {
    let entries = std::fs::read_dir(dir).ok()?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let plugins = paths.filter(|path| path.extension().is_some_and(|ending| ending == "wasm"));
    Some(
        plugins
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect(),
    )
}

/// Says what is caught up only because it waits in the dead letters, and what was not waited for.
async fn note(context: &Context, databases: &Databases, reached: &Reached) {
    for name in &reached.off {
        context.out.note(&format!(
            "{name} is switched off and was not waited for: no replica has a plugin file for it"
        ));
    }
    let Ok(mut connection) = databases.read_model.connect(&Purpose::Admin).await else {
        return;
    };
    let letters = Letters::new(context.config.config.read_model.control_schema.clone());
    let counted = bounded(
        "read model",
        ANSWER_TIMEOUT,
        letters.counts(&mut connection),
    )
    .await;
    for count in counted.unwrap_or_default() {
        if reached.done.contains(&count.projection) {
            context.out.note(&format!(
                "{} has {} dead letters and {} parked streams",
                count.projection, count.open, count.parked_streams
            ));
        }
    }
}
