//! Trying dead letters again, as the leader does it on request.
//!
//! Promises: only the first open letter of a stream is tried; each request has the whole budget of attempts; a
//! letter is resolved in the transaction of its rows, which passes the same fence as a batch.

use std::time::Duration;

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};

use crate::database::error::Error;
use crate::event_store::event::Position;
use crate::read_model::checkpoint::{Checkpoints, GenerationKey};

/// Resolution of a letter that was tried again and passed.
pub const RETRIED: &str = "retried";

/// A letter that is to be tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Due {
    /// The letter.
    pub id: i64,
    /// Where its event stands.
    pub position: Position,
    /// Its stream.
    pub stream: String,
    /// Its event's identifier.
    pub event_id: String,
    /// Attempts of this request that have ended.
    pub attempts: i32,
    /// How long from now.
    pub wait: Duration,
}

/// How an attempt ended that did not pass.
#[derive(Debug, Clone, Copy)]
pub struct Outcome<'a> {
    /// A word from a closed set.
    pub category: &'a str,
    /// What happened.
    pub message: &'a str,
    /// Table and column of a write that was refused.
    pub place: (Option<&'a str>, Option<&'a str>),
    /// When it is tried again; none ends the request, and those of the letters behind it.
    pub again: Option<Duration>,
}

impl Checkpoints {
    /// The letter whose time comes next.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub async fn next_due(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
    ) -> Result<Option<Due>, Error> {
        let row = sqlx::query(self.letter_sql(include_str!("sql/next_due.sql")))
            .bind(&key.projection)
            .bind(key.generation)
            .fetch_optional(connection)
            .await?;
        row.as_ref().map(due).transpose().map_err(Error::from)
    }

    /// Writes down that an attempt begins; returns how many were begun and not ended, this one included. None
    /// when nobody wants it any more, or the term is over.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn begin_retry(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        id: i64,
    ) -> Result<Option<i32>, Error> {
        let row = self
            .of_term(include_str!("sql/begin_retry.sql"), key)
            .bind(id)
            .fetch_optional(connection)
            .await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    /// An attempt ended for the database's sake: it does not count.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn forget_retry(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        id: i64,
    ) -> Result<(), Error> {
        self.of_term(include_str!("sql/forget_retry.sql"), key)
            .bind(id)
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Writes down how an attempt ended.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn retry_failed(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        id: i64,
        outcome: &Outcome<'_>,
    ) -> Result<(), Error> {
        self.of_term(include_str!("sql/retry_failed.sql"), key)
            .bind(id)
            .bind(outcome.category)
            .bind(outcome.message.replace('\0', "\u{fffd}"))
            .bind(outcome.place.0)
            .bind(outcome.place.1)
            .bind(outcome.again.map(|wait| wait.as_secs_f64()))
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Resolves a letter that passed, hands a request that goes on to the next one of its stream, and releases
    /// the stream when there is none. Part of the transaction of its rows, behind [`Checkpoints::touch`]. False
    /// when somebody else resolved it.
    ///
    /// # Errors
    /// When the database does not take a statement.
    pub async fn resolve(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        due: &Due,
    ) -> Result<bool, Error> {
        let row = sqlx::query(self.letter_sql(include_str!("sql/resolve.sql")))
            .bind(due.id)
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = row else { return Ok(false) };
        if row.try_get(0)? {
            sqlx::query(self.letter_sql(include_str!("sql/pass_on.sql")))
                .bind(&key.projection)
                .bind(key.generation)
                .bind(&due.stream)
                .execute(&mut *connection)
                .await?;
        }
        sqlx::query(self.letter_sql(include_str!("sql/release.sql")))
            .bind(&key.projection)
            .bind(key.generation)
            .bind(vec![due.stream.as_str()])
            .execute(&mut *connection)
            .await?;
        Ok(true)
    }

    /// The fence of a retried letter: takes the checkpoint's row without moving it. False when it is not as it
    /// was read.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn touch(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        (revision, position): (i64, Position),
    ) -> Result<bool, Error> {
        let done = self
            .of_term(include_str!("sql/touch.sql"), key)
            .bind(revision)
            .bind(position.0)
            .execute(connection)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    fn of_term(
        &self,
        template: &str,
        key: &GenerationKey,
    ) -> sqlx::query::Query<'_, sqlx::Postgres, sqlx::postgres::PgArguments> {
        sqlx::query(self.letter_sql(template))
            .bind(key.projection.clone())
            .bind(key.generation)
            .bind(self.fence().term)
            .bind(self.fence().term_id)
    }

    fn letter_sql(&self, template: &str) -> AssertSqlSafe<String> {
        super::sql(self, template)
    }
}

fn due(row: &PgRow) -> Result<Due, sqlx::Error> {
    let wait: f64 = row.try_get(5)?;
    Ok(Due {
        id: row.try_get(0)?,
        position: Position(row.try_get(1)?),
        stream: row.try_get(2)?,
        event_id: row.try_get(3)?,
        attempts: row.try_get(4)?,
        wait: Duration::try_from_secs_f64(wait).unwrap_or_default(),
    })
}
