//! Waiting until projections have reached a position. Reads the control tables only, so it does not matter
//! which replica does the work.

pub mod members;

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;

use crate::config::Config;
use crate::database::error::Error as DatabaseError;
use crate::database::session::{Purpose, bounded};
use crate::error::{Code, Exit, Failure};
use crate::event_store::event::Position;
use crate::event_store::inspect;
use crate::event_store::layout::Layout;
use crate::projection::progress::State;
use crate::projection::verdict::{File, Verdict};
use crate::read_model::control::Control;

use super::gate::Databases;
use members::Member;

/// How often the control tables are looked at: after a twentieth of the wait so far, within these bounds, so that a short
/// wait is not told late and a long one does not ask often.
const LOOK_INTERVAL_MIN: Duration = Duration::from_millis(5);
const LOOK_INTERVAL_MAX: Duration = Duration::from_millis(50);

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Wait before a database that failed is tried again.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// A projection that waits for a person.
const STANDS_STILL: Code = Code(803);

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The head, as it is when the waiting begins.
    Head,
    /// This position.
    Position(Position),
}

/// Who is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// Everybody, and somebody at least.
    All,
    /// These, also when they have not begun.
    Named(Vec<String>),
    /// Everybody that is recorded, and these, for which this replica has a file.
    Own(Vec<String>),
}

/// What the waiting came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reached {
    /// Those that are done.
    pub done: Vec<String>,
    /// Those that were not waited for, since no replica has a file for them.
    pub off: Vec<String>,
}

/// Waits until all these projections have reached the goal.
///
/// # Errors
/// When one of them is stopped or paused, or the time is over; the text names those that are missing.
pub async fn wait(
    config: &Config,
    databases: &Databases,
    who: &Who,
    goal: Goal,
    timeout: Option<Duration>,
) -> Result<Reached, Failure> {
    let begun = Instant::now();
    let deadline = timeout.map(|timeout| begun + timeout);
    let control = Control::new(config.read_model.control_schema.clone());
    let layout = Layout::Projector {
        schema: config.event_store.schema.clone(),
    };
    let mut target: Option<Position> = None;
    let mut session: Option<PgConnection> = None;
    loop {
        let looked = async {
            if target.is_none() {
                target = Some(match goal {
                    Goal::Position(position) => position,
                    Goal::Head => head(databases, &layout).await?,
                });
            }
            let mut connection = match session.take() {
                Some(connection) => connection,
                None => databases.read_model.connect(&Purpose::Admin).await?,
            };
            let asking = members::ask(&mut connection, &control);
            let members = bounded("read model", ANSWER_TIMEOUT, asking).await?;
            session = Some(connection);
            // Asked after the checkpoints: whoever stands beyond it has read another store.
            let farthest = members.iter().map(|member| member.stand.position).max();
            let end = match farthest {
                Some(farthest) if farthest > target.unwrap_or_default() => {
                    head(databases, &layout).await?
                }
                _ => target.unwrap_or_default(),
            };
            Ok::<_, DatabaseError>((members, end))
        };
        let (last, wait) = match looked.await {
            Ok((members, end)) => match judge(members, who, target.unwrap_or_default(), end) {
                Judged::Done(reached) => return Ok(reached),
                Judged::Never(failure) => return Err(failure),
                Judged::NotYet(missing) => (
                    Failure::new(Exit::Failed, format!("time-out: {missing}")),
                    (begun.elapsed() / 20).clamp(LOOK_INTERVAL_MIN, LOOK_INTERVAL_MAX),
                ),
            },
            Err(error) => (Failure::from(error), RETRY_INTERVAL),
        };
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(last);
        }
        tokio::time::sleep(wait).await;
    }
}

async fn head(databases: &Databases, layout: &Layout) -> Result<Position, DatabaseError> {
    let mut connection = databases.event_store.connect(&Purpose::Admin).await?;
    match tokio::time::timeout(ANSWER_TIMEOUT, inspect::head(&mut connection, layout)).await {
        Ok(head) => head.map_err(|error| DatabaseError::Driver(error.to_string())),
        Err(_) => Err(DatabaseError::TimedOut {
            database: "event store",
            limit: ANSWER_TIMEOUT,
        }),
    }
}

#[derive(Debug)]
enum Judged {
    Done(Reached),
    NotYet(String),
    Never(Failure),
}

/// What members have reached of the target. The store ends at `end`, or beyond, where nobody stands beyond it.
fn judge(mut all: Vec<Member>, who: &Who, target: Position, end: Position) -> Judged {
    let mut missing = Vec::new();
    let mut reached = Reached::default();
    if let Who::Named(names) | Who::Own(names) = who {
        let absent = |name: &&String| !all.iter().any(|member| member.name == **name);
        let absent = names.iter().filter(absent);
        missing.extend(absent.map(|name| format!("{name} has not begun")));
    }
    match who {
        Who::All if all.is_empty() => {
            return Judged::NotYet(
                "there is no projection to wait for, since no replica has led with this control schema yet"
                    .to_owned(),
            );
        }
        Who::All => {}
        Who::Named(names) => all.retain(|member| names.contains(&member.name)),
        Who::Own(names) => {
            all.retain(|member| member.recorded || names.contains(&member.name));
            // Other replicas need not have heard of these files yet.
            for member in all.iter_mut().filter(|one| names.contains(&one.name)) {
                member.stand.file = File::Good;
            }
        }
    }
    for member in all {
        match member.stand.verdict(target) {
            Verdict::Done if member.stand.position > end.max(target) => missing.push(format!(
                "{} stands at position {}, but the event store ends at {end}: it is not the one that was read",
                member.name, member.stand.position
            )),
            Verdict::Done => reached.done.push(member.name),
            Verdict::Off if !matches!(who, Who::Named(_)) => reached.off.push(member.name),
            // Who asks for it by name does not want to hear that it was left out.
            Verdict::Off | Verdict::StandsStill => return Judged::Never(stands_still(&member)),
            Verdict::Behind => missing.push(behind(&member, target)),
        }
    }
    if missing.is_empty() {
        Judged::Done(reached)
    } else {
        Judged::NotYet(missing.join(", "))
    }
}

fn stands_still(member: &Member) -> Failure {
    let why = member.why.as_ref().map(|why| format!(": {why}"));
    Failure::coded(
        Exit::Failed,
        STANDS_STILL,
        format!(
            "the projection {} is {} at position {}{}",
            member.name,
            member.stand.state.map_or("unknown", State::as_str),
            member.stand.position,
            why.unwrap_or_default()
        ),
    )
}

fn behind(member: &Member, target: Position) -> String {
    let name = &member.name;
    match (&member.why, member.stand.state) {
        _ if member.recorded => format!("{name} stands at {} of {target}", member.stand.position),
        (Some(why), _) => format!("{name} cannot begin yet: {why}"),
        (None, _) => format!("{name} has not begun"),
    }
}

#[cfg(test)]
mod tests;
