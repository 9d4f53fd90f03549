//! Events as they come from the database.

use sqlx::Row as _;
use sqlx::postgres::PgRow;

use crate::database::micros::Micros;

use super::event::{Event, Position};
use super::layout::Layout;

/// What one statement of `sized.sql` returned.
pub(super) struct Found {
    /// In position order.
    pub(super) events: Vec<Event>,
    /// A bound cut it short: more may stand after `upto`.
    pub(super) cut: bool,
    /// Everything up to here was looked at, if it was cut short.
    pub(super) cut_at: Position,
}

/// The statement that cuts what another statement finds to a size.
pub(super) fn sized(layout: &Layout, found: &str) -> String {
    layout.render(&include_str!("sql/sized.sql").replace("{found}", found))
}

/// Decodes the rows of [`sized`].
pub(super) fn found(rows: &[PgRow], events_max: i64) -> Result<Found, sqlx::Error> {
    let mut events = Vec::with_capacity(rows.len());
    for row in rows {
        match event(row)? {
            Some(event) => events.push(event),
            // It did not fit: whatever stands before it was looked at.
            None => {
                return Ok(Found {
                    events,
                    cut: true,
                    cut_at: Position(row.try_get::<i64, _>(0)? - 1),
                });
            }
        }
    }
    Ok(Found {
        cut: i64::try_from(events.len()).unwrap_or(i64::MAX) >= events_max,
        cut_at: events.last().map_or(Position(0), |event| event.position),
        events,
    })
}

/// Decodes one row; none when it came without its payload.
pub(super) fn event(row: &PgRow) -> Result<Option<Event>, sqlx::Error> {
    let Some(data) = row.try_get(7)? else {
        return Ok(None);
    };
    Ok(Some(Event {
        position: Position(row.try_get(0)?),
        id: row.try_get::<uuid::Uuid, _>(1)?.to_string(),
        stream: row.try_get(2)?,
        version: row.try_get(3)?,
        event_type: row.try_get(4)?,
        schema_version: row.try_get(5)?,
        recorded_at: row.try_get::<Micros, _>(6)?.0,
        data,
        metadata: row
            .try_get::<Option<String>, _>(8)?
            .unwrap_or_else(|| "{}".to_owned()),
    }))
}

/// What an event counts against the byte bound of a batch.
pub(super) fn payload(event: &Event) -> usize {
    event.data.len() + event.metadata.len()
}

/// Roughly what an event holds in memory.
pub(super) fn size(event: &Event) -> usize {
    event.data.len()
        + event.metadata.len()
        + event.stream.len()
        + event.event_type.len()
        + size_of::<Event>()
}
