//! Events as they come from the database.

use sqlx::postgres::PgRow;
use sqlx::{Row as _, ValueRef as _};

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
    /// It was cut at a payload that did not leave the server.
    pub(super) withheld: bool,
}

/// The statement that cuts what another statement finds to a size.
pub(super) fn sized(layout: &Layout, found: &str) -> String {
    layout.render(&include_str!("sql/sized.sql").replace("{found}", found))
}

/// The statement that takes what another statement finds as it is, but for payloads that are large: quicker, and
/// bounded by the number of rows.
pub(super) fn small(layout: &Layout, found: &str) -> String {
    layout.render(&include_str!("sql/small.sql").replace("{found}", found))
}

/// The statement that also tells what stands from a known event up to the position after which another statement
/// finds rows; `known` is the parameter that names that event's position.
pub(super) fn after_known(layout: &Layout, found: &str, known: &str) -> String {
    layout.render(
        &include_str!("sql/known.sql")
            .replace("{found}", found)
            .replace("{known}", known),
    )
}

/// Decodes the rows of [`sized`] or [`small`].
pub(super) fn found(
    rows: &[PgRow],
    events_max: i64,
    bytes_max: usize,
) -> Result<Found, sqlx::Error> {
    let mut events: Vec<Event> = Vec::with_capacity(rows.len());
    let mut bytes = 0;
    for row in rows {
        let event = event(row)?;
        let withheld = event.is_none();
        let fitting = event.filter(|event| {
            bytes += payload(event);
            bytes <= bytes_max || events.is_empty()
        });
        match fitting {
            Some(event) => events.push(event),
            // It did not fit: whatever stands before it was looked at.
            None => {
                return Ok(Found {
                    events,
                    cut: true,
                    cut_at: Position(row.try_get::<i64, _>(0)? - 1),
                    withheld,
                });
            }
        }
    }
    Ok(Found {
        cut: i64::try_from(events.len()).unwrap_or(i64::MAX) >= events_max,
        cut_at: events.last().map_or(Position(0), |event| event.position),
        withheld: false,
        events,
    })
}

/// Decodes one row; none when it came without its payload.
pub(super) fn event(row: &PgRow) -> Result<Option<Event>, sqlx::Error> {
    let Some(data) = json(row, 7)? else {
        return Ok(None);
    };
    let mut id = [0; uuid::fmt::Hyphenated::LENGTH];
    Ok(Some(Event {
        position: Position(row.try_get(0)?),
        id: row
            .try_get::<uuid::Uuid, _>(1)?
            .hyphenated()
            .encode_lower(&mut id)
            .to_owned(),
        stream: row.try_get(2)?,
        version: row.try_get(3)?,
        event_type: row.try_get(4)?,
        schema_version: row.try_get(5)?,
        recorded_at: row.try_get::<Micros, _>(6)?.0,
        data,
        metadata: json(row, 8)?.unwrap_or_else(|| "{}".to_owned()),
    }))
}

/// JSON text, from a column of text or of `jsonb`, whose binary form is a version and the text.
fn json(row: &PgRow, at: usize) -> Result<Option<String>, sqlx::Error> {
    const VERSION: u8 = 1;
    let value = row.try_get_raw(at)?;
    if value.is_null() {
        return Ok(None);
    }
    let bytes = value.as_bytes().map_err(sqlx::Error::Decode)?;
    // No JSON text begins with this byte.
    let text = bytes.strip_prefix(&[VERSION]).unwrap_or(bytes);
    let text = std::str::from_utf8(text).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(Some(text.to_owned()))
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
