//! The plugin folders of all replicas: which projections each has a file for, and which files it refuses.
//!
//! A replica tells when it starts, when its files change and once in a while, and takes its word back when it ends
//! in order. Promises: nobody acts on a folder that was not heard of for a day; replicas that share a folder speak
//! each for itself. Must never: be asked what a projection runs; the generation's row says that.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};

use crate::database::error::Error;
use crate::database::identifier::Identifier;
use crate::database::template::render;
use crate::plugin::Folder;

/// A word counts for so long.
const KEEP_SECONDS: f64 = 86_400.0;

/// A word is kept for so long when another replica tells of the same folder: some repetitions have failed to come by
/// then. Nodes without a name of their own get a new one at each start, so crashed ones would pile up.
const KEEP_BESIDE_SECONDS: f64 = 10_800.0;

/// What a replica tells of its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The folder.
    pub folder: Folder,
    /// The replica.
    pub node: String,
    /// Digests by projection, null for a file that cannot be used.
    pub projections: serde_json::Value,
    /// Texts of refused files, and of projections that cannot begin.
    pub refused: serde_json::Value,
}

/// Tells of a folder, and forgets words that are too old.
///
/// # Errors
/// When the database does not take the statement.
pub async fn tell(
    connection: &mut PgConnection,
    control: &Identifier,
    word: &Word,
) -> Result<(), Error> {
    sqlx::query(sql(include_str!("sql/tell_folder.sql"), control))
        .bind(&word.folder.host)
        .bind(&word.folder.dir)
        .bind(&word.node)
        .bind(word.projections.to_string())
        .bind(word.refused.to_string())
        .bind(KEEP_SECONDS)
        .bind(KEEP_BESIDE_SECONDS)
        .execute(connection)
        .await?;
    Ok(())
}

/// Takes a replica's word back.
///
/// # Errors
/// When the database does not take the statement.
pub async fn forget(
    connection: &mut PgConnection,
    control: &Identifier,
    folder: &Folder,
    node: &str,
) -> Result<(), Error> {
    sqlx::query(sql(include_str!("sql/forget_folder.sql"), control))
        .bind(&folder.host)
        .bind(&folder.dir)
        .bind(node)
        .execute(connection)
        .await?;
    Ok(())
}

/// Another replica that has a file for a projection, in another folder: what lies in the own one is known here.
///
/// # Errors
/// When it cannot be asked for.
pub async fn holder(
    connection: &mut PgConnection,
    control: &Identifier,
    projection: &str,
    own: &Folder,
) -> Result<Option<String>, Error> {
    let row = sqlx::query(sql(include_str!("sql/folder_holder.sql"), control))
        .bind(projection)
        .bind(&own.host)
        .bind(&own.dir)
        .bind(KEEP_SECONDS)
        .fetch_optional(connection)
        .await?;
    row.map(|row| {
        let (node, host): (String, String) = (row.try_get(0)?, row.try_get(1)?);
        Ok(format!("{node} on {host}"))
    })
    .transpose()
}

/// The word of every replica that was heard of.
///
/// # Errors
/// When the table cannot be read.
pub async fn list(connection: &mut PgConnection, control: &Identifier) -> Result<Vec<Word>, Error> {
    let rows = sqlx::query(sql(include_str!("sql/list_folders.sql"), control))
        .bind(KEEP_SECONDS)
        .fetch_all(connection)
        .await?;
    read(&rows)
}

/// The last word on each folder, of replicas that still tell: whoever shares a folder sees the same files.
///
/// # Errors
/// When the table cannot be read.
pub async fn newest(
    connection: &mut PgConnection,
    control: &Identifier,
) -> Result<Vec<Word>, Error> {
    let rows = sqlx::query(sql(include_str!("sql/newest_folders.sql"), control))
        .bind(KEEP_BESIDE_SECONDS)
        .fetch_all(connection)
        .await?;
    read(&rows)
}

fn read(rows: &[sqlx::postgres::PgRow]) -> Result<Vec<Word>, Error> {
    let decoded = rows.iter().map(|row| {
        let json = |text: String| serde_json::from_str(&text).unwrap_or_default();
        Ok(Word {
            folder: Folder {
                host: row.try_get(0)?,
                dir: row.try_get(1)?,
            },
            node: row.try_get(2)?,
            projections: json(row.try_get(3)?),
            refused: json(row.try_get(4)?),
        })
    });
    decoded
        .collect::<Result<_, sqlx::Error>>()
        .map_err(Error::from)
}

fn sql(template: &str, control: &Identifier) -> AssertSqlSafe<String> {
    AssertSqlSafe(render(template, &[("control", control)]))
}
