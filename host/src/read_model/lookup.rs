//! Reading rows back for a plugin, in one statement a table.

use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::{Arguments as _, AssertSqlSafe, Row as _};

use crate::database::error::Error;
use crate::database::identifier::Identifier;
use crate::database::micros::Micros;
use crate::event_store::event::Position;
use crate::plugin::manifest::{Column, ColumnType};

use super::bind;
use super::check::{Key, Shapes, TableShape};
use super::checkpoint::GenerationKey;
use super::datum::Datum;
use super::fold::Row;
use super::write::select;

/// Where rows are read.
#[derive(Debug, Clone)]
pub struct Source {
    /// The generation's schema.
    pub schema: Identifier,
    /// The control schema, for the checkpoint.
    pub control: Identifier,
    /// Whose checkpoint.
    pub key: GenerationKey,
}

/// The row of a key, if there is one, and the checkpoint at the moment when it was read.
pub type Answer = (Option<Row>, Position);

/// Columns before the row's own: the key's place, the checkpoint, whether there is a row.
const LEADING_COLUMNS: usize = 3;

/// Reads the rows of these keys; one answer a key, in their order.
///
/// Each statement returns the checkpoint that its own snapshot saw, so the caller knows which batches in
/// flight its rows contain already.
///
/// # Errors
/// When the database does not answer.
pub async fn rows(
    connection: &mut PgConnection,
    source: &Source,
    shapes: &Shapes,
    keys: &[(usize, Key)],
) -> Result<Vec<Answer>, Error> {
    let mut answers: Vec<Answer> = vec![(None, Position(0)); keys.len()];
    for (table, shape) in shapes.tables().iter().enumerate() {
        let places: Vec<usize> = (0..keys.len())
            .filter(|&place| keys[place].0 == table)
            .collect();
        if places.is_empty() {
            continue;
        }
        let mut arguments = PgArguments::default();
        let wanted = places.iter().map(|&place| &keys[place].1);
        for argument in [
            bind::add_keys(&mut arguments, shape, wanted),
            arguments.add(&source.key.projection),
            arguments.add(source.key.generation),
        ] {
            argument.map_err(|why| Error::Driver(why.to_string()))?;
        }
        let statement = select(source, shape, places.len());
        for row in sqlx::query_with(AssertSqlSafe(statement), arguments)
            .fetch_all(&mut *connection)
            .await?
        {
            let ord: i64 = row.try_get(0)?;
            let place = usize::try_from(ord - 1)
                .ok()
                .and_then(|ord| places.get(ord));
            if let Some(&place) = place {
                let there: bool = row.try_get(2)?;
                let found = if there {
                    Some(decode(shape, &row)?)
                } else {
                    None
                };
                answers[place] = (found, Position(row.try_get(1)?));
            }
        }
    }
    Ok(answers)
}

fn decode(shape: &TableShape, row: &PgRow) -> Result<Row, Error> {
    let column =
        |(at, column): (usize, &Column)| datum(row, at + LEADING_COLUMNS, column.column_type);
    shape.table.columns.iter().enumerate().map(column).collect()
}

fn datum(row: &PgRow, at: usize, column_type: ColumnType) -> Result<Datum, Error> {
    let text = |parse: ColumnType| -> Result<Datum, Error> {
        match row.try_get::<Option<String>, _>(at)? {
            None => Ok(Datum::Null),
            Some(text) => Datum::from_text(&text, parse).map_err(Error::Driver),
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
