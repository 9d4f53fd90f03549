//! What commands read and change of dead letters. Works without any replica running.
//!
//! Every change takes the checkpoints' rows first, as a batch does, and raises their revision: a batch that was
//! made before meets it in its fence. So an event that arrives in the same moment cannot overtake those that
//! wait.

use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use crate::database::error::Error;
use crate::database::identifier::Identifier;
use crate::database::template::render;

/// The dead letters of a control schema, for commands.
#[derive(Debug, Clone)]
pub struct Letters {
    schema: Identifier,
}

/// Which letters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter<'a> {
    /// Of this projection.
    pub projection: Option<&'a str>,
    /// With those that are resolved.
    pub resolved: bool,
    /// Only these.
    pub ids: Option<&'a [i64]>,
    /// At most so many; 0 for all.
    pub letters_max: i64,
}

/// A letter as people see it. Times are microseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// Its number.
    pub id: i64,
    /// Whose it is.
    pub projection: String,
    /// Which build of it.
    pub generation: i32,
    /// Where the event stands.
    pub position: i64,
    /// Its stream.
    pub stream: String,
    /// Its identifier.
    pub event_id: String,
    /// Its type.
    pub event_type: String,
    /// A word from a closed set.
    pub category: String,
    /// What happened.
    pub message: String,
    /// Table of a write that was refused.
    pub table: Option<String>,
    /// Its column.
    pub column: Option<String>,
    /// Whether later events of the stream wait.
    pub parked: bool,
    /// Attempts before it became a letter; 0 when it only waits.
    pub attempts: i32,
    /// When it became one.
    pub created_at: i64,
    /// When it last did not pass.
    pub failed_at: i64,
    /// When it is to be tried again.
    pub retry_at: Option<i64>,
    /// Whether all that follow are, too.
    pub retry_following: bool,
    /// Attempts of the present request.
    pub retry_attempts: i32,
    /// When it was resolved, and how.
    pub resolved: Option<(i64, String)>,
    /// The first open letter of its stream; itself when it is that.
    pub first: Option<i64>,
    /// Open letters behind it in its stream.
    pub behind: i64,
}

/// Open letters of one projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Count {
    /// Whose.
    pub projection: String,
    /// Of which build.
    pub generation: i32,
    /// Letters.
    pub open: i64,
    /// Streams that wait.
    pub parked_streams: i64,
    /// Age of the oldest letter in seconds.
    pub oldest_seconds: i64,
}

/// What a change came to, by letter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    /// These changed.
    pub changed: Vec<Described>,
    /// These were like that already.
    pub unchanged: Vec<Described>,
}

/// Why nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such letter.
    Unknown(i64),
    /// Another one of its stream comes first.
    NotFirst {
        /// The one that was asked for.
        letter: Box<Described>,
        /// The one that comes first.
        first: i64,
    },
    /// It was resolved in the other way.
    Resolved(Box<Described>),
}

/// Who does what, for the audit.
struct Act<'a> {
    statement: &'static str,
    action: &'static str,
    resolution: &'static str,
    following: bool,
    actor: &'a str,
}

impl Letters {
    /// The letters of this control schema.
    #[must_use]
    pub fn new(schema: Identifier) -> Self {
        Self { schema }
    }

    /// Letters, by projection and position.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub async fn list(
        &self,
        connection: &mut PgConnection,
        filter: Filter<'_>,
    ) -> Result<Vec<Described>, Error> {
        let letters_max = (filter.letters_max > 0).then_some(filter.letters_max);
        let rows = sqlx::query(self.sql(include_str!("sql/list.sql")))
            .bind(filter.projection)
            .bind(filter.resolved)
            .bind(filter.ids)
            .bind(letters_max)
            .fetch_all(connection)
            .await?;
        let described: Result<_, sqlx::Error> = rows.iter().map(describe).collect();
        described.map_err(Error::from)
    }

    /// How many letters are open, for each projection that has some.
    ///
    /// # Errors
    /// When the tables cannot be read.
    pub async fn counts(&self, connection: &mut PgConnection) -> Result<Vec<Count>, Error> {
        let rows = sqlx::query(self.sql(include_str!("sql/counts.sql")))
            .fetch_all(connection)
            .await?;
        let counts = rows.iter().map(|row| {
            Ok(Count {
                projection: row.try_get(0)?,
                generation: row.try_get(1)?,
                open: row.try_get(2)?,
                parked_streams: row.try_get(3)?,
                oldest_seconds: row.try_get(4)?,
            })
        });
        counts
            .collect::<Result<_, sqlx::Error>>()
            .map_err(Error::from)
    }

    /// Asks the leader to try letters again; each must be the first of its stream, or stand behind another one
    /// that is asked for.
    ///
    /// # Errors
    /// When the change is refused by the database.
    pub async fn retry(
        &self,
        connection: &mut PgConnection,
        ids: &[i64],
        following: bool,
        actor: &str,
    ) -> Result<Result<Done, Refusal>, Error> {
        let act = Act {
            statement: include_str!("sql/request_retry.sql"),
            action: "dead-letter retry",
            resolution: super::RETRIED,
            following,
            actor,
        };
        self.change(connection, ids, &act).await
    }

    /// A letter that is still to be tried, with its projection: one of these, or with `following` one of their
    /// streams.
    ///
    /// # Errors
    /// When the table cannot be read.
    pub async fn pending(
        &self,
        connection: &mut PgConnection,
        ids: &[i64],
        following: bool,
    ) -> Result<Option<(i64, String)>, Error> {
        let row = sqlx::query(self.sql(include_str!("sql/pending.sql")))
            .bind(ids)
            .bind(following)
            .fetch_optional(connection)
            .await?;
        let pending = row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?)));
        pending
            .transpose()
            .map_err(|error: sqlx::Error| error.into())
    }

    /// Gives letters up: their events will never be applied. A stream of which none is left goes on.
    ///
    /// # Errors
    /// When the change is refused by the database.
    pub async fn discard(
        &self,
        connection: &mut PgConnection,
        ids: &[i64],
        actor: &str,
    ) -> Result<Result<Done, Refusal>, Error> {
        let act = Act {
            statement: include_str!("sql/discard.sql"),
            action: "dead-letter discard",
            resolution: "discarded",
            following: false,
            actor,
        };
        self.change(connection, ids, &act).await
    }

    async fn change(
        &self,
        connection: &mut PgConnection,
        ids: &[i64],
        act: &Act<'_>,
    ) -> Result<Result<Done, Refusal>, Error> {
        let mut transaction = connection.begin().await?;
        // Waits for a batch that is being committed, and keeps the next one out.
        sqlx::query(self.sql(include_str!("sql/lock.sql")))
            .bind(ids)
            .fetch_all(&mut *transaction)
            .await?;
        let filter = Filter {
            resolved: true,
            ids: Some(ids),
            ..Filter::default()
        };
        let letters = self.list(&mut transaction, filter).await?;
        if let Some(refusal) = refuse(ids, &letters, act) {
            return Ok(Err(refusal));
        }
        let rows = sqlx::query(self.sql(act.statement))
            .bind(ids)
            .bind(act.following)
            .fetch_all(&mut *transaction)
            .await?;
        let changed: Vec<i64> = rows
            .iter()
            .map(|row| row.try_get(0))
            .collect::<Result<_, _>>()?;
        if !changed.is_empty() {
            for statement in [
                include_str!("sql/release_resolved.sql"),
                include_str!("sql/raise_revision.sql"),
            ] {
                sqlx::query(self.sql(statement))
                    .bind(&changed)
                    .execute(&mut *transaction)
                    .await?;
            }
            sqlx::query(self.sql(include_str!("sql/audit.sql")))
                .bind(&changed)
                .bind(act.actor)
                .bind(act.action)
                .bind(act.following)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await?;
        let (changed, unchanged) = letters
            .into_iter()
            .partition(|letter| changed.contains(&letter.id));
        Ok(Ok(Done { changed, unchanged }))
    }

    fn sql(&self, template: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(render(template, &[("control", &self.schema)]))
    }
}

fn refuse(ids: &[i64], letters: &[Described], act: &Act<'_>) -> Option<Refusal> {
    let unknown = ids
        .iter()
        .find(|id| !letters.iter().any(|letter| letter.id == **id));
    if let Some(&id) = unknown {
        return Some(Refusal::Unknown(id));
    }
    let otherwise = |letter: &&Described| {
        letter
            .resolved
            .as_ref()
            .is_some_and(|(_, how)| how != act.resolution)
    };
    if let Some(letter) = letters.iter().find(otherwise) {
        return Some(Refusal::Resolved(Box::new(letter.clone())));
    }
    if act.resolution != super::RETRIED {
        return None;
    }
    // In each stream the letters that are asked for must be the first ones, without a hole.
    for letter in letters.iter().filter(|letter| letter.resolved.is_none()) {
        let asked = letters.iter().filter(|other| {
            other.resolved.is_none()
                && (&other.projection, other.generation, &other.stream)
                    == (&letter.projection, letter.generation, &letter.stream)
        });
        let same: Vec<&Described> = asked.collect();
        let before = same
            .iter()
            .filter(|other| other.position < letter.position)
            .count();
        let head = same.iter().map(|other| other.behind).max().unwrap_or(0);
        let is_head = same.iter().any(|other| other.first == Some(other.id));
        if !is_head || i64::try_from(before).unwrap_or(0) != head - letter.behind {
            return Some(Refusal::NotFirst {
                first: letter.first.unwrap_or(letter.id),
                letter: Box::new(letter.clone()),
            });
        }
    }
    None
}

fn describe(row: &PgRow) -> Result<Described, sqlx::Error> {
    let resolved: (Option<i64>, Option<String>) = (row.try_get(18)?, row.try_get(19)?);
    Ok(Described {
        id: row.try_get(0)?,
        projection: row.try_get(1)?,
        generation: row.try_get(2)?,
        position: row.try_get(3)?,
        stream: row.try_get(4)?,
        event_id: row.try_get(5)?,
        event_type: row.try_get(6)?,
        category: row.try_get(7)?,
        message: row.try_get(8)?,
        table: row.try_get(9)?,
        column: row.try_get(10)?,
        parked: row.try_get(11)?,
        attempts: row.try_get(12)?,
        created_at: row.try_get(13)?,
        failed_at: row.try_get(14)?,
        retry_at: row.try_get(15)?,
        retry_following: row.try_get(16)?,
        retry_attempts: row.try_get(17)?,
        resolved: resolved.0.zip(resolved.1),
        first: row.try_get(20)?,
        behind: row.try_get(21)?,
    })
}
