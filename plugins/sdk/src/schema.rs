//! The described tables, resolved for quick use while a batch runs.

use std::rc::Rc;

use crate::bindings::projector::projection::types::Cell;
use crate::canonical::canonical;
use crate::description::{ColumnType, Description, Table};
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
        self.columns.iter().position(|column| column.name == name)
    }

    /// The key's values in key order; `None` when a part is missing, unknown or given twice.
    pub(crate) fn key_values(&self, key: &[Cell], position: u64) -> Option<Vec<Value>> {
        if key.len() != self.primary_key.len() {
            return None;
        }
        self.primary_key
            .iter()
            .map(|&place| {
                let column = &self.columns[place];
                let cell = key.iter().find(|cell| cell.column == column.name)?;
                Some(canonical(column.column_type, cell.value.clone(), position))
            })
            .collect()
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
