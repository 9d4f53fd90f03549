//! Questions about the store that commands ask, without a running service.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::error::Error;
use super::event::{Event, Position};
use super::layout::Layout;
use super::rows;

/// The highest visible position.
///
/// # Errors
/// When the store cannot be read.
pub async fn head(connection: &mut PgConnection, layout: &Layout) -> Result<Position, Error> {
    let row = sqlx::query(AssertSqlSafe(layout.render(include_str!("sql/head.sql"))))
        .fetch_one(connection)
        .await?;
    Ok(Position(row.try_get(0)?))
}

/// For each checkpoint, how long ago the first event after it was recorded, by the store's clock; 0 when there
/// is none. None when that event says no age: its time is infinite, or still to come.
///
/// # Errors
/// When the store cannot be read.
pub async fn lag_seconds(
    connection: &mut PgConnection,
    layout: &Layout,
    checkpoints: &[Position],
) -> Result<Vec<Option<f64>>, Error> {
    let positions: Vec<i64> = checkpoints.iter().map(|position| position.0).collect();
    let statement = layout.render(include_str!("sql/lag_seconds.sql"));
    let rows = sqlx::query(AssertSqlSafe(statement))
        .bind(&positions)
        .fetch_all(connection)
        .await?;
    Ok(rows
        .iter()
        .map(|row| row.try_get(0))
        .collect::<Result<_, _>>()?)
}

/// The event at a position.
///
/// # Errors
/// When the store cannot be read.
pub async fn event(
    connection: &mut PgConnection,
    layout: &Layout,
    position: Position,
) -> Result<Option<Event>, Error> {
    let row = sqlx::query(AssertSqlSafe(layout.render(include_str!("sql/event.sql"))))
        .bind(position.0)
        .fetch_optional(connection)
        .await?;
    Ok(match row {
        Some(row) => rows::event(&row)?,
        None => None,
    })
}
