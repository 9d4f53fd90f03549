//! Columns of values as PostgreSQL arrays, for statements that work on a whole batch.

use sqlx::Arguments as _;
use sqlx::error::BoxDynError;
use sqlx::postgres::PgArguments;
use uuid::Uuid;

use crate::database::micros::Micros;
use crate::plugin::manifest::ColumnType;

use super::check::{Key, TableShape};
use super::datum::{Datum, date_text};

/// How a column's values travel: the array's type, and the cast from its element to the column.
#[must_use]
pub const fn wire(column_type: ColumnType) -> (&'static str, &'static str) {
    match column_type {
        ColumnType::Text => ("text[]", ""),
        ColumnType::BigInt => ("bigint[]", ""),
        ColumnType::Double => ("double precision[]", ""),
        ColumnType::Boolean => ("boolean[]", ""),
        ColumnType::Timestamptz => ("timestamptz[]", ""),
        ColumnType::Uuid => ("uuid[]", ""),
        ColumnType::Bytea => ("bytea[]", ""),
        ColumnType::Numeric => ("text[]", "::numeric"),
        ColumnType::Date => ("text[]", "::date"),
        ColumnType::Jsonb => ("text[]", "::jsonb"),
        // unnest flattens nested arrays, so each value travels as an array literal.
        ColumnType::TextArray => ("text[]", "::text[]"),
    }
}

/// Adds keys of a table: an array argument for each column of its primary key, in key order.
///
/// # Errors
/// As [`add`].
pub fn add_keys<'k>(
    arguments: &mut PgArguments,
    shape: &TableShape,
    keys: impl Iterator<Item = &'k Key> + Clone,
) -> Result<(), BoxDynError> {
    for (part, &column) in shape.table.primary_key.iter().enumerate() {
        let column_type = shape.table.columns[column].column_type;
        add(arguments, column_type, keys.clone().map(|key| &key[part]))?;
    }
    Ok(())
}

/// Adds one column's values as one array argument.
///
/// # Errors
/// When the driver cannot encode them (an array beyond its size limit).
pub fn add<'a>(
    arguments: &mut PgArguments,
    column_type: ColumnType,
    values: impl Iterator<Item = &'a Datum>,
) -> Result<(), BoxDynError> {
    match column_type {
        ColumnType::BigInt => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::BigInt(int) => Some(*int),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        ),
        ColumnType::Double => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::Double(float) => Some(*float),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        ),
        ColumnType::Boolean => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::Boolean(boolean) => Some(*boolean),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        ),
        ColumnType::Timestamptz => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::Timestamptz(micros) => Some(Micros(*micros)),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        ),
        ColumnType::Uuid => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::Uuid(uuid) => Some(*uuid),
                    _ => None,
                })
                .collect::<Vec<Option<Uuid>>>(),
        ),
        ColumnType::Bytea => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::Bytea(bytes) => Some(bytes.as_slice()),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        ),
        ColumnType::Text | ColumnType::Jsonb => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::Text(text) | Datum::Jsonb(text) => Some(text.as_str()),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        ),
        ColumnType::Numeric => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::Numeric(number) => Some(number.to_plain_string()),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        ),
        ColumnType::Date => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::Date(days) => Some(date_text(*days)),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        ),
        ColumnType::TextArray => arguments.add(
            values
                .map(|datum| match datum {
                    Datum::TextArray(texts) => Some(array_literal(texts)),
                    _ => None,
                })
                .collect::<Vec<_>>(),
        ),
    }
}

/// PostgreSQL's text form of an array of texts, every element quoted.
fn array_literal(texts: &[String]) -> String {
    let mut literal = String::from("{");
    for (at, text) in texts.iter().enumerate() {
        literal.push_str(if at == 0 { "\"" } else { ",\"" });
        for c in text.chars() {
            if matches!(c, '"' | '\\') {
                literal.push('\\');
            }
            literal.push(c);
        }
        literal.push('"');
    }
    literal.push('}');
    literal
}
