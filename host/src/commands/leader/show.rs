//! `leader show`: who leads at this moment, by the lock and not by what a table says. With a leader for each projection
//! it shows all of them, unless one is named.

use std::time::Duration;

use serde::Serialize;

use super::Target;
use crate::commands::output::{FormatArg, Output};
use crate::config::Loaded;
use crate::database::error::Error as DatabaseError;
use crate::database::session::{Purpose, bounded};
use crate::error::Failure;
use crate::leadership::holder::{Holder, holder_of, term_of};
use crate::leadership::{Leader, current_leader};
use crate::read_model::control::Control;

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

/// What `-o json` prints when each projection has its own leader: `leader` is that of all, so there is none.
#[derive(Debug, Serialize)]
struct Answers {
    leader: Option<Leader>,
    leaders: Vec<One>,
}

/// One projection and its leader.
#[derive(Debug, Serialize)]
struct One {
    projection: String,
    leader: Option<Leader>,
}

/// Prints the leader of each projection that has begun.
///
/// # Errors
/// When a database fails.
pub async fn all(args: &Args, loaded: &Loaded, out: &Output) -> Result<(), Failure> {
    let config = &loaded.config;
    let database = config.read_model_database()?;
    let control = Control::new(config.read_model.control_schema.clone());
    let listing = async {
        let mut connection = database.connect(&Purpose::Admin).await?;
        bounded::<_, DatabaseError>(database.name, LIMIT, control.list(&mut connection)).await
    };
    let projections = listing.await?;
    let mut leaders = Vec::with_capacity(projections.len());
    for projection in projections {
        let target = Target::of(loaded, Some(&projection.name))?;
        let (_, leader) = look(&target).await?;
        leaders.push(One {
            projection: projection.name,
            leader,
        });
    }
    if args.output.is_json() {
        return out.json(&Answers {
            leader: None,
            leaders,
        });
    }
    let rows = leaders.into_iter().map(|one| match one.leader {
        Some(leader) => vec![
            one.projection,
            leader.node,
            leader.host,
            leader.backend_pid.to_string(),
            leader.term.to_string(),
            format!("{:.0}", leader.since),
        ],
        None => vec![one.projection, "nobody".to_owned()],
    });
    let headings = ["projection", "node", "host", "backend pid", "term", "since"];
    out.table(&headings, rows)
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
    Ok((Some(holder), leader.map(|leader| leader.of(&target.group))))
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
