//! Events as they come from the database.

use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::database::micros::Micros;

use super::event::{Event, Position};

/// Decodes the columns of `tail.sql` and `below.sql`.
pub(super) fn event(row: &PgRow) -> Result<Event, sqlx::Error> {
    Ok(Event {
        position: Position(row.try_get(0)?),
        id: row.try_get::<uuid::Uuid, _>(1)?.to_string(),
        stream: row.try_get(2)?,
        version: row.try_get(3)?,
        event_type: row.try_get(4)?,
        schema_version: row.try_get(5)?,
        recorded_at: row.try_get::<Micros, _>(6)?.0,
        data: row.try_get(7)?,
        metadata: row
            .try_get::<Option<String>, _>(8)?
            .unwrap_or_else(|| "{}".to_owned()),
    })
}

/// Roughly what an event holds in memory.
pub(super) fn size(event: &Event) -> usize {
    event.data.len()
        + event.metadata.len()
        + event.stream.len()
        + event.event_type.len()
        + size_of::<Event>()
}
