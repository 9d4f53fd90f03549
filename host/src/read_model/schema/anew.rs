//! A live generation gets another plugin: it goes on with its rows, or it is emptied and begins anew.
//!
//! Promises: one transaction each, which holds the term; the plugin's file is kept and the audit says so in it.
//! Readers never see half of it: their views stay, and where a table changes its shape both change together.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, Row as _};

use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::database::template::render;
use crate::plugin::manifest::{Difference, Manifest, Table};
use crate::read_model::checkpoint::Checkpoints;
use crate::read_model::components;

use super::{
    Error, Filler, Generation, create_table, create_view, description, indexes, refuse_taken_names,
};

/// What went when a generation began anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emptied {
    /// Every table that was there, with the number of its rows.
    pub rows: Vec<(String, i64)>,
}

/// The generation goes on with its rows and another plugin, whose manifest fits.
///
/// # Errors
/// When the term is over, or the database refuses.
pub async fn go_on(
    connection: &mut PgConnection,
    checkpoints: &Checkpoints,
    generation: &Generation,
    filler: Filler<'_>,
    actor: &str,
) -> Result<Generation, Error> {
    let mut transaction = connection.begin().await?;
    if !checkpoints.hold_term_alone(&mut transaction).await? {
        return Err(Error::Fenced);
    }
    let next = fill(&mut transaction, checkpoints, generation, filler).await?;
    checkpoints
        .accepted(&mut transaction, &generation.key)
        .await?;
    if let Ok(before) = serde_json::from_value::<Manifest>(generation.description.clone()) {
        for name in Difference::between(&before, filler.manifest).indexes {
            let table = filler
                .manifest
                .tables
                .iter()
                .find(|table| table.name.as_str() == name);
            if let Some(table) = table {
                indexes::bring_up(&mut transaction, &generation.schema, table).await?;
            }
        }
    }
    let detail = serde_json::json!({ "from": generation.sha256, "to": filler.sha256, "version": filler.manifest.version });
    audit(
        &mut transaction,
        checkpoints,
        generation,
        actor,
        "accept-plugin",
        &detail,
    )
    .await?;
    transaction.commit().await?;
    Ok(next)
}

/// Empties the generation and lets it begin anew with another plugin.
///
/// # Errors
/// When the term is over, a name is taken, something hangs on a table that has to go, or the database refuses.
pub async fn begin_anew(
    connection: &mut PgConnection,
    checkpoints: &Checkpoints,
    readers: &Identifier,
    generation: &Generation,
    filler: Filler<'_>,
    actor: &str,
) -> Result<(Generation, Emptied), Error> {
    let mut transaction = connection.begin().await?;
    if !checkpoints.hold_term_alone(&mut transaction).await? {
        return Err(Error::Fenced);
    }
    if !checkpoints
        .begin_anew(&mut transaction, &generation.key)
        .await?
    {
        return Err(Error::Fenced);
    }
    let before: Vec<Table> = serde_json::from_value::<Manifest>(generation.description.clone())
        .map(|manifest| manifest.tables)
        .unwrap_or_default();
    let rows = count(&mut transaction, &generation.schema, &before).await?;
    let change = Change {
        readers,
        schema: &generation.schema,
        projection: &filler.manifest.name,
    };
    change
        .tables(
            &mut transaction,
            checkpoints.control(),
            &before,
            &filler.manifest.tables,
        )
        .await?;
    let next = fill(&mut transaction, checkpoints, generation, filler).await?;
    let detail = serde_json::json!({
        "from": generation.sha256, "to": filler.sha256, "version": filler.manifest.version,
        "rows": rows.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(), "start": generation.start.0,
    });
    audit(
        &mut transaction,
        checkpoints,
        generation,
        actor,
        "begin-anew",
        &detail,
    )
    .await?;
    transaction.commit().await?;
    Ok((next, Emptied { rows }))
}

/// Names the plugin in the generation's row, and keeps its file.
async fn fill(
    connection: &mut PgConnection,
    checkpoints: &Checkpoints,
    generation: &Generation,
    filler: Filler<'_>,
) -> Result<Generation, Error> {
    let control = checkpoints.control();
    components::put(connection, control, filler.sha256, filler.bytes).await?;
    let description = description(filler.manifest);
    let statement = render(
        include_str!("../sql/fill_generation.sql"),
        &[("control", control)],
    );
    let row = sqlx::query(AssertSqlSafe(statement))
        .bind(&generation.key.projection)
        .bind(generation.key.generation)
        .bind(filler.sha256)
        .bind(&filler.manifest.version)
        .bind(description.to_string())
        .fetch_one(&mut *connection)
        .await?;
    components::prune(connection, control).await?;
    Ok(Generation {
        sha256: filler.sha256.to_owned(),
        plugin_version: filler.manifest.version.clone(),
        description,
        former: row.try_get(0)?,
        note: None,
        ..generation.clone()
    })
}

/// Where tables and views of one projection are.
struct Change<'a> {
    readers: &'a Identifier,
    schema: &'a Identifier,
    projection: &'a str,
}

impl Change<'_> {
    /// A table of the same shape is emptied and keeps everything that hangs on it; any other is made anew.
    async fn tables(
        &self,
        connection: &mut PgConnection,
        control: &Identifier,
        before: &[Table],
        after: &[Table],
    ) -> Result<(), Error> {
        for old in before {
            if after.contains(old) {
                let statement = format!("TRUNCATE {}.{}", self.schema.quoted(), old.name.quoted());
                connection.execute(AssertSqlSafe(statement)).await?;
            } else {
                self.drop(connection, old).await?;
            }
        }
        let new: Vec<&Table> = after
            .iter()
            .filter(|table| !before.contains(table))
            .collect();
        let names: Vec<&str> = new.iter().map(|table| table.name.as_str()).collect();
        refuse_taken_names(connection, control, self.readers, self.projection, &names).await?;
        for table in new {
            create_table(connection, self.schema, table).await?;
            create_view(
                connection,
                self.readers,
                self.schema,
                table,
                self.projection,
            )
            .await?;
        }
        Ok(())
    }

    async fn drop(&self, connection: &mut PgConnection, table: &Table) -> Result<(), Error> {
        let (view, name) = (self.readers.quoted(), table.name.quoted());
        for statement in [
            format!("DROP VIEW IF EXISTS {view}.{name}"),
            format!("DROP TABLE IF EXISTS {}.{name}", self.schema.quoted()),
        ] {
            connection
                .execute(AssertSqlSafe(statement))
                .await
                .map_err(|error| {
                    let error = DatabaseError::from(error);
                    // Other objects depend on it.
                    if error.sqlstate() == Some("2BP01") {
                        return Error::TableUsed {
                            projection: self.projection.to_owned(),
                            table: table.name.as_str().to_owned(),
                            dependents: error.to_string(),
                        };
                    }
                    error.into()
                })?;
        }
        Ok(())
    }
}

async fn count(
    connection: &mut PgConnection,
    schema: &Identifier,
    tables: &[Table],
) -> Result<Vec<(String, i64)>, Error> {
    let mut rows = Vec::new();
    for table in tables {
        let statement = format!(
            "SELECT count(*) FROM {}.{}",
            schema.quoted(),
            table.name.quoted()
        );
        let row = sqlx::query(AssertSqlSafe(statement))
            .fetch_one(&mut *connection)
            .await?;
        rows.push((table.name.as_str().to_owned(), row.try_get(0)?));
    }
    Ok(rows)
}

async fn audit(
    connection: &mut PgConnection,
    checkpoints: &Checkpoints,
    generation: &Generation,
    actor: &str,
    action: &str,
    detail: &serde_json::Value,
) -> Result<(), Error> {
    let statement = render(
        include_str!("../sql/audit.sql"),
        &[("control", checkpoints.control())],
    );
    sqlx::query(AssertSqlSafe(statement))
        .bind(actor)
        .bind(action)
        .bind(&generation.key.projection)
        .bind(detail.to_string())
        .execute(connection)
        .await?;
    Ok(())
}
