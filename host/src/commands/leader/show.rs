//! `leader show`: who leads at this moment, by the lock and not by what a table says.

use std::time::Duration;

use serde::Serialize;

use super::Target;
use crate::commands::output::{FormatArg, Output};
use crate::database::error::Error as DatabaseError;
use crate::database::session::{Purpose, bounded};
use crate::error::Failure;
use crate::leadership::holder::{Holder, holder_of, term_of};
use crate::leadership::{Leader, current_leader};

/// Bound on each look.
const LIMIT: Duration = Duration::from_secs(10);

/// Arguments of `leader show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The projection, with `[leader] scope = "projection"`
    #[arg(long, value_name = "NAME")]
    pub(super) projection: Option<String>,
    #[command(flatten)]
    output: FormatArg,
}

/// What `-o json` prints: the same leader as in `status`.
#[derive(Debug, Serialize)]
struct Answer {
    leader: Option<Leader>,
}

/// Prints the leader.
///
/// # Errors
/// When a database fails.
pub async fn run(args: &Args, target: &Target, out: &Output) -> Result<(), Failure> {
    let (holder, leader) = look(target).await?;
    if args.output.is_json() {
        return out.json(&Answer { leader });
    }
    match (leader, holder) {
        (Some(leader), _) => out.table(
            &["node", "host", "backend pid", "group", "term", "since"],
            [vec![
                leader.node,
                leader.host,
                leader.backend_pid.to_string(),
                leader.group,
                leader.term.to_string(),
                format!("{:.0}", leader.since),
            ]],
        ),
        (None, Some(holder)) => out.text(&format!(
            "nobody leads: the lock {} is held by {}, which has claimed no term here",
            target.key,
            holder.describe()
        )),
        (None, None) => out.text("nobody leads"),
    }
}

/// The session that holds the lock, and its term.
pub(super) async fn look(
    target: &Target,
) -> Result<(Option<Holder>, Option<Leader>), DatabaseError> {
    let mut lock = target.lock_database.connect(&Purpose::Admin).await?;
    let name = target.lock_database.name;
    let Some(holder) = bounded(name, LIMIT, holder_of(&mut lock, target.key)).await? else {
        return Ok((None, None));
    };
    let mut read_model = target.read_model.connect(&Purpose::Admin).await?;
    let term = term_of(&mut read_model, &target.control, holder.backend_pid);
    let leader = bounded(target.read_model.name, LIMIT, term).await?;
    Ok((Some(holder), leader))
}

/// Who leads now; opens its own sessions.
///
/// # Errors
/// When a database fails.
pub async fn leader(target: &Target) -> Result<Option<Leader>, DatabaseError> {
    let mut lock = target.lock_database.connect(&Purpose::Admin).await?;
    let mut read_model = target.read_model.connect(&Purpose::Admin).await?;
    let call = current_leader(&mut lock, &mut read_model, target.key, &target.control);
    bounded(target.read_model.name, LIMIT, call).await
}
