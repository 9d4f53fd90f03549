//! `dead-letter retry`: asks the leader to try letters again, and waits for what comes of it if wanted.

use std::time::{Duration, Instant};

use serde_json::json;
use sqlx::postgres::PgConnection;

use super::answer::{letters as shapes, numbers};
use super::{Ids, refused};
use crate::commands::Context;
use crate::commands::control::{actor, known, limited, open};
use crate::commands::run::duration;
use crate::error::{Code, Exit, Failure};
use crate::read_model::control::Control;
use crate::read_model::dead_letter::{Described, Filter, Letters};

/// How often `--wait` looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Letters that did not pass again.
const NOT_PASSED: Code = Code(813);

/// A projection that waits for a person.
const STANDS_STILL: Code = Code(803);

/// Arguments of `dead-letter retry`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    #[command(flatten)]
    ids: Ids,
    /// And everything that waits behind them in their streams, in order, until one does not pass
    #[arg(long)]
    following: bool,
    /// Wait until the leader has tried them; ends with 1 when one did not pass
    #[arg(long)]
    wait: bool,
    /// With `--wait`: give up after this long
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, requires = "wait")]
    timeout: Duration,
}

pub(super) async fn run(args: &Args, context: &Context, letters: &Letters) -> Result<(), Failure> {
    let (control, mut connection) = open(context).await?;
    let actor = actor();
    let retrying = letters.retry(&mut connection, &args.ids.ids, args.following, &actor);
    let done = limited(retrying)
        .await?
        .map_err(|refusal| refused(&refusal, "retried"))?;
    if !args.wait {
        if args.ids.format.is_json() {
            return context.out.json(&json!({
                "requested": shapes(&done.changed),
                "unchanged": shapes(&done.unchanged),
            }));
        }
        let mut text = String::new();
        if !done.changed.is_empty() {
            text += &format!("the leader will try: {}\n", numbers(&done.changed));
        }
        if !done.unchanged.is_empty() {
            text += &format!("asked for or passed before: {}\n", numbers(&done.unchanged));
        }
        return context.out.text(&text);
    }
    let ended = wait(args, letters, &control, &mut connection).await?;
    if args.ids.format.is_json() {
        context
            .out
            .json(&json!({ "dead_letters": shapes(&ended) }))?;
    } else {
        let passed: Vec<Described> = ended
            .iter()
            .filter(|letter| letter.resolved.is_some())
            .cloned()
            .collect();
        if !passed.is_empty() {
            context.out.text(&format!("passed: {}", numbers(&passed)))?;
        }
    }
    let left: Vec<String> = ended
        .iter()
        .filter(|letter| letter.resolved.is_none())
        .map(|letter| format!("dead letter {}: {}", letter.id, letter.message))
        .collect();
    if left.is_empty() {
        return Ok(());
    }
    let message = format!("did not pass: {}", left.join("; "));
    Err(Failure::coded(Exit::Failed, NOT_PASSED, message))
}

/// Until the leader has nothing left to try.
async fn wait(
    args: &Args,
    letters: &Letters,
    control: &Control,
    connection: &mut PgConnection,
) -> Result<Vec<Described>, Failure> {
    let deadline = Instant::now() + args.timeout;
    let ids = &args.ids.ids;
    loop {
        let pending = limited(letters.pending(connection, ids, args.following)).await?;
        let Some((id, name)) = pending else {
            return found(args, letters, connection).await;
        };
        let projection = known(control, connection, &name).await?;
        if matches!(
            projection.state.as_str(),
            "stopped" | "paused" | "no-plugin"
        ) {
            return Err(Failure::coded(
                Exit::Failed,
                STANDS_STILL,
                format!(
                    "the projection {name} is {}; dead letter {id} will be tried when it goes on",
                    projection.state
                ),
            ));
        }
        if Instant::now() >= deadline {
            return Err(Failure::new(
                Exit::Failed,
                format!("time-out: dead letter {id} is still to be tried; the request stays"),
            ));
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// The letters as they stand, with those that stand first in streams of which all were wanted.
async fn found(
    args: &Args,
    letters: &Letters,
    connection: &mut PgConnection,
) -> Result<Vec<Described>, Failure> {
    let ids = &args.ids.ids;
    let list = async |connection: &mut PgConnection, ids: &[i64]| {
        let filter = Filter {
            resolved: true,
            ids: Some(ids),
            ..Filter::default()
        };
        limited(letters.list(connection, filter)).await
    };
    let mut found = list(connection, ids).await?;
    if args.following {
        let firsts = found.iter().filter_map(|letter| letter.first);
        let firsts: Vec<i64> = firsts.filter(|id| !ids.contains(id)).collect();
        found.extend(list(connection, &firsts).await?);
    }
    Ok(found)
}
