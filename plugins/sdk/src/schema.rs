//! The described tables, resolved for quick use while a batch runs.

use std::rc::Rc;

use crate::bindings::projector::projection::types::Cell;
use crate::canonical::canonical;
use crate::description::{ColumnType, Description, Table};
use crate::types::Uuid;
use crate::value::Value;

#[derive(Debug, PartialEq)]
pub(crate) struct ColumnSchema {
    pub(crate) name: &'static str,
    pub(crate) column_type: ColumnType,
    pub(crate) nullable: bool,
    pub(crate) default: Value,
}

#[derive(Debug, PartialEq)]
pub(crate) struct TableSchema {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<ColumnSchema>,
    /// Places in `columns`, in key order.
    pub(crate) primary_key: Vec<usize>,
}

impl TableSchema {
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.column_near(0, name)
    }

    /// The place of a column, where it probably stands at or soon after this place.
    pub(crate) fn column_near(&self, place: usize, name: &str) -> Option<usize> {
        let (before, after) = self.columns.split_at(place.min(self.columns.len()));
        let named = |column: &ColumnSchema| column.name == name;
        match after.iter().position(named) {
            Some(further) => Some(before.len() + further),
            None => before.iter().position(named),
        }
    }

    /// The key's values in key order; `None` when a part is missing, unknown or given twice.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn key_values(&self, key: &[Cell], position: u64) -> Option<Vec<Value>> {
        let parts = self.key_parts(key)?;
        let value = |(column, value): (&ColumnSchema, &Value)| {
            canonical(column.column_type, value.clone(), position)
        };
        Some(parts.into_iter().map(value).collect())
    }

    /// The same as bytes: equal for equal keys and different for different ones.
    pub(crate) fn key_bytes(&self, key: &[Cell], position: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(20 * key.len());
        for (column, value) in self.key_parts(key)? {
            match (column.column_type, value) {
                (ColumnType::Text, Value::Text(text)) => push_text(b't', text, &mut bytes),
                (ColumnType::Uuid, Value::Text(text)) => match Uuid::parse(text) {
                    Some(uuid) => {
                        bytes.push(b'u');
                        bytes.extend_from_slice(uuid.as_bytes());
                    }
                    None => push_text(b't', text, &mut bytes),
                },
                (column_type, value) => match canonical(column_type, value.clone(), position) {
                    Value::Int(number) => {
                        bytes.push(b'i');
                        bytes.extend_from_slice(&number.to_le_bytes());
                    }
                    Value::Text(text) => push_text(b't', &text, &mut bytes),
                    other => push_text(b'o', &format!("{other:?}"), &mut bytes),
                },
            }
        }
        Some(bytes)
    }

    /// The columns of the primary key, in key order, with the values that are given for them.
    fn key_parts<'a>(&'a self, key: &'a [Cell]) -> Option<Vec<(&'a ColumnSchema, &'a Value)>> {
        if key.len() != self.primary_key.len() {
            return None;
        }
        let part = |&place: &usize| {
            let column = &self.columns[place];
            let cell = key.iter().find(|cell| cell.column == column.name)?;
            Some((column, &cell.value))
        };
        self.primary_key.iter().map(part).collect()
    }
}

fn push_text(kind: u8, text: &str, bytes: &mut Vec<u8>) {
    bytes.push(kind);
    bytes.extend_from_slice(&text.len().to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// All tables of a projection.
#[derive(Debug, Default)]
pub(crate) struct Schema {
    pub(crate) tables: Vec<Rc<TableSchema>>,
}

impl Schema {
    /// Resolves a description; names the first table whose primary key is no list of its columns.
    pub(crate) fn new(description: &Description) -> Result<Self, String> {
        let tables = description
            .tables
            .iter()
            .map(|table| resolve(table).map(Rc::new));
        Ok(Self {
            tables: tables.collect::<Result<_, _>>()?,
        })
    }

    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.tables.iter().position(|table| table.name == name)
    }
}

fn resolve(table: &Table) -> Result<TableSchema, String> {
    let columns = table.columns.iter().map(|column| ColumnSchema {
        name: column.name,
        column_type: column.column_type,
        nullable: column.nullable,
        default: canonical(column.column_type, column.default.into(), 0),
    });
    let mut resolved = TableSchema {
        name: table.name,
        columns: columns.collect(),
        primary_key: Vec::new(),
    };
    for &name in &table.primary_key {
        let place = resolved.column(name).ok_or_else(|| {
            format!(
                "table `{}`: its primary key names no column `{name}`",
                table.name
            )
        })?;
        resolved.primary_key.push(place);
    }
    if resolved.primary_key.is_empty() {
        return Err(format!("table `{}` has no primary key", table.name));
    }
    Ok(resolved)
}
