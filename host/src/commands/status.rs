//! `status`: how far every projection is, and who leads. Works without any replica running.

mod answer;

use std::time::Duration;

use super::Context;
use super::output::{FormatArg, Output, plain};
use crate::app::caught_up::members;
use crate::app::gate::Databases;
use crate::config::{Config, LeaderScope};
use crate::database::session::{Purpose, bounded};
use crate::error::{Exit, Failure};
use crate::event_store::inspect;
use crate::event_store::layout::Layout;
use crate::leadership::current_leader;
use crate::leadership::election::lock_of;
use crate::read_model::control::Control;
use crate::read_model::dead_letter::Letters;
use crate::read_model::folders;

pub use answer::Status;
use answer::{Asked, Leaders};

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
    out.text(&plain::block(&status.leader_line(), 2))?;
    out.table(&status.columns(), status.rows())?;
    for line in status.notes() {
        out.text(&plain::block(&line, 2))?;
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
    let mut model = databases.read_model.connect(&Purpose::Admin).await?;
    let asked = bounded("read model", ANSWER_TIMEOUT, control.list(&mut model)).await;
    let projections = asked?;
    let sources = bounded("read model", ANSWER_TIMEOUT, control.sources(&mut model)).await?;
    let control_schema = &config.read_model.control_schema;
    let asking = folders::list(&mut model, control_schema);
    let folders = bounded("read model", ANSWER_TIMEOUT, asking).await?;
    let letters = Letters::new(config.read_model.control_schema.clone());
    let counts = bounded("read model", ANSWER_TIMEOUT, letters.counts(&mut model)).await?;
    let layout = Layout::Projector {
        schema: config.event_store.schema.clone(),
    };
    let mut store = databases.event_store.connect(&Purpose::Admin).await?;
    let head = inspect::head(&mut store, &layout).await.map_err(failed)?;
    let asking = folders::newest(&mut model, control_schema);
    let newest = bounded("read model", ANSWER_TIMEOUT, asking).await?;
    let members = members::members(&projections, &newest);
    let positions: Vec<_> = members.iter().map(|member| member.stand.position).collect();
    let lags = inspect::lag_seconds(&mut store, &layout, &positions)
        .await
        .map_err(failed)?;
    let mut lock = config.leader_database()?.connect(&Purpose::Admin).await?;
    let leader = &config.leader;
    let mut leaders = Leaders::default();
    match leader.scope {
        LeaderScope::Host => {
            let asking = current_leader(
                &mut lock,
                &mut model,
                leader.key,
                &config.read_model.control_schema,
            );
            leaders.of_all = asking.await.map_err(failed)?;
        }
        LeaderScope::Projection => {
            for projection in &projections {
                let key = lock_of(leader.key, Some(&projection.name));
                let asking = current_leader(
                    &mut lock,
                    &mut model,
                    key,
                    &config.read_model.control_schema,
                );
                let found = asking.await.map_err(failed)?;
                let found = found.map(|found| found.of(&leader.group));
                leaders.of_each.insert(projection.name.clone(), found);
            }
        }
    }
    Ok(Status::new(
        leaders,
        projections,
        Asked {
            source: sources.first(),
            head,
            members: &members,
            lags: &lags,
            letters: &counts,
        },
        folders,
    ))
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}
