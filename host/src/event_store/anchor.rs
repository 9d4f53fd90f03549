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

impl Anchor {
    /// An anchor as rows keep it: two columns, both null where there is none.
    #[must_use]
    pub fn of_columns(position: Option<i64>, id: Option<String>) -> Option<Self> {
        let position = Position(position?);
        id.map(|id| Self { position, id })
    }

    /// What stands in its place now, in words, when that is something else than this event.
    #[must_use]
    pub fn replaced_by(&self, found: Option<&str>) -> Option<String> {
        let (position, id) = (self.position, &self.id);
        match found {
            Some(found) if found == id => None,
            Some(other) => Some(format!(
                "position {position} holds the event {other} instead of {id}"
            )),
            None => Some(format!(
                "position {position} holds no event, but {id} was read there"
            )),
        }
    }

    /// Makes sure that it still stands where it was read.
    ///
    /// # Errors
    /// When another event stands there, or none.
    pub(super) fn stands(&self, found: Option<&str>) -> Result<(), Error> {
        self.replaced_by(found)
            .map_or(Ok(()), |what| Err(Error::OtherStore(what)))
    }
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
    Ok(Sight {
        found: row.try_get(0)?,
        last: Anchor::of_columns(row.try_get(1)?, row.try_get(2)?),
        head: Position(row.try_get(3)?),
    })
}
