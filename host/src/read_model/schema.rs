//! Generations: the schema that holds a projection's tables, and the views that readers use.

mod anew;
mod ddl;
mod indexes;
mod rehearsal;

pub use anew::{Emptied, begin_anew, go_on};
pub use rehearsal::rehearse;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _};
use thiserror::Error;

use crate::database::error::Error as DatabaseError;
use crate::database::identifier::{Identifier, IdentifierError};
use crate::database::template::render;
use crate::error::{Class, Code};
use crate::event_store::event::{Anchor, Position};
use crate::plugin::manifest::{Manifest, Table};

use super::checkpoint::{Checkpoints, GenerationKey};
use super::components;

/// Where a generation's rows are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// Which one.
    pub key: GenerationKey,
    /// The schema of its tables.
    pub schema: Identifier,
    /// Digest of the plugin that fills it.
    pub sha256: String,
    /// Version of that plugin.
    pub plugin_version: String,
    /// What that plugin declared, as JSON.
    pub description: serde_json::Value,
    /// The position after which it began.
    pub start: Position,
    /// Digests of the plugins that filled it before.
    pub former: Vec<String>,
    /// Why another plugin runs than the one in the leader's folder.
    pub note: Option<String>,
}

/// A plugin as the tables know it.
#[derive(Debug, Clone, Copy)]
pub struct Filler<'a> {
    /// What it declares.
    pub manifest: &'a Manifest,
    /// Digest of its file.
    pub sha256: &'a str,
    /// Its file.
    pub bytes: &'a [u8],
}

/// Why a projection's tables cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// Another leader has taken over.
    #[error("the term is over")]
    Fenced,
    /// The projection's name gives no schema name.
    #[error(
        "{}: projection {projection:?} cannot have a schema: {source}",
        Code(703)
    )]
    Name {
        /// The projection.
        projection: String,
        /// What is wrong with the name.
        source: IdentifierError,
    },
    /// The schema is there, but not in the control tables.
    #[error(
        "{}: projection {projection:?}: the schema {schema} exists already and is not this host's; drop or rename it",
        Code(703)
    )]
    SchemaTaken {
        /// The projection.
        projection: String,
        /// The schema.
        schema: Identifier,
    },
    /// Another projection has such a table.
    #[error(
        "{}: projection {projection:?}: the table {table:?} belongs to the projection {owner:?} already; rename one of them",
        Code(703)
    )]
    TableTaken {
        /// The projection.
        projection: String,
        /// The table.
        table: String,
        /// Whose it is.
        owner: String,
    },
    /// Something else bears the view's name.
    #[error(
        "{}: projection {projection:?}: {schema}.{table} exists already and is not this host's view; rename it, or set another [read_model] schema",
        Code(703)
    )]
    ViewTaken {
        /// The projection.
        projection: String,
        /// The readers' schema.
        schema: Identifier,
        /// The table.
        table: String,
    },
    /// Something of somebody else hangs on a table that has to go.
    #[error(
        "{}: projection {projection:?}: {table} cannot be made anew: {dependents}; drop that first, or put the old plugin back",
        Code(703)
    )]
    TableUsed {
        /// The projection.
        projection: String,
        /// The table.
        table: String,
        /// What the database says of what depends on it.
        dependents: String,
    },
    /// The database refused.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

impl From<sqlx::Error> for Error {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

impl Error {
    /// Whether trying again may help.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Fenced => Class::Transient,
            Self::Database(error) if error.class() == Class::Transient => Class::Transient,
            _ => Class::Fatal,
        }
    }
}

/// The live generation of a projection, if it has one.
///
/// # Errors
/// When the control tables cannot be read.
pub async fn live(
    connection: &mut PgConnection,
    control: &Identifier,
    projection: &str,
) -> Result<Option<Generation>, Error> {
    let statement = render(
        include_str!("sql/live_generation.sql"),
        &[("control", control)],
    );
    let Some(row) = sqlx::query(AssertSqlSafe(statement))
        .bind(projection)
        .fetch_optional(connection)
        .await?
    else {
        return Ok(None);
    };
    let schema: String = row.try_get(1)?;
    let description: String = row.try_get(4)?;
    Ok(Some(Generation {
        key: GenerationKey {
            projection: projection.to_owned(),
            generation: row.try_get(0)?,
        },
        schema: Identifier::new(schema).map_err(|source| Error::Name {
            projection: projection.to_owned(),
            source,
        })?,
        sha256: row.try_get(2)?,
        plugin_version: row.try_get(3)?,
        description: serde_json::from_str(&description).unwrap_or_default(),
        start: Position(row.try_get(5)?),
        former: row.try_get(6)?,
        note: row.try_get(7)?,
    }))
}

/// Where a projection begins.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// After this position.
    pub position: Position,
    /// The last event up to there, if any.
    pub anchor: Option<Anchor>,
}

/// The live generation of a projection; creates the first one, with its tables and views, when there is none.
///
/// # Errors
/// When the term is over, a name is taken, or the database refuses.
pub async fn ensure(
    connection: &mut PgConnection,
    checkpoints: &Checkpoints,
    readers: &Identifier,
    filler: Filler<'_>,
    start: Start,
) -> Result<Generation, Error> {
    let Filler {
        manifest,
        sha256,
        bytes,
    } = filler;
    let mut transaction = connection.begin().await?;
    if !checkpoints.hold_term_alone(&mut transaction).await? {
        return Err(Error::Fenced);
    }
    if let Some(generation) = live(&mut transaction, checkpoints.control(), &manifest.name).await? {
        transaction.commit().await?;
        return Ok(generation);
    }
    let key = GenerationKey {
        projection: manifest.name.clone(),
        generation: 1,
    };
    let schema = make(
        &mut transaction,
        checkpoints.control(),
        readers,
        manifest,
        key.generation,
    )
    .await?;
    components::put(&mut transaction, checkpoints.control(), sha256, bytes).await?;
    let description = description(manifest);
    let render = |template| AssertSqlSafe(render(template, &[("control", checkpoints.control())]));
    sqlx::query(render(include_str!("sql/insert_generation.sql")))
        .bind(&key.projection)
        .bind(key.generation)
        .bind(schema.as_str())
        .bind(sha256)
        .bind(&manifest.version)
        .bind(description.to_string())
        .bind(start.position.0)
        .execute(&mut *transaction)
        .await?;
    let anchor = start.anchor.as_ref();
    sqlx::query(render(include_str!("sql/insert_checkpoint.sql")))
        .bind(&key.projection)
        .bind(key.generation)
        .bind(start.position.0)
        .bind(checkpoints.fence().term)
        .bind(checkpoints.fence().term_id)
        .bind(anchor.map(|anchor| anchor.position.0))
        .bind(anchor.map(|anchor| anchor.id.as_str()))
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    let (sha256, plugin_version) = (sha256.to_owned(), manifest.version.clone());
    Ok(Generation {
        key,
        schema,
        sha256,
        plugin_version,
        description,
        start: start.position,
        former: Vec::new(),
        note: None,
    })
}

/// Creates schema, tables and views of a generation.
async fn make(
    connection: &mut PgConnection,
    control: &Identifier,
    readers: &Identifier,
    manifest: &Manifest,
    generation: i32,
) -> Result<Identifier, Error> {
    let projection = &manifest.name;
    let schema = Identifier::new(format!("{}_g{generation}", projection.replace('-', "_")));
    let schema = schema.map_err(|source| Error::Name {
        projection: projection.clone(),
        source,
    })?;
    let tables = manifest.tables.iter();
    let names: Vec<&str> = tables.map(|table| table.name.as_str()).collect();
    refuse_taken_names(connection, control, readers, projection, &names).await?;
    create_schema(connection, manifest, &schema).await?;
    for table in &manifest.tables {
        create_table(connection, &schema, table).await?;
    }
    ensure_readers_schema(connection, control, readers).await?;
    for table in &manifest.tables {
        create_view(connection, readers, &schema, table, projection).await?;
    }
    Ok(schema)
}

/// What a plugin declared, in the shape kept in `generations.description`.
#[must_use]
pub fn description(manifest: &Manifest) -> serde_json::Value {
    // The form has only texts, flags and lists, which JSON always holds.
    serde_json::to_value(manifest).unwrap_or_default()
}

async fn create_table(
    connection: &mut PgConnection,
    schema: &Identifier,
    table: &Table,
) -> Result<(), Error> {
    connection
        .execute(AssertSqlSafe(ddl::create_table(schema, table)))
        .await?;
    for (number, columns) in table.indexes.iter().enumerate() {
        connection
            .execute(AssertSqlSafe(ddl::create_index(
                schema, table, number, columns,
            )))
            .await?;
    }
    Ok(())
}

async fn create_view(
    connection: &mut PgConnection,
    readers: &Identifier,
    schema: &Identifier,
    table: &Table,
    projection: &str,
) -> Result<(), Error> {
    let statement = ddl::create_view(readers, schema, table, projection);
    connection.execute(AssertSqlSafe(statement)).await?;
    Ok(())
}

async fn refuse_taken_names(
    connection: &mut PgConnection,
    control: &Identifier,
    readers: &Identifier,
    projection: &str,
    names: &[&str],
) -> Result<(), Error> {
    let projection = projection.to_owned();
    let statement = render(
        include_str!("sql/table_owners.sql"),
        &[("control", control)],
    );
    let owner = sqlx::query(AssertSqlSafe(statement))
        .bind(&projection)
        .bind(names)
        .fetch_optional(&mut *connection)
        .await?;
    if let Some(row) = owner {
        return Err(Error::TableTaken {
            projection,
            table: row.try_get(1)?,
            owner: row.try_get(0)?,
        });
    }
    let foreign = sqlx::query(include_str!("sql/foreign_relations.sql"))
        .bind(readers.as_str())
        .bind(names)
        .fetch_optional(connection)
        .await?;
    match foreign {
        Some(row) => Err(Error::ViewTaken {
            projection,
            schema: readers.clone(),
            table: row.try_get(0)?,
        }),
        None => Ok(()),
    }
}

async fn create_schema(
    connection: &mut PgConnection,
    manifest: &Manifest,
    schema: &Identifier,
) -> Result<(), Error> {
    match connection
        .execute(AssertSqlSafe(format!("CREATE SCHEMA {}", schema.quoted())))
        .await
    {
        Ok(_) => Ok(()),
        Err(error) => {
            let error = DatabaseError::from(error);
            if error.sqlstate() == Some("42P06") {
                return Err(Error::SchemaTaken {
                    projection: manifest.name.clone(),
                    schema: schema.clone(),
                });
            }
            Err(error.into())
        }
    }
}

/// `CREATE SCHEMA IF NOT EXISTS` asks for a privilege on the database even when the schema is there.
async fn ensure_readers_schema(
    connection: &mut PgConnection,
    control: &Identifier,
    readers: &Identifier,
) -> Result<(), Error> {
    let there = sqlx::query("SELECT 1 FROM pg_namespace WHERE nspname = $1")
        .bind(readers.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    if there.is_none() {
        // Leaders of single projections have terms of their own, which keep them not apart: two would make it at once.
        let locking = "LOCK TABLE {control}.generations IN SHARE ROW EXCLUSIVE MODE";
        connection
            .execute(AssertSqlSafe(render(locking, &[("control", control)])))
            .await?;
        connection
            .execute(AssertSqlSafe(format!(
                "CREATE SCHEMA IF NOT EXISTS {}",
                readers.quoted()
            )))
            .await?;
    }
    Ok(())
}
