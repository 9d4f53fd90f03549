//! What commands read and change in the control tables. Works without any replica running.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use crate::database::error::Error;
use crate::database::identifier::Identifier;
use crate::database::template::render;
use crate::event_store::event::Position;

/// A projection as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection {
    /// Its name.
    pub name: String,
    /// The live generation.
    pub generation: i32,
    /// Digest of its plugin.
    pub sha256: String,
    /// Version of its plugin.
    pub plugin_version: String,
    /// State word.
    pub state: String,
    /// Checkpoint.
    pub position: Position,
    /// Why it stopped, if it did.
    pub failure: Option<Failure>,
    /// Why it was paused, if it was and somebody said.
    pub paused_reason: Option<String>,
    /// Why another plugin runs than the one in the leader's folder, or none.
    pub note: Option<String>,
}

/// A failure as people see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A word from a closed set.
    pub category: String,
    /// The event's position, when one is to blame.
    pub position: Option<i64>,
    /// Its type.
    pub event_type: Option<String>,
    /// What happened.
    pub message: String,
    /// When, in microseconds since 1970.
    pub at: i64,
}

/// What the leader last wrote of a store.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// Everything up to here is settled.
    pub settled_upto: Position,
    /// Highest position that was seen.
    pub head: Position,
    /// The gap that is waited for: position, since when (microseconds since 1970), writers as JSON.
    pub held: Option<(Position, i64, serde_json::Value)>,
}

/// The control schema, for commands.
#[derive(Debug, Clone)]
pub struct Control {
    schema: Identifier,
}

impl Control {
    /// The control tables in this schema.
    #[must_use]
    pub fn new(schema: Identifier) -> Self {
        Self { schema }
    }

    /// Where they are.
    #[must_use]
    pub fn schema(&self) -> &Identifier {
        &self.schema
    }

    fn sql(&self, template: &str) -> AssertSqlSafe<String> {
        AssertSqlSafe(render(template, &[("control", &self.schema)]))
    }

    /// All projections, by name.
    ///
    /// # Errors
    /// When the tables cannot be read.
    pub async fn list(&self, connection: &mut PgConnection) -> Result<Vec<Projection>, Error> {
        let rows = sqlx::query(self.sql(include_str!("sql/list.sql")))
            .fetch_all(connection)
            .await?;
        let decoded = rows.iter().map(|row| {
            let category: Option<String> = row.try_get(6)?;
            let failure = match category {
                Some(category) => Some(Failure {
                    category,
                    position: row.try_get(7)?,
                    event_type: row.try_get(8)?,
                    message: row.try_get::<Option<String>, _>(9)?.unwrap_or_default(),
                    at: row.try_get::<Option<i64>, _>(10)?.unwrap_or_default(),
                }),
                None => None,
            };
            Ok(Projection {
                name: row.try_get(0)?,
                generation: row.try_get(1)?,
                sha256: row.try_get(2)?,
                plugin_version: row.try_get(3)?,
                state: row.try_get(4)?,
                position: Position(row.try_get(5)?),
                failure,
                paused_reason: row.try_get(11)?,
                note: row.try_get(13)?,
            })
        });
        decoded
            .collect::<Result<_, sqlx::Error>>()
            .map_err(Error::from)
    }

    /// What the leader last wrote of the stores.
    ///
    /// # Errors
    /// When the tables cannot be read.
    pub async fn sources(&self, connection: &mut PgConnection) -> Result<Vec<Source>, Error> {
        let rows = sqlx::query(self.sql(include_str!("sql/sources.sql")))
            .fetch_all(connection)
            .await?;
        let decoded = rows.iter().map(|row| {
            let position: Option<i64> = row.try_get(3)?;
            let held = match position {
                Some(position) => {
                    let by: Option<String> = row.try_get(5)?;
                    let by = by
                        .and_then(|text| serde_json::from_str(&text).ok())
                        .unwrap_or_default();
                    Some((
                        Position(position),
                        row.try_get::<Option<i64>, _>(4)?.unwrap_or_default(),
                        by,
                    ))
                }
                None => None,
            };
            Ok(Source {
                settled_upto: Position(row.try_get(1)?),
                head: Position(row.try_get(2)?),
                held,
            })
        });
        decoded
            .collect::<Result<_, sqlx::Error>>()
            .map_err(Error::from)
    }

    /// Pauses a projection. False when it was paused already.
    ///
    /// # Errors
    /// When the change is refused.
    pub async fn pause(
        &self,
        connection: &mut PgConnection,
        projection: &str,
        reason: Option<&str>,
        actor: &str,
    ) -> Result<bool, Error> {
        let detail = serde_json::json!({ "reason": reason });
        let statement = include_str!("sql/pause.sql");
        self.change(
            connection,
            statement,
            projection,
            reason,
            &Act {
                actor,
                action: "pause",
                detail,
            },
        )
        .await
    }

    /// Resumes a paused or stopped projection. `accepted` is `plugin` or `store`, when the leader may take one of
    /// them as it finds it. False when it was neither paused nor stopped and that is allowed already, or not asked.
    ///
    /// # Errors
    /// When the change is refused.
    pub async fn resume(
        &self,
        connection: &mut PgConnection,
        projection: &str,
        accepted: Option<&str>,
        actor: &str,
    ) -> Result<bool, Error> {
        let detail = serde_json::json!({ "accepted": accepted });
        let statement = include_str!("sql/resume.sql");
        self.change(
            connection,
            statement,
            projection,
            accepted,
            &Act {
                actor,
                action: "resume",
                detail,
            },
        )
        .await
    }

    /// Passes the event at which a projection stands failed, which becomes a dead letter.
    ///
    /// # Errors
    /// When the change is refused.
    pub async fn skip(
        &self,
        connection: &mut PgConnection,
        projection: &str,
        position: i64,
        actor: &str,
    ) -> Result<Skipped, Error> {
        let mut transaction = connection.begin().await?;
        let done = sqlx::query(self.sql(include_str!("sql/skip.sql")))
            .bind(projection)
            .bind(position)
            .execute(&mut *transaction)
            .await?;
        if done.rows_affected() > 0 {
            let act = Act {
                actor,
                action: "skip",
                detail: serde_json::json!({ "position": position }),
            };
            self.audit(&mut transaction, projection, &act).await?;
            transaction.commit().await?;
            return Ok(Skipped::Yes);
        }
        let row = sqlx::query(self.sql(include_str!("sql/skipped.sql")))
            .bind(projection)
            .bind(position)
            .fetch_one(&mut *transaction)
            .await?;
        Ok(match row.try_get(0)? {
            true => Skipped::Already,
            false => Skipped::StandsElsewhere,
        })
    }

    /// One change and its trace, or neither. Both statements take the projection and one text.
    async fn change(
        &self,
        connection: &mut PgConnection,
        statement: &str,
        projection: &str,
        text: Option<&str>,
        act: &Act<'_>,
    ) -> Result<bool, Error> {
        let mut transaction = connection.begin().await?;
        let done = sqlx::query(self.sql(statement))
            .bind(projection)
            .bind(text)
            .execute(&mut *transaction)
            .await?;
        let changed = done.rows_affected() > 0;
        if changed {
            self.audit(&mut transaction, projection, act).await?;
        }
        transaction.commit().await?;
        Ok(changed)
    }

    async fn audit(
        &self,
        connection: &mut PgConnection,
        projection: &str,
        act: &Act<'_>,
    ) -> Result<(), Error> {
        sqlx::query(self.sql(include_str!("sql/audit.sql")))
            .bind(act.actor)
            .bind(act.action)
            .bind(projection)
            .bind(act.detail.to_string())
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// What `skip` came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skipped {
    /// The event is a dead letter now.
    Yes,
    /// It was before.
    Already,
    /// The projection does not stand failed there. Nothing was changed.
    StandsElsewhere,
}

/// Who does what, for the audit.
struct Act<'a> {
    actor: &'a str,
    action: &'a str,
    detail: serde_json::Value,
}
