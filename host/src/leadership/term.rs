//! The term: claimed, checked and given back in the read-model database, where every batch is fenced by it.
//!
//! Promises: a term is claimed in one transaction together with every checkpoint of its scope, so a batch of
//! an older leader either committed before (and its position is seen) or matches no row. Must never: lower a
//! term, or touch a row of another term when releasing.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use uuid::Uuid;

use super::Term;
use super::error::{Error, Refusal};
use super::holder::timestamp;
use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::database::session::{Database, Purpose, bounded};

mod blockers;
mod rival;

/// Bound on each short statement of this module.
const STATEMENT_LIMIT: Duration = Duration::from_secs(5);

/// A claim that waited this long ends the sessions of its own group that block it.
pub const BLOCKED_AFTER: Duration = Duration::from_secs(3);

/// Longest claim, all told. A leader that was stopped inside a batch is gone by then.
pub const CLAIM_LIMIT: Duration = Duration::from_secs(8);

/// Who claims, and where.
#[derive(Debug, Clone)]
pub struct Claimant {
    /// The read-model database.
    pub read_model: Database,
    /// `[read_model] control_schema`.
    pub control: Identifier,
    /// `[leader] group`.
    pub group: String,
    /// The projection, when each has a leader of its own.
    pub projection: Option<String>,
    /// `[host] node`.
    pub node: String,
    /// Name of this machine.
    pub host: String,
    /// The configured key, as text: one control schema takes only one.
    pub lock_key: String,
    /// The database that the lock is in.
    pub lock_database: String,
    /// Its timeline, which rises with each promotion.
    pub lock_timeline: String,
    /// The session that holds the lock.
    pub backend_pid: i32,
}

/// A claimed term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Its number.
    pub term: Term,
    /// Its identity.
    pub term_id: Uuid,
    /// When, by the clock of the read-model database.
    pub since: Timestamp,
}

impl Claimant {
    /// The key of the leadership row: the group, or the group and the projection.
    #[must_use]
    pub fn row_key(&self) -> String {
        row_key(&self.group, self.projection.as_deref())
    }

    /// Claims the next term. `rival_is_alive` says whether the session that claimed under another key still
    /// holds it, as far as the lock database knows.
    ///
    /// # Errors
    /// [`Error::Refused`] when the control schema is in use under another key or is not migrated;
    /// [`Error::ClaimBlocked`] when sessions that may not be ended hold the rows.
    pub async fn claim(&self, rival_is_alive: &rival::Watcher) -> Result<Claimed, Error> {
        let mut connection = self.read_model.connect(&Purpose::Write).await?;
        let pid: i32 = bounded(
            self.read_model.name,
            STATEMENT_LIMIT,
            sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut connection),
        )
        .await?;
        let claiming = self.claim_on(&mut connection, rival_is_alive);
        tokio::pin!(claiming);
        let waited = tokio::select! {
            done = &mut claiming => return done,
            () = tokio::time::sleep(BLOCKED_AFTER) => BLOCKED_AFTER,
        };
        // The rows are held by somebody: a leader that was stopped inside a batch, as a rule.
        let ending = blockers::end(&self.read_model, &self.group, pid);
        let (claimed, blockers) = tokio::join!(
            tokio::time::timeout(CLAIM_LIMIT.saturating_sub(waited), &mut claiming),
            ending
        );
        match (claimed, blockers) {
            (Ok(Err(Error::Database(error))), Ok(blockers))
                if error.sqlstate() == Some("55P03") && !blockers.is_empty() =>
            {
                Err(Error::ClaimBlocked {
                    waited: CLAIM_LIMIT,
                    blockers: blockers.join(", "),
                })
            }
            (Ok(done), _) => done,
            (Err(_elapsed), Ok(blockers)) if !blockers.is_empty() => Err(Error::ClaimBlocked {
                waited: CLAIM_LIMIT,
                blockers: blockers.join(", "),
            }),
            (Err(_elapsed), Err(error)) => Err(error.into()),
            (Err(_elapsed), Ok(_)) => Err(DatabaseError::TimedOut {
                database: self.read_model.name,
                limit: CLAIM_LIMIT,
            }
            .into()),
        }
    }

    async fn claim_on(
        &self,
        connection: &mut PgConnection,
        rival_is_alive: &rival::Watcher,
    ) -> Result<Claimed, Error> {
        let row_key = self.row_key();
        let term_id = Uuid::new_v4();
        let mut transaction = connection.begin().await.map_err(DatabaseError::from)?;
        let limit = format!(
            "SET LOCAL lock_timeout = '{}ms'",
            (CLAIM_LIMIT - Duration::from_secs(1)).as_millis()
        );
        sqlx::query(AssertSqlSafe(limit))
            .execute(&mut *transaction)
            .await
            .map_err(DatabaseError::from)?;
        // One claim at a time in a control schema: two replicas with different keys must see each other.
        sqlx::query(AssertSqlSafe(format!(
            "LOCK TABLE {}.leadership IN SHARE ROW EXCLUSIVE MODE",
            self.control.quoted()
        )))
        .execute(&mut *transaction)
        .await
        .map_err(|error| self.understand(error))?;
        rival::refuse(&mut transaction, self, rival_is_alive).await?;
        self.refuse_old_primary(&mut transaction).await?;
        let row = sqlx::query(AssertSqlSafe(self.sql(include_str!("term/claim.sql"))))
            .bind(&row_key)
            .bind(term_id)
            .bind(&self.node)
            .bind(&self.host)
            .bind(self.backend_pid)
            .bind(&self.lock_key)
            .bind(&self.lock_database)
            .fetch_one(&mut *transaction)
            .await
            .map_err(|error| self.understand(error))?;
        let term: i64 = row.try_get(0).map_err(DatabaseError::from)?;
        sqlx::query(AssertSqlSafe(self.sql(include_str!("term/stamp.sql"))))
            .bind(term)
            .bind(term_id)
            .bind(&self.projection)
            .execute(&mut *transaction)
            .await
            .map_err(|error| self.understand(error))?;
        let since = timestamp(&row, 1)?;
        transaction.commit().await.map_err(DatabaseError::from)?;
        Ok(Claimed {
            term: Term(term),
            term_id,
            since,
        })
    }

    /// An old primary that nobody told of its standby's promotion grants the same lock once more.
    async fn refuse_old_primary(&self, transaction: &mut PgConnection) -> Result<(), Error> {
        let system = self.lock_database.split('/').next().unwrap_or_default();
        let sql = self.sql(include_str!("term/newest_timeline.sql"));
        let newest: Option<String> = sqlx::query_scalar(AssertSqlSafe(sql))
            .bind(system)
            .fetch_one(transaction)
            .await
            .map_err(|error| self.understand(error))?;
        match newest {
            Some(newest) if is_older(&self.lock_timeline, &newest) => {
                Err(Error::Refused(Refusal::old_primary(
                    &format!("lock database {}", self.lock_database),
                    &self.lock_timeline,
                    &newest,
                    self.control.as_str(),
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether the term still stands; marks it as seen. `None` when somebody holds the row.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn check(&self, claimed: &Claimed) -> Result<Option<bool>, Error> {
        match self.touch(include_str!("term/check.sql"), claimed).await {
            Ok(found) => Ok(Some(found)),
            Err(Error::Database(error)) if error.sqlstate() == Some("55P03") => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Marks the term as given back, if it is still the newest; says whether it was.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn release(&self, claimed: &Claimed) -> Result<bool, Error> {
        self.touch(include_str!("term/release.sql"), claimed).await
    }

    async fn touch(&self, sql: &str, claimed: &Claimed) -> Result<bool, Error> {
        let name = self.read_model.name;
        let mut connection = self.read_model.connect(&Purpose::Write).await?;
        let update = sqlx::query(AssertSqlSafe(self.sql(sql)))
            .bind(self.row_key())
            .bind(claimed.term.0)
            .bind(claimed.term_id);
        let done = bounded(name, STATEMENT_LIMIT, update.execute(&mut connection)).await?;
        let _closed = tokio::time::timeout(STATEMENT_LIMIT, connection.close()).await;
        Ok(done.rows_affected() == 1)
    }

    fn sql(&self, template: &str) -> String {
        template.replace("{control}", &self.control.quoted())
    }

    /// Missing tables or columns mean that nobody migrated, or an older version did.
    fn understand(&self, error: sqlx::Error) -> Error {
        let error = DatabaseError::from(error);
        match error.sqlstate() {
            Some("42P01" | "3F000" | "42703") => {
                Error::Refused(Refusal::unmigrated(self.control.as_str()))
            }
            _ => error.into(),
        }
    }
}

/// The key of the row of an installation, or of one of its projections.
#[must_use]
pub fn row_key(group: &str, projection: Option<&str>) -> String {
    match projection {
        None => group.to_owned(),
        Some(projection) => format!("{group}/{projection}"),
    }
}

/// Whether a server stands on a timeline before one that was seen. Timelines are eight hexadecimal digits.
#[must_use]
pub fn is_older(timeline: &str, seen: &str) -> bool {
    timeline.len() == seen.len() && timeline < seen
}

pub use rival::Watcher;
