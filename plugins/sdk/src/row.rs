//! A row of one of the projection's tables, as it stands at this moment of the batch.

mod deserialize;
mod json;

use std::rc::Rc;

use serde::de::DeserializeOwned;

use crate::canonical::canonical;
use crate::contract::{Cell, List};
use crate::description::ColumnType;
use crate::failure::Failure;
use crate::schema::TableSchema;
use crate::value::Value;

/// One row with all its columns. Values have one canonical form: `Int` for bigint, `Float` for double precision,
/// `Boolean`, `Bytes`, `Texts`, and text for every other type (lower-case UUIDs, times as
/// [`Timestamp`](crate::Timestamp) writes them, plain numerics, compact JSON).
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub(crate) table: Rc<TableSchema>,
    pub(crate) values: Vec<Value>,
}

impl Row {
    /// The value of a column; `None` when the table has no such column.
    #[must_use]
    pub fn get(&self, column: &str) -> Option<Value> {
        self.table.column(column).map(|place| self.values[place])
    }

    /// The value of a column that holds text: text, numeric, timestamptz, date, uuid or jsonb.
    #[must_use]
    pub fn text(&self, column: &str) -> Option<&'static str> {
        match self.get(column)? {
            Value::Text(text) | Value::Other(_, text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The value of a bigint column.
    #[must_use]
    pub fn int(&self, column: &str) -> Option<i64> {
        match self.get(column)? {
            Value::Int(number) => Some(number),
            _ => None,
        }
    }

    /// The value of a boolean column.
    #[must_use]
    pub fn boolean(&self, column: &str) -> Option<bool> {
        match self.get(column)? {
            Value::Boolean(value) => Some(value),
            _ => None,
        }
    }

    /// The row as a type of the plugin's own, read by column names.
    ///
    /// # Errors
    ///
    /// A fatal failure: a row of one's own table that cannot be read is a fault of the plugin.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        deserialize::read(self).map_err(|error| {
            Failure::fatal(
                "unreadable-row",
                format!("a row of `{}`: {error}", self.table.name),
            )
        })
    }

    /// The row as a JSON object, in declared order, with the columns that `keep` accepts. Whole numbers are exact,
    /// numerics are numbers, jsonb is embedded, bytes are `\x…` text.
    #[must_use]
    pub fn to_json(&self, keep: impl Fn(&str) -> bool) -> String {
        json::write(self, keep)
    }

    /// A row with this key, defaults elsewhere; unknown columns are ignored.
    pub(crate) fn fresh(table: &Rc<TableSchema>, key: &[Cell], position: u64) -> Self {
        let mut row = Self {
            table: Rc::clone(table),
            values: table.columns.iter().map(|column| column.default).collect(),
        };
        row.set(key, position);
        row
    }

    /// A row that the host answered: its values have their canonical form already, but for the blanks in JSON.
    pub(crate) fn from_host(table: &Rc<TableSchema>, cells: List<Cell>) -> Self {
        let mut values: Vec<Value> = Vec::with_capacity(table.columns.len());
        values.resize(table.columns.len(), Value::Null);
        let mut next = 0;
        for cell in &*cells {
            if let Some(place) = table.column_near(next, cell.column) {
                values[place] = match table.columns[place].column_type {
                    ColumnType::Jsonb => canonical(ColumnType::Jsonb, cell.value, 0),
                    _ => cell.value,
                };
                next = place + 1;
            }
        }
        Self {
            table: Rc::clone(table),
            values,
        }
    }

    /// Changes these columns; unknown ones are ignored, since the host refuses them.
    pub(crate) fn set(&mut self, cells: &[Cell], position: u64) {
        let mut next = 0;
        for cell in cells {
            if let Some(place) = self.table.column_near(next, cell.column) {
                let column_type = self.table.columns[place].column_type;
                self.values[place] = settled(column_type, cell.value, position);
                next = place + 1;
            }
        }
    }
}

/// The canonical form, which most values have already.
#[inline]
fn settled(column_type: ColumnType, value: Value, position: u64) -> Value {
    match (column_type, value) {
        (_, Value::Null)
        | (ColumnType::Text, Value::Text(_))
        | (ColumnType::BigInt, Value::Int(_))
        | (ColumnType::Boolean, Value::Boolean(_)) => value,
        _ => canonical(column_type, value, position),
    }
}
