//! The single steps of a migration on one session.
//!
//! The lock is taken by trying, within the transaction that it protects: a waiting session holds no snapshot,
//! the lock cannot outlive the transaction, and it works behind a transaction pooler.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _};

use super::{Applied, Error, LOCK_CLASS, LOCK_WAIT_MAX, Migration, Target, compare};
use crate::database::error::Error as DatabaseError;
use crate::database::template::render;

/// Pause between two tries of the lock.
const LOCK_RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// What each transaction of the printed scripts sets, as the host's own sessions do.
const PINNED: &str =
    "SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL standard_conforming_strings = on;";

const TABLE_SQL: &str = include_str!("table.sql");
const APPLIED_SQL: &str = include_str!("applied.sql");
const FOUND_SQL: &str = include_str!("found.sql");
const RECORD_SQL: &str = include_str!("record.sql");

/// What one try came to.
pub(super) enum Step {
    /// This one was applied.
    Applied(Migration),
    /// Another process applied everything meanwhile.
    OthersDidIt,
    /// Another process held the lock for too long.
    Locked,
}

/// The rows of the migrations' table; none when it does not exist.
pub(super) async fn applied(
    connection: &mut PgConnection,
    target: &Target,
) -> Result<Vec<Applied>, DatabaseError> {
    let exists: bool = sqlx::query(FOUND_SQL)
        .bind(target.schema.as_str())
        .fetch_one(&mut *connection)
        .await?
        .try_get("has_table")?;
    if !exists {
        return Ok(Vec::new());
    }
    sqlx::query(AssertSqlSafe(render(
        APPLIED_SQL,
        &[("schema", &target.schema)],
    )))
    .bind(target.part.as_str())
    .fetch_all(connection)
    .await?
    .into_iter()
    .map(|row| {
        Ok(Applied {
            version: row.try_get("version")?,
            name: row.try_get("name")?,
            checksum: row.try_get("checksum")?,
            applied_at: row.try_get("applied_at")?,
        })
    })
    .collect()
}

/// Whether the server takes writes.
pub(super) async fn writable(connection: &mut PgConnection, target: &Target) -> Result<(), Error> {
    let read_only: bool =
        sqlx::query_scalar("SELECT current_setting('transaction_read_only') = 'on'")
            .fetch_one(connection)
            .await
            .map_err(|error| super::error::told(target, error.into()))?;
    if read_only {
        return Err(Error::ReadOnly { part: target.part });
    }
    Ok(())
}

/// Applies the first pending migration in a transaction of its own.
pub(super) async fn apply_next(
    connection: &mut PgConnection,
    target: &Target,
) -> Result<Step, DatabaseError> {
    let started = Instant::now();
    loop {
        let mut transaction = connection.begin().await?;
        let mine: bool = sqlx::query_scalar("SELECT pg_try_advisory_xact_lock($1, hashtext($2))")
            .bind(LOCK_CLASS)
            .bind(target.schema.as_str())
            .fetch_one(&mut *transaction)
            .await?;
        if mine {
            let step = apply_locked(&mut transaction, target).await?;
            transaction.commit().await?;
            return Ok(step);
        }
        transaction.rollback().await?;
        if started.elapsed() > LOCK_WAIT_MAX {
            return Ok(Step::Locked);
        }
        tokio::time::sleep(LOCK_RETRY_INTERVAL).await;
    }
}

async fn apply_locked(
    connection: &mut PgConnection,
    target: &Target,
) -> Result<Step, DatabaseError> {
    connection
        .execute("SET LOCAL statement_timeout = 0")
        .await?;
    let schema_exists: bool = sqlx::query(FOUND_SQL)
        .bind(target.schema.as_str())
        .fetch_one(&mut *connection)
        .await?
        .try_get("has_schema")?;
    if !schema_exists {
        // Not IF NOT EXISTS: that asks for the right to create schemas even when there is nothing to do.
        let create = format!("CREATE SCHEMA {}", target.schema.quoted());
        connection.execute(AssertSqlSafe(create)).await?;
    }
    let found = applied(connection, target).await?;
    let status = compare(target.part.migrations(), found);
    if !status.newer.is_empty() || !status.changed.is_empty() {
        // The caller looks again and says so.
        return Ok(Step::OthersDidIt);
    }
    let Some(migration) = status.pending.first().copied() else {
        return Ok(Step::OthersDidIt);
    };
    connection
        .execute(AssertSqlSafe(render(
            TABLE_SQL,
            &[("schema", &target.schema)],
        )))
        .await?;
    connection
        .execute(AssertSqlSafe(migration.render(target)))
        .await?;
    sqlx::query(AssertSqlSafe(render(
        RECORD_SQL,
        &[("schema", &target.schema)],
    )))
    .bind(target.part.as_str())
    .bind(migration.version)
    .bind(migration.name)
    .bind(migration.checksum())
    .execute(connection)
    .await?;
    Ok(Step::Applied(migration))
}

/// What has to stand before the scripts of a target.
pub(super) fn preamble(target: &Target) -> String {
    format!(
        "-- {part}: schema {schema}\nBEGIN;\n{PINNED}\nCREATE SCHEMA IF NOT EXISTS {quoted};\n{table}\nCOMMIT;\n",
        part = target.part.as_str(),
        schema = target.schema,
        quoted = target.schema.quoted(),
        table = render(TABLE_SQL, &[("schema", &target.schema)]),
    )
}

/// One migration with its row, in a transaction, as text.
pub(super) fn script(migration: &Migration, target: &Target) -> String {
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let record = render(RECORD_SQL, &[("schema", &target.schema)])
        .replace("$1", &literal(target.part.as_str()))
        .replace("$2", &migration.version.to_string())
        .replace("$3", &literal(migration.name))
        .replace("$4", &literal(&migration.checksum()));
    format!(
        "\nBEGIN;\n{PINNED}\n{}\n{}\nCOMMIT;\n",
        migration.render(target).trim_end(),
        record.trim_end(),
    )
}
