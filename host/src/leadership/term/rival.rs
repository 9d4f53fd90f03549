//! One control schema takes one key: a replica that is configured with another one must not fence the others.
//!
//! A key that nobody uses any more may be changed: the other claim counts only while its term is not given
//! back and its leader may still be alive.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use super::Claimant;
use crate::database::error::Error as DatabaseError;
use crate::database::session::{Database, Purpose, bounded};
use crate::leadership::error::{Error, Refusal};

/// Asks the lock database whether the leader under another key is still there.
#[derive(Debug, Clone)]
pub struct Watcher {
    /// The lock database of this replica.
    pub database: Database,
}

impl Watcher {
    /// Pids come again, but hardly as another lock session within a minute.
    async fn holds_a_lock(&self, backend_pid: i32) -> Result<bool, Error> {
        let mut connection = self.database.connect(&Purpose::Admin).await?;
        let check = sqlx::query_scalar(include_str!("alive.sql")).bind(backend_pid);
        let limit = super::STATEMENT_LIMIT;
        Ok(bounded(self.database.name, limit, check.fetch_one(&mut connection)).await?)
    }
}

/// Refuses when another key is in use on this control schema.
pub(super) async fn refuse(
    transaction: &mut PgConnection,
    own: &Claimant,
    watcher: &Watcher,
) -> Result<(), Error> {
    let sql = own.sql(include_str!("rival.sql"));
    let rows = sqlx::query(AssertSqlSafe(sql))
        .bind(&own.lock_key)
        .bind(&own.lock_database)
        .fetch_all(&mut *transaction)
        .await
        .map_err(|error| own.understand(error))?;
    for row in rows {
        let get = |index: usize| -> Result<String, DatabaseError> { Ok(row.try_get(index)?) };
        let (key, database) = (get(0)?, get(1)?);
        let backend_pid: i32 = row.try_get(4).map_err(DatabaseError::from)?;
        let seen_lately: bool = row.try_get(5).map_err(DatabaseError::from)?;
        // In our own lock database the lock itself tells; in another one only the sign of life does.
        let alive = seen_lately
            && (database != own.lock_database || watcher.holds_a_lock(backend_pid).await?);
        if alive {
            let describe = |key: &str, database: &str| format!("{key} in database {database}");
            return Err(Error::Refused(Refusal::two_keys(
                own.control.as_str(),
                &describe(&own.lock_key, &own.lock_database),
                &describe(&key, &database),
                &get(2)?,
                &get(3)?,
            )));
        }
        tracing::info!(
            old_key = key,
            new_key = own.lock_key,
            "the lock key of this control schema changes; its last leader is gone"
        );
    }
    Ok(())
}
