//! Once for each point in time, on whichever host is first: a row `(job, scheduled_at)` written under the lock.
//!
//! The lock alone does not do: the host whose clock is 50 ms late finds it free again after a short job, and
//! runs the job a second time. The row stays.
//!
//! Promises: a point in time is begun at most once, also when the run then fails or its host dies (a job that
//! must be repeated has to be asked for again); periods are measured by the database's clock, not by those of
//! the hosts. The table `runs` lives in a schema of its own in the lock database and is created when it is
//! first needed, unless somebody with more rights did that before; a row is kept for 90 days, and the newest older one of
//! a job for ever, so that a longer period is decided too. A point in time whose row may be gone is refused.

use std::time::Duration;

use jiff::Timestamp;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::error::Error;
use super::key::Key;
use super::session::SessionLock;
use super::transaction;
use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::database::session::{Database, Purpose, bounded};

/// Schema of the table when nothing else is said.
pub const SCHEMA: &str = "projector_locks";

/// Creating the table waits for others who create it at most this long.
const CREATE_LIMIT: Duration = Duration::from_secs(10);

/// A period counts as over a tenth early: hosts start their jobs by clocks of their own.
const PERIOD_TOLERANCE: f64 = 0.9;

/// The point in time that a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The scheduler's own word for it, the same on every host.
    At(Timestamp),
    /// No run began within this period.
    OncePer(Duration),
}

/// Whether to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// This is the first; the number is for [`Runs::finish`].
    Run(i64),
    /// It was run, or is running.
    Done {
        /// Who began it.
        by: String,
        /// When, as the database writes it.
        started_at: String,
    },
}

/// The table of runs.
#[derive(Debug, Clone)]
pub struct Runs {
    schema: Identifier,
}

impl Runs {
    /// The table in this schema.
    #[must_use]
    pub const fn new(schema: Identifier) -> Self {
        Self { schema }
    }

    /// Creates the table if it is missing. Any number of processes may do so at once.
    ///
    /// # Errors
    /// [`Error::Usage`] when the role may not create it.
    pub async fn prepare(&self, database: &Database) -> Result<(), Error> {
        let mut connection = database.connect(&Purpose::Admin).await?;
        let exists = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
            .bind(format!("{}.runs", self.schema.quoted()))
            .fetch_one(&mut connection);
        if !bounded::<bool, _>(database.name, CREATE_LIMIT, exists).await? {
            let creating = self.create(&mut connection);
            match tokio::time::timeout(CREATE_LIMIT * 2, creating).await {
                Ok(done) => done?,
                Err(_) => {
                    let limit = CREATE_LIMIT * 2;
                    let database = database.name;
                    return Err(DatabaseError::TimedOut { database, limit }.into());
                }
            }
        }
        let _closed = tokio::time::timeout(CREATE_LIMIT, connection.close()).await;
        Ok(())
    }

    async fn create(&self, connection: &mut sqlx::PgConnection) -> Result<(), Error> {
        let mut work = connection.begin().await?;
        // `IF NOT EXISTS` alone fails when two create at once.
        let key = Key::derive("projector", &format!("{}.runs", self.schema));
        transaction::lock(&mut work, key, CREATE_LIMIT).await?;
        let sql = self.sql(include_str!("cron/create.sql"));
        match sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *work).await {
            Ok(_) => Ok(work.commit().await?),
            Err(error) => {
                let error = DatabaseError::from(error);
                if error.sqlstate() == Some("42501") {
                    return Err(Error::Usage(format!(
                        "this role may not create the table {}.runs, which remembers what was run: {error}; let \
                         somebody create it, or grant CREATE on the database",
                        self.schema
                    )));
                }
                Err(error.into())
            }
        }
    }

    /// Begins the run of a job, if it is due. The lock of the job must be held, and is: it is an argument.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn begin(
        &self,
        lock: &mut SessionLock,
        job: &str,
        when: When,
        by: &str,
    ) -> Result<Decision, Error> {
        let (connection, database, limit) = lock.parts();
        let (at, period) = match when {
            When::At(at) => (Some(at.as_microsecond()), None),
            When::OncePer(period) => (None, Some(period.as_secs_f64() * PERIOD_TOLERANCE)),
        };
        let sql = self.sql(include_str!("cron/begin.sql"));
        let call = sqlx::query(AssertSqlSafe(sql))
            .bind(job)
            .bind(at)
            .bind(period)
            .bind(by)
            .fetch_one(connection);
        let row = bounded(database.name, limit, call).await?;
        if row.try_get(3)? {
            return Err(Error::Usage(format!(
                "the point in time of `{job}` is more than 90 days ago, and whether it was run for then is not known any \
                 more: rows of {}.runs are kept for 90 days",
                self.schema
            )));
        }
        match row.try_get(0)? {
            Some(id) => Ok(Decision::Run(id)),
            None => Ok(Decision::Done {
                by: row.try_get::<Option<String>, _>(1)?.unwrap_or_default(),
                started_at: row.try_get::<Option<String>, _>(2)?.unwrap_or_default(),
            }),
        }
    }

    /// Notes how a run ended.
    ///
    /// # Errors
    /// When the database fails; the run counts all the same.
    pub async fn finish(
        &self,
        lock: &mut SessionLock,
        run: i64,
        exit_code: i32,
    ) -> Result<(), Error> {
        let (connection, database, limit) = lock.parts();
        let sql = self.sql(
            "UPDATE {schema}.runs SET finished_at = clock_timestamp(), exit_code = $2 WHERE id = $1",
        );
        let call = sqlx::query(AssertSqlSafe(sql)).bind(run).bind(exit_code);
        bounded(database.name, limit, call.execute(connection)).await?;
        Ok(())
    }

    fn sql(&self, template: &str) -> String {
        template.replace("{schema}", &self.schema.quoted())
    }
}
