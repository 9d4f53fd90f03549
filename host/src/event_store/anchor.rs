//! By which event a store is known again.
//!
//! An append-only store holds for ever what was read from it. So the last event that was scanned, wanted or not,
//! tells the store that was read from an older copy, from one that has overtaken that copy since, and from one
//! that was put in its place. System identifier, timeline and names do not: a logical restore keeps them.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::error::Error;
use super::event::Position;
use super::layout::Layout;

/// An event that was read: it stands at its position for as long as the store is the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// Where it stood.
    pub position: Position,
    /// Its identifier, as text.
    pub id: String,
}

/// What a store holds now, in one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// The identifier of the event at the position that was asked about, if one stands there.
    pub found: Option<String>,
    /// The last event at or below the other position that was asked about.
    pub last: Option<Anchor>,
    /// The highest visible position.
    pub head: Position,
}

impl Sight {
    /// Makes sure that an event still stands where it was read.
    ///
    /// # Errors
    /// When another event stands there, or none.
    pub(super) fn holds(&self, anchor: &Anchor) -> Result<(), Error> {
        same(anchor, self.found.as_deref())
    }
}

/// Makes sure that what stands at an anchor's position is the anchor.
pub(super) fn same(anchor: &Anchor, found: Option<&str>) -> Result<(), Error> {
    if found == Some(anchor.id.as_str()) {
        return Ok(());
    }
    let there = match found {
        Some(other) => format!("the event {other} instead of {}", anchor.id),
        None => format!("no event, but {} was read there", anchor.id),
    };
    Err(Error::OtherStore(format!(
        "position {} holds {there}",
        anchor.position
    )))
}

/// Asks what stands at one position, and which event is the last one up to another.
///
/// # Errors
/// When the store cannot be read.
pub async fn look(
    connection: &mut PgConnection,
    layout: &Layout,
    at: Position,
    upto: Position,
) -> Result<Sight, Error> {
    let statement = layout.render(include_str!("sql/anchor.sql"));
    let row = sqlx::query(AssertSqlSafe(statement))
        .bind(at.0)
        .bind(upto.0)
        .fetch_one(connection)
        .await?;
    let last: (Option<i64>, Option<String>) = (row.try_get(1)?, row.try_get(2)?);
    Ok(Sight {
        found: row.try_get(0)?,
        last: last.0.zip(last.1).map(|(position, id)| Anchor {
            position: Position(position),
            id,
        }),
        head: Position(row.try_get(3)?),
    })
}
