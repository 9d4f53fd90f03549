//! The described tables, resolved for quick use while a batch runs.

use std::rc::Rc;

use crate::canonical::{canonical, canonical_key, uuid};
use crate::contract::Text;
use crate::description::{ColumnType, Description, Table};
use crate::key::{KeyPart, KeyValue};
use crate::value::Value;

#[derive(Debug, PartialEq)]
pub(crate) struct ColumnSchema {
    pub(crate) name: Text,
    pub(crate) column_type: ColumnType,
    pub(crate) nullable: bool,
    pub(crate) default: Value,
}

#[derive(Debug, PartialEq)]
pub(crate) struct TableSchema {
    pub(crate) name: Text,
    pub(crate) columns: Vec<ColumnSchema>,
    /// Places in `columns`, in key order.
    pub(crate) primary_key: Vec<usize>,
}

impl TableSchema {
    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == *name)
    }

    /// The place of a column, which most likely stands just here, as in a row that the host answers, or soon after
    /// under a name that is the same literal.
    #[inline]
    pub(crate) fn column_near(&self, place: usize, name: Text) -> Option<usize> {
        let later = self.columns.get(place..).unwrap_or_default();
        if later.first().is_some_and(|column| column.name == name) {
            return Some(place);
        }
        let same = later.iter().position(|column| column.name.is_same(name));
        same.map(|further| place + further)
            .or_else(|| self.column(&name))
    }

    /// The key's values in key order; `None` when a part is missing, unknown or given twice.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn key_values(&self, parts: &[KeyPart], position: u64) -> Option<Vec<Value>> {
        let mut key = Vec::new();
        self.key(parts, position, &mut key)
            .then(|| key.into_iter().map(Value::from).collect())
    }

    /// The same in a form in which equal keys are equal; false when they are not the table's.
    pub(crate) fn key(&self, parts: &[KeyPart], position: u64, key: &mut Vec<KeyValue>) -> bool {
        key.clear();
        if parts.len() != self.primary_key.len() {
            return false;
        }
        for (at, &place) in self.primary_key.iter().enumerate() {
            let column = &self.columns[place];
            // Most likely it was given at its place.
            let named = |part: &&KeyPart| part.column == column.name;
            let given = parts.get(at).filter(named);
            let Some(part) = given.or_else(|| parts.iter().find(named)) else {
                return false;
            };
            key.push(canonical_part(column.column_type, part.value, position));
        }
        true
    }
}

fn canonical_part(column_type: ColumnType, value: KeyValue, position: u64) -> KeyValue {
    match (column_type, value) {
        (ColumnType::Uuid, KeyValue::Uuid(_))
        | (ColumnType::Text, KeyValue::Value(Value::Text(_)))
        | (ColumnType::BigInt, KeyValue::Value(Value::Int(_))) => value,
        (ColumnType::Uuid, KeyValue::Value(Value::Text(text) | Value::Other(_, text))) => {
            uuid(&text).map_or(value, KeyValue::Uuid)
        }
        (_, value) => KeyValue::Value(canonical_key(column_type, value.into(), position)),
    }
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

    pub(crate) fn place(&self, name: Text) -> Option<usize> {
        self.tables.iter().position(|table| table.name == name)
    }
}

fn resolve(table: &Table) -> Result<TableSchema, String> {
    let columns = table.columns.iter().map(|column| ColumnSchema {
        name: Text::new(column.name),
        column_type: column.column_type,
        nullable: column.nullable,
        default: canonical(column.column_type, column.default.into(), 0),
    });
    let mut resolved = TableSchema {
        name: Text::new(table.name),
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
