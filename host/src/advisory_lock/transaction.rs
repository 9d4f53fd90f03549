//! Locks that end with a transaction: the default way.
//!
//! Promises: takes a transaction and nothing else, since on a bare connection such a lock is gone when its
//! statement ends; a wait that was in vain leaves the transaction usable. Cannot be forgotten, cannot leak
//! into a pool, works behind every pooler. Taking the same lock again in the same transaction changes
//! nothing.
//!
//! ```no_run
//! # async fn example(connection: &mut sqlx::PgConnection) -> Result<(), Box<dyn std::error::Error>> {
//! use projector_host::advisory_lock::{Key, transaction};
//! use sqlx::Connection as _;
//!
//! let mut work = connection.begin().await?;
//! if transaction::try_lock(&mut work, Key::derive("", "nightly-invoices")).await? {
//!     sqlx::query("UPDATE invoices SET sent = true").execute(&mut *work).await?;
//! }
//! work.commit().await?; // and only now the lock is free
//! # Ok(())
//! # }
//! ```

use std::time::Duration;

use sqlx::{AssertSqlSafe, Postgres, Transaction};

use super::error::Error;
use super::key::Key;
use crate::database;

/// Takes the lock until the end of the transaction, if it is free.
///
/// # Errors
/// When the database fails.
pub async fn try_lock(
    transaction: &mut Transaction<'_, Postgres>,
    key: Key,
) -> Result<bool, Error> {
    let sql = format!("SELECT pg_try_advisory_xact_lock({})", key.arguments());
    Ok(sqlx::query_scalar(AssertSqlSafe(sql))
        .fetch_one(&mut **transaction)
        .await?)
}

/// Takes the lock until the end of the transaction; waits in line for at most `limit`.
///
/// # Errors
/// [`Error::Held`] when the wait is over: the transaction goes on without the lock. Anything else, such as
/// a statement time-out of the session, is what the database said.
pub async fn lock(
    transaction: &mut Transaction<'_, Postgres>,
    key: Key,
    limit: Duration,
) -> Result<(), Error> {
    if limit.is_zero() {
        return match try_lock(transaction, key).await? {
            true => Ok(()),
            false => Err(held(key, limit)),
        };
    }
    let before: String = sqlx::query_scalar(
        "SELECT set_config('projector.lock_timeout', current_setting('lock_timeout'), true)",
    )
    .fetch_one(&mut **transaction)
    .await?;
    run(transaction, "SAVEPOINT projector_lock").await?;
    // LOCAL works only inside a transaction, which the type of the argument makes sure of.
    run(
        transaction,
        &format!("SET LOCAL lock_timeout = '{}ms'", limit.as_millis().max(1)),
    )
    .await?;
    let wait = format!("SELECT pg_advisory_xact_lock({})", key.arguments());
    match run(transaction, &wait).await {
        Ok(()) => {
            // The lock itself survives the release of the savepoint; the setting is put back.
            run(transaction, "RELEASE SAVEPOINT projector_lock").await?;
            sqlx::query("SELECT set_config('lock_timeout', $1, true)")
                .bind(before)
                .execute(&mut **transaction)
                .await?;
            Ok(())
        }
        Err(Error::Database(error)) if error.sqlstate() == Some("55P03") => {
            run(transaction, "ROLLBACK TO SAVEPOINT projector_lock").await?;
            Err(held(key, limit))
        }
        Err(error) => Err(error),
    }
}

async fn run(transaction: &mut Transaction<'_, Postgres>, sql: &str) -> Result<(), Error> {
    sqlx::query(AssertSqlSafe(sql.to_owned()))
        .execute(&mut **transaction)
        .await
        .map_err(database::error::Error::from)?;
    Ok(())
}

fn held(key: Key, waited: Duration) -> Error {
    Error::Held {
        key: key.to_string(),
        holder: "another transaction or session".to_owned(),
        waited,
    }
}
