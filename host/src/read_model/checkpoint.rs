//! The checkpoint of a projection's generation, and the fence in front of it.
//!
//! The lock decides who tries, the fence decides who may: a leader's term and its random identity stand in
//! every checkpoint row, and each change names them. A leader whose term is over matches no row.

use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};
use uuid::Uuid;

use crate::database::error::Error;
use crate::database::identifier::Identifier;
use crate::database::template::render;
use crate::event_store::event::{Anchor, Position};

/// Which term a leader writes under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fence {
    /// The installation.
    pub group: String,
    /// Rises with each claim.
    pub term: i64,
    /// Random for each claim.
    pub term_id: Uuid,
}

/// One build of a projection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GenerationKey {
    /// The projection's name.
    pub projection: String,
    /// From 1.
    pub generation: i32,
}

/// A checkpoint row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// Everything up to here is in the tables.
    pub position: Position,
    /// The last event that was scanned, wanted or not, if any.
    pub last_event: Option<Anchor>,
    /// Term that may change it.
    pub term: i64,
    /// Identity of that term.
    pub term_id: Uuid,
    /// Raised by every command.
    pub revision: i64,
    /// State word.
    pub state: String,
    /// Whether somebody paused it.
    pub paused: bool,
    /// Why it stopped, if it did: category, position, text.
    pub failure: Option<(String, Option<i64>, String)>,
    /// Starts since the last commit.
    pub starts_without_commit: i32,
    /// Position and number of the attempts at a single event.
    pub attempts: Option<(i64, i32)>,
    /// What somebody allowed the leader to take as it finds it: `plugin` or `store`.
    pub accepted: Option<String>,
}

/// Where a batch takes the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// Where it must stand.
    pub from: Position,
    /// Where it goes.
    pub to: Position,
    /// The last event of the stretch, wanted or not, if it has any.
    pub last_event: Option<Anchor>,
    /// The revision under which the batch was made.
    pub revision: i64,
}

/// What a failed compare-and-set means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missed {
    /// Another term writes now: stop leading.
    Fenced,
    /// The same term: a command came in between, or the commit before was already there. Read again.
    Changed,
}

/// The control schema, through which a leader changes checkpoints.
#[derive(Debug, Clone)]
pub struct Checkpoints {
    control: Identifier,
    fence: Fence,
}

impl Checkpoints {
    /// Checkpoints as this term may change them.
    #[must_use]
    pub fn new(control: Identifier, fence: Fence) -> Self {
        Self { control, fence }
    }

    /// The fence.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.fence
    }

    /// The control schema.
    #[must_use]
    pub fn control(&self) -> &Identifier {
        &self.control
    }

    fn sql(&self, template: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(render(template, &[("control", &self.control)]))
    }

    /// Moves a checkpoint inside the caller's transaction, of which it must be the first statement.
    /// False when no row matched: the caller rolls back and asks [`Checkpoints::missed`].
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn advance(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        step: &Step,
    ) -> Result<bool, Error> {
        let template = include_str!("sql/advance.sql");
        self.advance_by(template, connection, key, step).await
    }

    /// The same as a transaction of its own, over a stretch that changes no row.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn advance_alone(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        step: &Step,
    ) -> Result<bool, Error> {
        const TEMPLATE: &str = concat!(
            include_str!("sql/advance.sql"),
            include_str!("sql/alone.sql")
        );
        self.advance_by(TEMPLATE, connection, key, step).await
    }

    async fn advance_by(
        &self,
        template: &str,
        connection: &mut PgConnection,
        key: &GenerationKey,
        step: &Step,
    ) -> Result<bool, Error> {
        let (statement, values) = self.advancing_by(template, key, step)?;
        let done = sqlx::query_with(AssertSqlSafe(statement), values)
            .execute(connection)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// The statement of [`Checkpoints::advance`] with its values, for a larger statement that begins with it. Since all
    /// parts of that share one view of the database, it changes nothing where somebody else had the row since then.
    ///
    /// # Errors
    /// When a value cannot be encoded.
    pub fn advancing(
        &self,
        key: &GenerationKey,
        step: &Step,
    ) -> Result<(String, PgArguments), Error> {
        const TEMPLATE: &str = concat!(
            include_str!("sql/advance.sql"),
            include_str!("sql/untouched.sql")
        );
        self.advancing_by(TEMPLATE, key, step)
    }

    fn advancing_by(
        &self,
        template: &str,
        key: &GenerationKey,
        step: &Step,
    ) -> Result<(String, PgArguments), Error> {
        let (event_position, event_id) = match &step.last_event {
            Some(anchor) => (Some(anchor.position.0), Some(anchor.id.as_str())),
            None => (None, None),
        };
        let mut values = PgArguments::default();
        let bound = [
            values.add(step.to.0),
            values.add(event_position),
            values.add(event_id),
            values.add(&key.projection),
            values.add(key.generation),
            values.add(self.fence.term),
            values.add(self.fence.term_id),
            values.add(step.from.0),
            values.add(step.revision),
        ];
        for value in bound {
            value.map_err(|why| Error::Driver(why.to_string()))?;
        }
        let names = [("control", &self.control)];
        Ok((render(template, &names), values))
    }

    /// Why a change matched no row.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub async fn missed(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
    ) -> Result<Missed, Error> {
        let row = self.load(connection, key).await?;
        let same =
            row.is_some_and(|row| row.term == self.fence.term && row.term_id == self.fence.term_id);
        Ok(if same {
            Missed::Changed
        } else {
            Missed::Fenced
        })
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// When the row cannot be read.
    pub async fn load(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
    ) -> Result<Option<Checkpoint>, Error> {
        let row = sqlx::query(self.sql(include_str!("sql/load.sql")))
            .bind(&key.projection)
            .bind(key.generation)
            .fetch_optional(connection)
            .await?;
        row.as_ref().map(decode).transpose().map_err(Error::from)
    }

    /// Counts a start. False when the row is not this term's, or paused, or stopped.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn start(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
    ) -> Result<bool, Error> {
        let done = self
            .bind_key(include_str!("sql/start.sql"), key)
            .execute(connection)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Writes a state word, if it changed.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn state(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        state: &str,
    ) -> Result<(), Error> {
        self.bind_key(include_str!("sql/state.sql"), key)
            .bind(state)
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Makes a run begin anew from here, where the row stands behind what the run has committed.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn look_again(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        position: Position,
    ) -> Result<(), Error> {
        self.bind_key(include_str!("sql/look_again.sql"), key)
            .bind(position.0)
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Writes down an attempt at a single event; returns its number, from 1, or none when the row changed.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn attempt(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        position: Position,
        revision: i64,
    ) -> Result<Option<i32>, Error> {
        let row = self
            .bind_key(include_str!("sql/attempt.sql"), key)
            .bind(position.0)
            .bind(revision)
            .fetch_optional(connection)
            .await?;
        Ok(row.map(|row| row.try_get(0)).transpose()?)
    }

    /// Forgets the attempts at an event.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn forget_attempts(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        position: Position,
    ) -> Result<(), Error> {
        self.bind_key(include_str!("sql/forget_attempts.sql"), key)
            .bind(position.0)
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Stops a projection. False when the row changed in between.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn fail(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        revision: i64,
        failure: &Failure<'_>,
    ) -> Result<bool, Error> {
        let done = self
            .bind_key(include_str!("sql/fail.sql"), key)
            .bind(revision)
            .bind(failure.category)
            .bind(failure.position.map(|position| position.0))
            .bind(failure.event_type)
            .bind(failure.event_id)
            .bind(failure.message.replace('\0', "\u{fffd}"))
            .bind(failure.stream)
            .bind(failure.table)
            .bind(failure.column)
            .execute(connection)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// What somebody allowed was used, or there was nothing to use it for.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn accepted(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
    ) -> Result<(), Error> {
        self.bind_key(include_str!("sql/accepted.sql"), key)
            .execute(connection)
            .await?;
        Ok(())
    }

    /// The checkpoint goes back to where its generation began, inside the caller's transaction, and the dead
    /// letters of the rows that go with it are forgotten. False when it is not this term's.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn begin_anew(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
    ) -> Result<bool, Error> {
        let done = self
            .bind_key(include_str!("sql/begin_anew.sql"), key)
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() == 1 {
            sqlx::query(self.sql(include_str!("sql/forget_dead_letters.sql")))
                .bind(&key.projection)
                .bind(key.generation)
                .execute(connection)
                .await?;
        }
        Ok(done.rows_affected() == 1)
    }

    /// Why another plugin runs than the one in this leader's folder; none when it is that one.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn note(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        note: Option<&str>,
    ) -> Result<(), Error> {
        self.bind_key(include_str!("sql/note.sql"), key)
            .bind(note)
            .execute(connection)
            .await?;
        Ok(())
    }

    /// Goes on with another store, whose head is `head`, if somebody allowed it. What stands in it up to the
    /// checkpoint's new place ends with `last`.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn accept_store(
        &self,
        connection: &mut PgConnection,
        key: &GenerationKey,
        head: Position,
        last: Option<&Anchor>,
    ) -> Result<bool, Error> {
        let done = self
            .bind_key(include_str!("sql/accept_store.sql"), key)
            .bind(head.0)
            .bind(last.map(|last| last.position.0))
            .bind(last.map(|last| last.id.as_str()))
            .execute(connection)
            .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Takes part in the caller's transaction: false when the term is over, else it cannot end before that
    /// transaction does. For every write beside a checkpoint's own row.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn hold_term(&self, connection: &mut PgConnection) -> Result<bool, Error> {
        self.term_row(connection, include_str!("sql/claimed.sql"))
            .await
    }

    /// As [`Checkpoints::hold_term`], one transaction at a time: for those that create schemas, which would
    /// otherwise meet each other.
    ///
    /// # Errors
    /// When the database does not take the statement.
    pub async fn hold_term_alone(&self, connection: &mut PgConnection) -> Result<bool, Error> {
        self.term_row(connection, include_str!("sql/claimed_alone.sql"))
            .await
    }

    async fn term_row(&self, connection: &mut PgConnection, template: &str) -> Result<bool, Error> {
        let row = sqlx::query(self.sql(template))
            .bind(&self.fence.group)
            .bind(self.fence.term)
            .bind(self.fence.term_id)
            .fetch_optional(connection)
            .await?;
        Ok(row.is_some())
    }

    fn bind_key(
        &self,
        template: &str,
        key: &GenerationKey,
    ) -> sqlx::query::Query<'_, sqlx::Postgres, sqlx::postgres::PgArguments> {
        sqlx::query(self.sql(template))
            .bind(key.projection.clone())
            .bind(key.generation)
            .bind(self.fence.term)
            .bind(self.fence.term_id)
    }
}

/// Why a projection stops.
#[derive(Debug, Clone, Copy, Default)]
pub struct Failure<'a> {
    /// A word from a closed set.
    pub category: &'a str,
    /// The event, when one is to blame.
    pub position: Option<Position>,
    /// Its type.
    pub event_type: Option<&'a str>,
    /// Its identifier.
    pub event_id: Option<&'a str>,
    /// Its stream.
    pub stream: Option<&'a str>,
    /// Table of a write that was refused.
    pub table: Option<&'a str>,
    /// Its column.
    pub column: Option<&'a str>,
    /// What happened and what to do.
    pub message: &'a str,
}

fn decode(row: &PgRow) -> Result<Checkpoint, sqlx::Error> {
    let category: Option<String> = row.try_get(8)?;
    let attempts: Option<i64> = row.try_get(12)?;
    Ok(Checkpoint {
        position: Position(row.try_get(0)?),
        last_event: Anchor::of_columns(row.try_get(1)?, row.try_get(2)?),
        term: row.try_get(3)?,
        term_id: row.try_get(4)?,
        revision: row.try_get(5)?,
        state: row.try_get(6)?,
        paused: row.try_get(7)?,
        failure: match category {
            Some(category) => Some((
                category,
                row.try_get(9)?,
                row.try_get::<Option<String>, _>(10)?.unwrap_or_default(),
            )),
            None => None,
        },
        starts_without_commit: row.try_get(11)?,
        attempts: match attempts {
            Some(position) => Some((position, row.try_get(13)?)),
            None => None,
        },
        accepted: row.try_get(14)?,
    })
}
