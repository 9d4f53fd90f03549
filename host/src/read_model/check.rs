//! Returned writes, checked one by one against the plugin's own tables.
//!
//! Everything is judged before folding, so that what is refused does not depend on the other writes of the
//! batch. An error names the event's position, the table and the column.

use std::fmt;
use std::sync::Arc;

use crate::error::Code;
use crate::event_store::event::Event;
use crate::guest::bindings::{Cell, Change as GuestChange, RowKey, Write};
use crate::plugin::manifest::{Column, ColumnType, Table};

use super::datum::{Amount, Datum};

/// Code of a write that is refused before any SQL.
pub const BAD_WRITE: Code = Code(701);

/// A table with everything that checking and folding want to know, worked out once a plugin.
#[derive(Debug)]
pub struct TableShape {
    /// As declared.
    pub table: Table,
    /// For each column: what stands in a new row that does not give it.
    pub defaults: Vec<Datum>,
    /// For each column: whether it is part of the primary key.
    pub in_key: Vec<bool>,
}

impl TableShape {
    /// Works out the shape of a declared table.
    ///
    /// # Errors
    /// When a default does not fit its column.
    pub fn new(table: Table) -> Result<Self, String> {
        let defaults = table.columns.iter().map(|column| match &column.default {
            None => Ok(Datum::Null),
            Some(text) => Datum::from_text(text.clone(), column.column_type).map_err(|why| {
                format!(
                    "table {}, column {}: default: {why}",
                    table.name, column.name
                )
            }),
        });
        let defaults = defaults.collect::<Result<Vec<_>, _>>()?;
        let in_key = (0..table.columns.len())
            .map(|at| table.primary_key.contains(&at))
            .collect();
        Ok(Self {
            table,
            defaults,
            in_key,
        })
    }

    /// The first column of a new row that would be null and may not be.
    #[must_use]
    pub fn missing_in(&self, row: &[Datum]) -> Option<usize> {
        self.table
            .columns
            .iter()
            .zip(row)
            .position(|(column, datum)| !column.nullable && datum.is_null())
    }

    /// The place of a column, where it probably stands at or soon after a place: guests name columns in the order
    /// in which they declared them.
    fn find(&self, near: usize, name: &str) -> Option<usize> {
        let columns = &self.table.columns;
        let (before, after) = columns.split_at(near.min(columns.len()));
        let named = |column: &Column| column.name.as_str() == name;
        match after.iter().position(named) {
            Some(further) => Some(before.len() + further),
            None => before.iter().position(named),
        }
    }

    fn column_name(&self, at: usize) -> String {
        self.table.columns[at].name.as_str().to_owned()
    }
}

/// All tables of a plugin.
#[derive(Debug, Clone)]
pub struct Shapes(Arc<Vec<TableShape>>);

impl Shapes {
    /// Works out the shapes of declared tables.
    ///
    /// # Errors
    /// When a default does not fit its column.
    pub fn new(tables: &[Table]) -> Result<Self, String> {
        tables
            .iter()
            .cloned()
            .map(TableShape::new)
            .collect::<Result<Vec<_>, _>>()
            .map(|all| Self(Arc::new(all)))
    }

    /// The tables, in declared order.
    #[must_use]
    pub fn tables(&self) -> &[TableShape] {
        &self.0
    }

    /// The place of a table.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<usize> {
        self.0
            .iter()
            .position(|shape| shape.table.name.as_str() == name)
    }
}

/// A key: the values of the primary key's columns, in key order.
pub type Key = Vec<Datum>;

/// Columns and their new values, key columns left out.
pub type Cells = Vec<(usize, Datum)>;

/// What a checked write does to its row.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// If no row has this key, else nothing.
    Insert(Cells),
    /// The whole row.
    Put(Cells),
    /// Insert, or change the given columns.
    Merge(Cells),
    /// Change the given columns if the row exists.
    Patch(Cells),
    /// Add to columns; insert with these amounts if absent.
    Add(Vec<(usize, Amount)>),
    /// Delete the row.
    Remove,
}

/// A write that was checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Checked {
    /// To one row.
    Row {
        /// Index of the table.
        table: usize,
        /// Index of the event in the batch.
        event: usize,
        /// Whose row.
        key: Key,
        /// What happens.
        change: Change,
    },
    /// Deletes every row whose columns equal these.
    RemoveWhere {
        /// Index of the table.
        table: usize,
        /// Index of the event in the batch.
        event: usize,
        /// The columns, in the table's order, and their values.
        cells: Cells,
    },
}

/// A write that cannot be applied, whoever tries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Index of the event in the batch.
    pub event: usize,
    /// Where the event stands; 0 when the write names no event of the batch.
    pub position: i64,
    /// The table, as the plugin named it.
    pub table: String,
    /// The column, when it is about one.
    pub column: Option<String>,
    /// What is wrong.
    pub why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{BAD_WRITE}: event at position {}: table {:?}",
            self.position, self.table
        )?;
        if let Some(column) = &self.column {
            write!(f, ", column {column:?}")?;
        }
        write!(f, ": {}", self.why)
    }
}

/// Checks a guest's writes.
///
/// # Errors
/// The first write that is wrong.
pub fn check(
    shapes: &Shapes,
    events: &[Event],
    writes: Vec<Write>,
) -> Result<Vec<Checked>, Box<Fault>> {
    let mut checked = Vec::with_capacity(writes.len());
    // Guests write to the same table many times in a row.
    let mut last: Option<(String, usize)> = None;
    for write in writes {
        let at = usize::try_from(write.event).unwrap_or(usize::MAX);
        let Some(event) = events.get(at) else {
            return Err(Box::new(Fault {
                event: 0,
                position: 0,
                table: write.target.table,
                column: None,
                why: format!(
                    "the write names event {} of a batch of {}",
                    write.event,
                    events.len()
                ),
            }));
        };
        let table = match &last {
            Some((name, table)) if *name == write.target.table => Some(*table),
            _ => shapes.find(&write.target.table),
        };
        let position = event.position.0;
        let fault = |table: String, column: Option<String>, why: String| {
            Box::new(Fault {
                event: at,
                position,
                table,
                column,
                why,
            })
        };
        let Some(table) = table else {
            let known: Vec<_> = shapes
                .tables()
                .iter()
                .map(|shape| shape.table.name.as_str())
                .collect();
            return Err(fault(
                write.target.table,
                None,
                format!(
                    "the plugin owns no such table; it declared {}",
                    known.join(", ")
                ),
            ));
        };
        if last.as_ref().is_none_or(|(_, known)| *known != table) {
            last = Some((write.target.table.clone(), table));
        }
        let one = One {
            shape: &shapes.tables()[table],
            position,
        };
        let done = one.write(table, at, write.target.key, write.change);
        checked.push(done.map_err(|(column, why)| fault(write.target.table, column, why))?);
    }
    Ok(checked)
}

/// Checks the key of a look-up.
///
/// # Errors
/// What is wrong with it: the table, or a sentence about a column.
pub fn lookup_key(shapes: &Shapes, key: RowKey) -> Result<(usize, Key), KeyFault> {
    let Some(table) = shapes.find(&key.table) else {
        return Err(KeyFault::UnknownTable(key.table));
    };
    let one = One {
        shape: &shapes.tables()[table],
        position: 0,
    };
    one.key(key.key)
        .map(|key| (table, key))
        .map_err(|(column, why)| match column {
            Some(column) => {
                KeyFault::Bad(format!("table {:?}, column {column:?}: {why}", key.table))
            }
            None => KeyFault::Bad(format!("table {:?}: {why}", key.table)),
        })
}

/// Why a look-up's key is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyFault {
    /// The plugin owns no such table.
    UnknownTable(String),
    /// A part is missing, unknown or does not fit.
    Bad(String),
}

type Wrong = (Option<String>, String);

struct One<'a> {
    shape: &'a TableShape,
    position: i64,
}

impl One<'_> {
    fn write(
        &self,
        table: usize,
        event: usize,
        key: Vec<Cell>,
        change: GuestChange,
    ) -> Result<Checked, Wrong> {
        if let GuestChange::RemoveWhere(cells) = change {
            if !key.is_empty() {
                return Err((
                    None,
                    "remove-where takes no key; name the columns in its cells".to_owned(),
                ));
            }
            let mut cells = self.cells(cells, None)?;
            if cells.is_empty() {
                return Err((
                    None,
                    "remove-where without a column would delete every row".to_owned(),
                ));
            }
            cells.sort_by_key(|(column, _)| *column);
            return Ok(Checked::RemoveWhere {
                table,
                event,
                cells,
            });
        }
        let key = self.key(key)?;
        let change = match change {
            GuestChange::Insert(cells) => Change::Insert(self.whole(cells, &key)?),
            GuestChange::Put(cells) => Change::Put(self.whole(cells, &key)?),
            GuestChange::Merge(cells) => Change::Merge(self.cells(cells, Some(&key))?),
            GuestChange::Patch(cells) => Change::Patch(self.cells(cells, Some(&key))?),
            GuestChange::Add(cells) => Change::Add(self.amounts(cells)?),
            GuestChange::Remove => Change::Remove,
            GuestChange::RemoveWhere(_) => {
                return Err((None, "remove-where has no key".to_owned()));
            }
        };
        Ok(Checked::Row {
            table,
            event,
            key,
            change,
        })
    }

    fn key(&self, cells: Vec<Cell>) -> Result<Key, Wrong> {
        let table = &self.shape.table;
        let mut key: Vec<Option<Datum>> = vec![None; table.primary_key.len()];
        let mut near = 0;
        for cell in cells {
            let column = self.column(near, &cell.column)?;
            near = column + 1;
            let Some(part) = table.primary_key.iter().position(|&at| at == column) else {
                return Err((
                    Some(cell.column),
                    "is not part of the primary key".to_owned(),
                ));
            };
            let datum = self.datum(column, cell)?;
            if datum.is_null() {
                return Err((
                    Some(self.shape.column_name(column)),
                    "a key part is null".to_owned(),
                ));
            }
            if key[part].replace(datum).is_some() {
                return Err((
                    Some(self.shape.column_name(column)),
                    "is given twice in the key".to_owned(),
                ));
            }
        }
        let missing = key
            .iter()
            .position(Option::is_none)
            .map(|part| table.primary_key[part]);
        match missing {
            Some(column) => Err((
                Some(self.shape.column_name(column)),
                "is missing in the key".to_owned(),
            )),
            None => Ok(key.into_iter().flatten().collect()),
        }
    }

    /// Cells of a write to one row. A key column may stand among them when it repeats the key.
    fn cells(&self, cells: Vec<Cell>, key: Option<&Key>) -> Result<Cells, Wrong> {
        let mut found: Cells = Vec::with_capacity(cells.len());
        let mut near = 0;
        for cell in cells {
            let column = self.column(near, &cell.column)?;
            near = column + 1;
            let datum = self.datum(column, cell)?;
            if found.iter().any(|(known, _)| *known == column) {
                return Err((
                    Some(self.shape.column_name(column)),
                    "is given twice".to_owned(),
                ));
            }
            if let Some(key) = key {
                if let Some(part) = self
                    .shape
                    .table
                    .primary_key
                    .iter()
                    .position(|&at| at == column)
                {
                    if key[part] != datum {
                        return Err((
                            Some(self.shape.column_name(column)),
                            "differs from the key".to_owned(),
                        ));
                    }
                    continue;
                }
                if datum.is_null() && !self.shape.table.columns[column].nullable {
                    return Err((
                        Some(self.shape.column_name(column)),
                        "is not nullable and is given null".to_owned(),
                    ));
                }
            }
            found.push((column, datum));
        }
        Ok(found)
    }

    /// Cells of a whole row: what is not given must have a default or be nullable.
    fn whole(&self, cells: Vec<Cell>, key: &Key) -> Result<Cells, Wrong> {
        let cells = self.cells(cells, Some(key))?;
        let missing = self
            .shape
            .table
            .columns
            .iter()
            .enumerate()
            .find(|(at, column)| {
                !column.nullable
                    && !self.shape.in_key[*at]
                    && self.shape.defaults[*at].is_null()
                    && !cells.iter().any(|(given, _)| given == at)
            });
        match missing {
            Some((at, _)) => Err((
                Some(self.shape.column_name(at)),
                "is not nullable, has no default and is not given".to_owned(),
            )),
            None => Ok(cells),
        }
    }

    fn amounts(&self, cells: Vec<Cell>) -> Result<Vec<(usize, Amount)>, Wrong> {
        let mut found: Vec<(usize, Amount)> = Vec::with_capacity(cells.len());
        let mut near = 0;
        for cell in cells {
            let column = self.column(near, &cell.column)?;
            near = column + 1;
            if self.shape.in_key[column] {
                return Err((
                    Some(cell.column),
                    "is part of the key, which add cannot change".to_owned(),
                ));
            }
            let amount = Amount::from_value(cell.value, self.column_type(column), self.position)
                .map_err(|why| (Some(cell.column), why))?;
            if found.iter().any(|(known, _)| *known == column) {
                return Err((
                    Some(self.shape.column_name(column)),
                    "is given twice".to_owned(),
                ));
            }
            found.push((column, amount));
        }
        Ok(found)
    }

    fn column(&self, near: usize, name: &str) -> Result<usize, Wrong> {
        self.shape.find(near, name).ok_or_else(|| {
            let known: Vec<_> = self
                .shape
                .table
                .columns
                .iter()
                .map(|column| column.name.as_str())
                .collect();
            (
                Some(name.to_owned()),
                format!("the table has no such column; it has {}", known.join(", ")),
            )
        })
    }

    fn column_type(&self, column: usize) -> ColumnType {
        self.shape.table.columns[column].column_type
    }

    fn datum(&self, column: usize, cell: Cell) -> Result<Datum, Wrong> {
        Datum::from_value(cell.value, self.column_type(column), self.position)
            .map_err(|why| (Some(cell.column), why))
    }
}
