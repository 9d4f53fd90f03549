//! What a reader that runs looks for once a second: whether something happened to the store that no look after the
//! mark can see.
//!
//! Rows are added behind the last ones of the table's file. So a row that is new there but has an old position
//! came late: somebody inserted it with a position of his own, restored it, or changed an event. A sequence that
//! stands behind the table will give numbers below the mark. A partition that is gone took its events along.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use sqlx::Row as _;
use sqlx::SqlStr;
use sqlx::postgres::PgConnection;
use sqlx::postgres::types::Oid;

use crate::event_store::error::Error;
use crate::event_store::event::Position;
use crate::event_store::preflight::Sequence;

/// How often it is looked for.
const INTERVAL: Duration = Duration::from_secs(1);

/// Behind the last page of any table: nothing stands there.
const NO_PAGE: &str = "(4294967294,0)";

/// What was seen last.
#[derive(Debug)]
pub(super) struct Edits {
    table: Oid,
    sequence: Sequence,
    due: Instant,
    before: Option<Seen>,
}

/// The end of the table's file, as it was.
#[derive(Debug)]
struct Seen {
    /// The file; another one when the table was rewritten.
    file: Option<i64>,
    /// First of the last pages.
    page: String,
    settled: Position,
    /// Settled positions on the last pages.
    positions: HashSet<i64>,
    partitions: Vec<Oid>,
}

impl Edits {
    pub(super) fn new(table: Oid, sequence: Sequence) -> Self {
        Self {
            table,
            sequence,
            due: Instant::now(),
            before: None,
        }
    }

    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// The positions of events that came late. `settled` was settled before this is called.
    pub(super) async fn look(
        &mut self,
        connection: &mut PgConnection,
        statement: &SqlStr,
        settled: Position,
    ) -> Result<Vec<Position>, Error> {
        let before = self.before.as_ref();
        let row = sqlx::query(statement.clone())
            .bind(self.table)
            .bind(before.map_or(NO_PAGE, |before| &before.page))
            .bind(before.map_or(0, |before| before.settled.0))
            .bind(settled.0)
            .fetch_one(connection)
            .await?;
        self.due = Instant::now() + INTERVAL;
        let head = Position(row.try_get(4)?);
        let drawn: Option<i64> = row.try_get(5)?;
        self.sequence.reaches(drawn.map(Position), head)?;
        let now = Seen {
            file: row.try_get(0)?,
            page: row.try_get(1)?,
            settled,
            positions: row.try_get::<Vec<i64>, _>(3)?.into_iter().collect(),
            partitions: row.try_get(6)?,
        };
        let found: Vec<i64> = row.try_get(2)?;
        let Some(before) = self.before.replace(now) else {
            return Ok(Vec::new());
        };
        let now = self.before.as_ref().map(|now| (now.file, &now.partitions));
        let lost =
            |partition: &&Oid| now.is_some_and(|(_, partitions)| !partitions.contains(partition));
        if let Some(lost) = before.partitions.iter().find(lost) {
            return Err(Error::OtherStore(format!(
                "the partition with the object identifier {} is no part of the table any more",
                lost.0
            )));
        }
        if now.is_some_and(|(file, _)| file != before.file) {
            // Rewritten as a whole: every row has another place.
            return Ok(Vec::new());
        }
        let mut late: Vec<Position> = found
            .into_iter()
            .filter(|position| !before.positions.contains(position))
            .map(Position)
            .collect();
        late.sort_unstable();
        Ok(late)
    }
}
