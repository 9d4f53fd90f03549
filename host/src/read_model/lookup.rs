//! Reading rows back for a plugin, in one statement a table.

use std::collections::HashMap;

use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Row as _};

use crate::database::error::Error;
use crate::database::identifier::Identifier;
use crate::plugin::manifest::ColumnType;

use super::bind::{self, Micros};
use super::check::{Key, Shapes, TableShape};
use super::datum::Datum;
use super::fold::Row;
use super::write::select;

/// Rows found, by table and key.
pub type Found = HashMap<(usize, Key), Row>;

/// Reads the rows of these keys. Keys that are not in the answer have no row.
///
/// # Errors
/// When the database does not answer.
pub async fn rows(
    connection: &mut PgConnection,
    schema: &Identifier,
    shapes: &Shapes,
    keys: &[(usize, Key)],
) -> Result<Found, Error> {
    let mut found = Found::with_capacity(keys.len());
    for (table, shape) in shapes.tables().iter().enumerate() {
        let keys: Vec<&Key> = keys
            .iter()
            .filter(|(of, _)| *of == table)
            .map(|(_, key)| key)
            .collect();
        if keys.is_empty() {
            continue;
        }
        let mut arguments = PgArguments::default();
        for (part, &column) in shape.table.primary_key.iter().enumerate() {
            let column_type = shape.table.columns[column].column_type;
            bind::add(
                &mut arguments,
                column_type,
                keys.iter().map(|key| &key[part]),
            )
            .map_err(|why| Error::Driver(why.to_string()))?;
        }
        let statement = select(schema, shape);
        for row in sqlx::query_with(AssertSqlSafe(statement), arguments)
            .fetch_all(&mut *connection)
            .await?
        {
            let place: i64 = row.try_get(0)?;
            let key = usize::try_from(place - 1)
                .ok()
                .and_then(|place| keys.get(place));
            if let Some(key) = key {
                found.insert((table, (*key).clone()), decode(shape, &row)?);
            }
        }
    }
    Ok(found)
}

fn decode(shape: &TableShape, row: &PgRow) -> Result<Row, Error> {
    let column = |(at, column): (usize, &crate::plugin::manifest::Column)| {
        datum(row, at + 1, column.column_type)
    };
    shape.table.columns.iter().enumerate().map(column).collect()
}

fn datum(row: &PgRow, at: usize, column_type: ColumnType) -> Result<Datum, Error> {
    let text = |parse: ColumnType| -> Result<Datum, Error> {
        match row.try_get::<Option<String>, _>(at)? {
            None => Ok(Datum::Null),
            Some(text) => Datum::from_text(text, parse).map_err(Error::Driver),
        }
    };
    Ok(match column_type {
        ColumnType::Text => row
            .try_get::<Option<String>, _>(at)?
            .map_or(Datum::Null, Datum::Text),
        ColumnType::Jsonb => row
            .try_get::<Option<String>, _>(at)?
            .map_or(Datum::Null, Datum::Jsonb),
        ColumnType::BigInt => row
            .try_get::<Option<i64>, _>(at)?
            .map_or(Datum::Null, Datum::BigInt),
        ColumnType::Double => row
            .try_get::<Option<f64>, _>(at)?
            .map_or(Datum::Null, Datum::Double),
        ColumnType::Boolean => row
            .try_get::<Option<bool>, _>(at)?
            .map_or(Datum::Null, Datum::Boolean),
        ColumnType::Timestamptz => row
            .try_get::<Option<Micros>, _>(at)?
            .map_or(Datum::Null, |micros| Datum::Timestamptz(micros.0)),
        ColumnType::Uuid => row
            .try_get::<Option<uuid::Uuid>, _>(at)?
            .map_or(Datum::Null, Datum::Uuid),
        ColumnType::Bytea => row
            .try_get::<Option<Vec<u8>>, _>(at)?
            .map_or(Datum::Null, Datum::Bytea),
        ColumnType::TextArray => row
            .try_get::<Option<Vec<String>>, _>(at)?
            .map_or(Datum::Null, Datum::TextArray),
        ColumnType::Numeric | ColumnType::Date => text(column_type)?,
    })
}
