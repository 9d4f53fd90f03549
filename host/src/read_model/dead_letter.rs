//! Dead letters and parked streams, as a leader writes and reads them.
//!
//! Promises: a letter commits with the checkpoint that passes its event, never before and never after; a stream
//! is released in the transaction that resolves its last letter. Must never: hold an event's payload, which
//! stays in the event store.

mod request;
mod retry;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use crate::database::error::Error;
use crate::database::template::render;
use crate::event_store::event::{Event, Position};

use super::checkpoint::{Checkpoints, GenerationKey};

pub use request::{Count, Described, Done, Filter, Letters, Refusal};
pub use retry::{Due, Outcome, RETRIED};

/// Streams that one projection may have waiting; with one more, the policy is `stop`.
pub const PARKED_STREAMS_MAX: usize = 100_000;

/// An event that goes to the dead letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// Where it stands.
    pub position: Position,
    /// Its stream.
    pub stream: String,
    /// Its identifier.
    pub event_id: String,
    /// Its type.
    pub event_type: String,
    /// A word from a closed set.
    pub category: &'static str,
    /// What happened.
    pub message: String,
    /// Table of the write that was refused.
    pub table: Option<String>,
    /// Its column.
    pub column: Option<String>,
    /// Whether later events of its stream wait behind it.
    pub parked: bool,
    /// Attempts that were made at it; 0 for an event that only waits.
    pub attempts: i32,
}

impl Letter {
    /// A letter of this event.
    #[must_use]
    pub fn new(event: &Event, category: &'static str, message: String, parked: bool) -> Self {
        Self {
            position: event.position,
            stream: event.stream.clone(),
            event_id: event.id.clone(),
            event_type: event.event_type.clone(),
            category,
            // PostgreSQL has no such character.
            message: message.replace('\0', "\u{fffd}"),
            table: None,
            column: None,
            parked,
            attempts: 0,
        }
    }
}

/// Writes letters, and parks the streams of those that others wait behind. Part of a batch's transaction, after
/// its checkpoint.
///
/// # Errors
/// When the database does not take a statement.
pub async fn insert(
    connection: &mut PgConnection,
    checkpoints: &Checkpoints,
    key: &GenerationKey,
    letters: &[Letter],
) -> Result<(), Error> {
    if letters.is_empty() {
        return Ok(());
    }
    let texts = |pick: fn(&Letter) -> &str| -> Vec<&str> { letters.iter().map(pick).collect() };
    let maybe = |pick: fn(&Letter) -> Option<&str>| -> Vec<Option<&str>> {
        letters.iter().map(pick).collect()
    };
    let positions: Vec<i64> = letters.iter().map(|letter| letter.position.0).collect();
    let parked: Vec<bool> = letters.iter().map(|letter| letter.parked).collect();
    let attempts: Vec<i32> = letters.iter().map(|letter| letter.attempts).collect();
    sqlx::query(sql(checkpoints, include_str!("dead_letter/sql/insert.sql")))
        .bind(&key.projection)
        .bind(key.generation)
        .bind(positions)
        .bind(texts(|letter| &letter.stream))
        .bind(texts(|letter| &letter.event_id))
        .bind(texts(|letter| &letter.event_type))
        .bind(texts(|letter| letter.category))
        .bind(texts(|letter| &letter.message))
        .bind(maybe(|letter| letter.table.as_deref()))
        .bind(maybe(|letter| letter.column.as_deref()))
        .bind(parked)
        .bind(attempts)
        .execute(&mut *connection)
        .await?;
    let heads = || {
        letters
            .iter()
            .filter(|letter| letter.parked && letter.attempts > 0)
    };
    if heads().next().is_none() {
        return Ok(());
    }
    let streams: Vec<&str> = heads().map(|letter| letter.stream.as_str()).collect();
    let positions: Vec<i64> = heads().map(|letter| letter.position.0).collect();
    sqlx::query(sql(checkpoints, include_str!("dead_letter/sql/park.sql")))
        .bind(&key.projection)
        .bind(key.generation)
        .bind(streams)
        .bind(positions)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// The streams that wait, at most one more than there may be.
///
/// # Errors
/// When the table cannot be read.
pub async fn parked(
    connection: &mut PgConnection,
    checkpoints: &Checkpoints,
    key: &GenerationKey,
) -> Result<Vec<String>, Error> {
    let rows = sqlx::query(sql(checkpoints, include_str!("dead_letter/sql/parked.sql")))
        .bind(&key.projection)
        .bind(key.generation)
        .bind(i64::try_from(PARKED_STREAMS_MAX + 1).unwrap_or(i64::MAX))
        .fetch_all(connection)
        .await?;
    Ok(rows
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?)
}

fn sql(checkpoints: &Checkpoints, template: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(render(template, &[("control", checkpoints.control())]))
}
