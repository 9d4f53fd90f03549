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
        if key.len() != self.primary_key.len() {
            return None;
        }
        let parts = self.primary_key.iter().enumerate();
        let value = |(part, &place)| {
            let (column, value) = self.key_part(key, part, place)?;
            Some(canonical(column.column_type, value.clone(), position))
        };
        parts.map(value).collect()
    }

    /// The same as bytes: equal for equal keys and different for different ones.
    pub(crate) fn key_bytes(&self, key: &[Cell], position: u64) -> Option<Vec<u8>> {
        if key.len() != self.primary_key.len() {
            return None;
        }
        let mut bytes = Vec::with_capacity(45 * key.len());
        for (part, &place) in self.primary_key.iter().enumerate() {
            let (column, value) = self.key_part(key, part, place)?;
            match (column.column_type, value) {
                (ColumnType::Text, Value::Text(text)) => push_text(b't', text, &mut bytes),
                (ColumnType::Uuid, Value::Text(text)) if Uuid::is_final(text) => {
                    push_text(b't', text, &mut bytes);
                }
                (ColumnType::Uuid, Value::Text(text)) => match Uuid::parse(text) {
                    Some(uuid) => push_text(b't', &uuid.to_text(), &mut bytes),
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

    /// A column of the primary key with the value that is given for it, most likely at its place in the key.
    fn key_part<'a>(
        &'a self,
        key: &'a [Cell],
        part: usize,
        place: usize,
    ) -> Option<(&'a ColumnSchema, &'a Value)> {
        let column = &self.columns[place];
        let named = |cell: &&Cell| cell.column == column.name;
        let cell = key.get(part).filter(named);
        let cell = cell.or_else(|| key.iter().find(named))?;
        Some((column, &cell.value))
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
