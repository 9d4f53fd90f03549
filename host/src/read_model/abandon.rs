//! Retires a projection: its tables, views, letters and rows go, in one transaction.
//!
//! Promises: a batch that runs ends first, since the checkpoint's row goes before all others; a leader that comes too
//! late finds no checkpoint and commits nothing. What somebody else has built on the tables is never dropped: it is
//! named, and nothing goes.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _};

use crate::database::error::Error;
use crate::database::identifier::Identifier;
use crate::database::template::render;

/// What went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abandoned {
    /// Its tables.
    pub tables: Vec<String>,
    /// Dead letters, resolved ones too.
    pub letters: u64,
}

/// Retires a projection; none when there is none of this name.
///
/// # Errors
/// When the database refuses, as when somebody's view hangs on a table.
pub async fn abandon(
    connection: &mut PgConnection,
    control: &Identifier,
    readers: &Identifier,
    projection: &str,
    actor: &str,
) -> Result<Option<Abandoned>, Error> {
    let sql = |template| AssertSqlSafe(render(template, &[("control", control)]));
    let mut transaction = connection.begin().await?;
    let generations = sqlx::query(sql(include_str!("sql/abandon_checkpoints.sql")))
        .bind(projection)
        .fetch_all(&mut *transaction)
        .await?;
    if generations.is_empty() {
        return Ok(None);
    }
    let mut tables = Vec::new();
    for row in &generations {
        let schema = identifier(row.try_get(0)?)?;
        tables.extend(drop_generation(&mut transaction, readers, &schema).await?);
    }
    let letters = sqlx::query(sql(include_str!("sql/abandon_letters.sql")))
        .bind(projection)
        .execute(&mut *transaction)
        .await?
        .rows_affected();
    sqlx::query(sql(include_str!("sql/abandon_generations.sql")))
        .bind(projection)
        .execute(&mut *transaction)
        .await?;
    let detail = serde_json::json!({ "tables": tables, "letters": letters });
    sqlx::query(sql(include_str!("sql/audit.sql")))
        .bind(actor)
        .bind("abandon")
        .bind(projection)
        .bind(detail.to_string())
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(Some(Abandoned { tables, letters }))
}

/// Drops views, tables and schema of a generation.
async fn drop_generation(
    connection: &mut PgConnection,
    readers: &Identifier,
    schema: &Identifier,
) -> Result<Vec<String>, Error> {
    let relations = sqlx::query(include_str!("sql/abandon_relations.sql"))
        .bind(readers.as_str())
        .bind(schema.as_str())
        .fetch_all(&mut *connection)
        .await?;
    let mut tables = Vec::new();
    // The views come first.
    for row in &relations {
        let name = identifier(row.try_get(1)?)?;
        let statement = if row.try_get(0)? {
            format!("DROP VIEW {}.{}", readers.quoted(), name.quoted())
        } else {
            tables.push(name.as_str().to_owned());
            format!("DROP TABLE {}.{}", schema.quoted(), name.quoted())
        };
        connection.execute(AssertSqlSafe(statement)).await?;
    }
    let statement = format!("DROP SCHEMA IF EXISTS {}", schema.quoted());
    connection.execute(AssertSqlSafe(statement)).await?;
    Ok(tables)
}

fn identifier(name: String) -> Result<Identifier, Error> {
    Identifier::new(name).map_err(|error| Error::Driver(error.to_string()))
}
