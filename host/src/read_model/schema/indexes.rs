//! Further indexes of a table that is there already are brought up to what a plugin declares.
//!
//! Must never: touch an index that does not bear one of this host's names.

use std::collections::BTreeSet;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::database::identifier::Identifier;
use crate::plugin::manifest::Table;

use super::{Error, ddl};

/// Makes the indexes that are missing and drops those that are not declared any more.
pub(super) async fn bring_up(
    connection: &mut PgConnection,
    schema: &Identifier,
    table: &Table,
) -> Result<(), Error> {
    let rows = sqlx::query(include_str!("../sql/indexes.sql"))
        .bind(schema.as_str())
        .bind(table.name.as_str())
        .fetch_all(&mut *connection)
        .await?;
    let wanted: Vec<Vec<&str>> = table
        .indexes
        .iter()
        .map(|columns| {
            columns
                .iter()
                .map(|&at| table.columns[at].name.as_str())
                .collect()
        })
        .collect();
    let (mut present, mut numbers) = (Vec::new(), BTreeSet::new());
    for row in &rows {
        let (name, columns): (String, Vec<String>) = (row.try_get(0)?, row.try_get(1)?);
        let number = (0..).find(|&number| ddl::index_name(table, number) == name || number > 1_000);
        let Some(number) = number.filter(|&number| number <= 1_000) else {
            continue;
        };
        if wanted.iter().any(|wanted| *wanted == columns) {
            present.push(columns);
            numbers.insert(number);
        } else {
            let statement = format!("DROP INDEX {}.\"{name}\"", schema.quoted());
            connection.execute(AssertSqlSafe(statement)).await?;
        }
    }
    for (at, wanted) in wanted.iter().enumerate() {
        if present.iter().any(|columns| columns == wanted) {
            continue;
        }
        let number = (0..)
            .find(|number| !numbers.contains(number))
            .unwrap_or_default();
        numbers.insert(number);
        let statement = ddl::create_index(schema, table, number, &table.indexes[at]);
        connection.execute(AssertSqlSafe(statement)).await?;
    }
    Ok(())
}
