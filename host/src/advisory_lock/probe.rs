//! Finds out what stands between us and the server, before a lock is trusted.
//!
//! Promises: tells a transaction-mode pooler from a direct connection or a session-mode pooler. Must never:
//! leave a transaction open behind a pooler.

use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{Connection as _, Row as _};

use super::error::Error as LockError;
use crate::database::error::Error;
use crate::database::session::{Database, Purpose, bounded};
use crate::error::Code;
use crate::leadership::Refusal;

/// Makes sure that locks count on this connection, and returns the server process behind it.
///
/// # Errors
/// [`LockError::Refused`] on a standby, a read-only server or behind a transaction pooler; otherwise what the
/// database said.
pub async fn check(
    connection: &mut PgConnection,
    database: &Database,
    limit: Duration,
) -> Result<i32, LockError> {
    let facts = sqlx::raw_sql(
        "SELECT pg_backend_pid(), pg_is_in_recovery(), current_setting('transaction_read_only')::boolean",
    );
    let row = bounded(database.name, limit, facts.fetch_one(&mut *connection)).await?;
    let (in_recovery, read_only): (bool, bool) = (row.try_get(1)?, row.try_get(2)?);
    if in_recovery || read_only {
        let refusal = Refusal::standby(database.name, !in_recovery);
        return Err(LockError::Refused(refusal));
    }
    if is_transaction_pooled(connection, database, limit).await? {
        return Err(LockError::Refused(Refusal::pooler(database.name)));
    }
    Ok(row.try_get(0)?)
}

/// Code of a transaction pooler before a database in which no lock is held.
pub const POOLED: Code = Code(413);

/// Refuses a transaction pooler before a database whose sessions set how they read, write and end: behind one, the
/// settings stay with whoever comes next, and are missing where they are needed.
///
/// # Errors
/// [`Error::Unfit`], or what the database said; `connection` is in doubt then.
pub async fn refuse_pooler(
    connection: &mut PgConnection,
    database: &Database,
    limit: Duration,
) -> Result<(), Error> {
    if !is_transaction_pooled(connection, database, limit).await? {
        return Ok(());
    }
    Err(Error::Unfit {
        code: POOLED,
        message: format!(
            "the {} database is reached through a pooler in transaction mode (or statement mode), where the settings of a \
             session get lost; give a direct address, or a pooler in session mode",
            database.name
        ),
    })
}

/// Whether statements of one client may meet different servers: then session locks mean nothing.
///
/// A second connection keeps a transaction open, which pins a pooled server to it. If it met our server, or
/// if we meet another one now, servers are handed out by the transaction. (Asking one connection twice shows
/// nothing: a pooler hands out the server that was used last.)
///
/// # Errors
/// When a database call fails; `connection` is in doubt then.
pub async fn is_transaction_pooled(
    connection: &mut PgConnection,
    database: &Database,
    limit: Duration,
) -> Result<bool, Error> {
    let name = database.name;
    let before = backend_pid(connection, name, limit).await?;
    let mut other = database.connect(&Purpose::Admin).await?;
    match bounded(name, limit, sqlx::raw_sql("BEGIN").execute(&mut other)).await {
        Ok(_) => {}
        // A pooler in statement mode allows no transactions at all; a server has no such answer to BEGIN.
        Err(error) if error.sqlstate() == Some("08P01") => return Ok(true),
        Err(error) => return Err(error),
    }
    let pinned = backend_pid(&mut other, name, limit).await?;
    let after = backend_pid(connection, name, limit).await?;
    bounded(name, limit, sqlx::raw_sql("ROLLBACK").execute(&mut other)).await?;
    let _closed = tokio::time::timeout(limit, other.close()).await;
    Ok(before == pinned || before != after)
}

/// The simple protocol on purpose: prepared statements may be refused behind the poolers that are looked for.
async fn backend_pid(
    connection: &mut PgConnection,
    name: &'static str,
    limit: Duration,
) -> Result<i32, Error> {
    let row = bounded(
        name,
        limit,
        sqlx::raw_sql("SELECT pg_backend_pid()").fetch_one(connection),
    )
    .await?;
    Ok(row.try_get(0)?)
}
