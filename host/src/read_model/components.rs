//! The component store: plugin files by digest, so that every replica can run every recorded plugin.
//!
//! Promises: a file is kept in the transaction that records its digest, and goes only when no generation names it.
//! What is read back is the file of that digest, or nothing; who keeps a file again mends what was damaged.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use crate::database::error::Error;
use crate::database::identifier::Identifier;
use crate::database::template::render;
use crate::plugin::file;

/// A file that nobody names is kept for so long, for those who are about to name it.
const UNUSED_KEEP_SECONDS: f64 = 300.0;

/// Keeps a file. The bytes travel only when they are not there yet, or not whole.
///
/// # Errors
/// When the database does not take the statement.
pub async fn put(
    connection: &mut PgConnection,
    control: &Identifier,
    sha256: &str,
    bytes: &[u8],
) -> Result<(), Error> {
    let sql = |template| AssertSqlSafe(render(template, &[("control", control)]));
    let touched = sqlx::query(sql(include_str!("sql/touch_component.sql")))
        .bind(sha256)
        .execute(&mut *connection)
        .await?;
    if touched.rows_affected() == 0 {
        sqlx::query(sql(include_str!("sql/put_component.sql")))
            .bind(sha256)
            .bind(bytes)
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// The file of this digest, if it was kept whole.
///
/// # Errors
/// When it cannot be asked for.
pub async fn get(
    connection: &mut PgConnection,
    control: &Identifier,
    sha256: &str,
) -> Result<Option<Vec<u8>>, Error> {
    let statement = render(
        include_str!("sql/get_component.sql"),
        &[("control", control)],
    );
    let row = sqlx::query(AssertSqlSafe(statement))
        .bind(sha256)
        .fetch_optional(connection)
        .await?;
    let bytes: Option<Vec<u8>> = row.map(|row| row.try_get(0)).transpose()?;
    Ok(bytes.filter(|bytes| file::sha256(bytes) == sha256))
}

/// Forgets files that no generation names; returns how many.
///
/// # Errors
/// When the database does not take the statement.
pub async fn prune(connection: &mut PgConnection, control: &Identifier) -> Result<u64, Error> {
    let statement = render(
        include_str!("sql/prune_components.sql"),
        &[("control", control)],
    );
    let done = sqlx::query(AssertSqlSafe(statement))
        .bind(UNUSED_KEEP_SECONDS)
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}
