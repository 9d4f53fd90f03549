//! Whether a value fits its column, by the host's rules.

use crate::description::ColumnType;
use crate::schema::ColumnSchema;
use crate::types::{Decimal, Timestamp, Uuid};
use crate::value::Value;

/// Checks a value in its canonical form; the error says why it does not fit.
pub(super) fn fits(column: &ColumnSchema, value: &Value) -> Result<(), String> {
    let fitting = match (column.column_type, value) {
        (_, Value::Null) => column.nullable,
        (ColumnType::Text, Value::Text(text)) => return without_nul(text),
        (ColumnType::BigInt, Value::Int(_))
        | (ColumnType::Double, Value::Float(_))
        | (ColumnType::Boolean, Value::Boolean(_))
        | (ColumnType::Bytea, Value::Bytes(_)) => true,
        (ColumnType::Numeric, Value::Text(text)) => Decimal::parse(text).is_some(),
        (ColumnType::Timestamptz, Value::Text(text)) => Timestamp::parse(text).is_some(),
        (ColumnType::Date, Value::Text(text)) => {
            Timestamp::parse(&format!("{text}T00:00:00Z")).is_some()
        }
        (ColumnType::Uuid, Value::Text(text)) => Uuid::parse(text).is_some(),
        (ColumnType::Jsonb, Value::Text(text)) => {
            let parsed: Result<serde_json::Value, _> = serde_json::from_str(text);
            return match parsed {
                Ok(json) if has_nul(&json) => Err("holds a NUL".to_owned()),
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            };
        }
        (ColumnType::TextArray, Value::Texts(texts)) => {
            return texts.iter().try_for_each(|text| without_nul(text));
        }
        _ => false,
    };
    if fitting {
        Ok(())
    } else {
        Err(format!("{value:?} is no {}", column.column_type.sql()))
    }
}

fn without_nul(text: &str) -> Result<(), String> {
    if text.contains('\0') {
        Err("holds a NUL".to_owned())
    } else {
        Ok(())
    }
}

fn has_nul(json: &serde_json::Value) -> bool {
    match json {
        serde_json::Value::String(text) => text.contains('\0'),
        serde_json::Value::Array(items) => items.iter().any(has_nul),
        serde_json::Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}
