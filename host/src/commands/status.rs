//! `status`: how far every projection is, and who leads. Works without any replica running.

mod answer;

use std::time::Duration;

use super::Context;
use super::output::{FormatArg, Output};
use crate::app::gate::{Databases, unavailable};
use crate::config::Config;
use crate::database::error::Error as DatabaseError;
use crate::database::session::{Purpose, bounded};
use crate::error::{Exit, Failure};
use crate::event_store::inspect;
use crate::event_store::layout::Layout;
use crate::leadership::current_leader;
use crate::read_model::control::Control;
use crate::read_model::folders;

pub use answer::Status;

/// Arguments of `status`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Look again and again
    #[arg(long)]
    pub watch: bool,
    /// The form of the answer.
    #[command(flatten)]
    pub format: FormatArg,
}

/// How often `--watch` looks.
const WATCH_INTERVAL: Duration = Duration::from_secs(2);

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Prints how everything stands.
///
/// # Errors
/// When a database cannot be asked.
pub async fn run(args: Args, context: &Context) -> Result<(), Failure> {
    loop {
        let status = ask(&context.config.config).await?;
        print(&status, &args, &context.out)?;
        if !args.watch {
            return Ok(());
        }
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
}

fn print(status: &Status, args: &Args, out: &Output) -> Result<(), Failure> {
    if args.format.is_json() {
        return out.json(status);
    }
    if args.watch && out.is_terminal() {
        // Home, and clear what is below.
        out.text("\u{1b}[H\u{1b}[J")?;
    }
    out.text(&status.leader_line())?;
    out.table(&answer::COLUMNS, status.rows())?;
    for line in status.notes() {
        out.text(&line)?;
    }
    Ok(())
}

/// Asks both databases.
///
/// # Errors
/// When one of them does not answer.
pub async fn ask(config: &Config) -> Result<Status, Failure> {
    let databases = Databases::of(config)?;
    let control = Control::new(config.read_model.control_schema.clone());
    let mut model = databases
        .read_model
        .connect(&Purpose::Admin)
        .await
        .map_err(|error| unavailable(&error))?;
    let asked = bounded("read model", ANSWER_TIMEOUT, control.list(&mut model)).await;
    let projections = asked.map_err(|error| unmigrated(&error))?;
    let sources = bounded("read model", ANSWER_TIMEOUT, control.sources(&mut model))
        .await
        .map_err(|error| unmigrated(&error))?;
    let control_schema = &config.read_model.control_schema;
    let asking = folders::list(&mut model, control_schema);
    let folders = bounded("read model", ANSWER_TIMEOUT, asking)
        .await
        .map_err(|error| unmigrated(&error))?;
    let layout = Layout::Projector {
        schema: config.event_store.schema.clone(),
    };
    let mut store = databases
        .event_store
        .connect(&Purpose::Admin)
        .await
        .map_err(|error| unavailable(&error))?;
    let head = inspect::head(&mut store, &layout).await.map_err(failed)?;
    let positions: Vec<_> = projections
        .iter()
        .map(|projection| projection.position)
        .collect();
    let lags = inspect::lag_seconds(&mut store, &layout, &positions)
        .await
        .map_err(failed)?;
    let mut lock = config
        .leader_database()?
        .connect(&Purpose::Admin)
        .await
        .map_err(|error| unavailable(&error))?;
    let leader = current_leader(
        &mut lock,
        &mut model,
        config.leader.key,
        &config.read_model.control_schema,
    )
    .await
    .map_err(failed)?;
    Ok(Status::new(
        leader,
        projections,
        sources.first(),
        head,
        &lags,
        folders,
    ))
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}

/// A control table that is not there most often means that nobody has migrated yet.
pub(super) fn unmigrated(error: &DatabaseError) -> Failure {
    match error.sqlstate() {
        Some("42P01" | "3F000") => Failure::coded(
            Exit::Config,
            crate::error::Code(202),
            "the control tables are not there; run `projector-host migrate up`",
        ),
        _ => unavailable(error),
    }
}
