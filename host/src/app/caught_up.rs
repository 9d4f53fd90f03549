//! Waiting until projections have reached a position. Reads the control tables only, so it does not matter
//! which replica does the work.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;

use crate::config::Config;
use crate::database::error::Error as DatabaseError;
use crate::database::session::{Purpose, bounded};
use crate::error::{Code, Exit, Failure};
use crate::event_store::event::Position;
use crate::event_store::inspect;
use crate::event_store::layout::Layout;
use crate::read_model::control::{Control, Projection};

use super::gate::Databases;

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

/// Waits until all these projections have reached the goal.
///
/// # Errors
/// When one of them is stopped or paused, or the time is over; the text names those that are missing.
pub async fn wait(
    config: &Config,
    databases: &Databases,
    names: &[String],
    goal: Goal,
    timeout: Option<Duration>,
) -> Result<(), Failure> {
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
            let rows = bounded("read model", ANSWER_TIMEOUT, control.list(&mut connection)).await?;
            session = Some(connection);
            Ok::<_, DatabaseError>(rows)
        };
        let (last, wait) = match looked.await {
            Ok(rows) => match judge(&rows, names, target.unwrap_or_default()) {
                Judged::Done => return Ok(()),
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
    Done,
    NotYet(String),
    Never(Failure),
}

fn judge(rows: &[Projection], names: &[String], target: Position) -> Judged {
    let mut missing = Vec::new();
    for name in names {
        let Some(row) = rows.iter().find(|row| row.name == *name) else {
            missing.push(format!("{name} has not begun"));
            continue;
        };
        if row.position >= target {
            continue;
        }
        if matches!(row.state.as_str(), "stopped" | "paused" | "no-plugin") {
            let why = row
                .failure
                .as_ref()
                .map(|failure| format!(": {}", failure.message))
                .unwrap_or_default();
            return Judged::Never(Failure::coded(
                Exit::Failed,
                STANDS_STILL,
                format!(
                    "the projection {name} is {} at position {}{why}",
                    row.state, row.position
                ),
            ));
        }
        missing.push(format!("{name} stands at {} of {target}", row.position));
    }
    if missing.is_empty() {
        Judged::Done
    } else {
        Judged::NotYet(missing.join(", "))
    }
}
