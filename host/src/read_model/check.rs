//! Returned writes, checked one by one against the plugin's own tables.
//!
//! Everything is judged before folding, so that what is refused does not depend on the other writes of the
//! batch. An error names the event's position, the table and the column.

use std::fmt;
use std::sync::Arc;

use crate::error::Code;
use crate::event_store::event::Event;
use crate::guest::writes::{Keys, Kind, Name, ValueRef, WriteRef, Writes};
use crate::plugin::manifest::{ColumnType, Table};

use super::datum::size;
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
    /// For each column: its name, to be shared.
    pub names: Vec<Arc<str>>,
    /// For each column: how large its values may be, where an index bounds them.
    index_bounds: Vec<Option<usize>>,
    /// Columns beside the key that a new row must give.
    required: Vec<usize>,
}

impl TableShape {
    /// Works out the shape of a declared table.
    ///
    /// # Errors
    /// When a default does not fit its column.
    pub fn new(table: Table) -> Result<Self, String> {
        let defaults = table.columns.iter().map(|column| match &column.default {
            None => Ok(Datum::Null),
            Some(text) => Datum::from_text(text, column.column_type).map_err(|why| {
                format!(
                    "table {}, column {}: default: {why}",
                    table.name, column.name
                )
            }),
        });
        let defaults = defaults.collect::<Result<Vec<_>, _>>()?;
        let index_bounds = size::bounds(&table);
        for ((column, default), bound) in table.columns.iter().zip(&defaults).zip(&index_bounds) {
            size::check_indexed(default, *bound).map_err(|why| {
                format!(
                    "table {}, column {}: default: {why}",
                    table.name, column.name
                )
            })?;
        }
        let in_key: Vec<bool> = (0..table.columns.len())
            .map(|at| table.primary_key.contains(&at))
            .collect();
        let is_required =
            |at: &usize| !table.columns[*at].nullable && !in_key[*at] && defaults[*at].is_null();
        let required = (0..table.columns.len()).filter(is_required).collect();
        let names = table.columns.iter().map(|column| column.name.as_str());
        Ok(Self {
            names: names.map(Arc::from).collect(),
            table,
            defaults,
            in_key,
            index_bounds,
            required,
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

    fn find(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| **known == *name)
    }

    /// The place of a column in the primary key.
    fn key_part(&self, column: usize) -> Option<usize> {
        self.table.primary_key.iter().position(|&at| at == column)
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
    writes: &Writes,
) -> Result<Vec<Checked>, Box<Fault>> {
    let mut named = Named::new(shapes, writes);
    let mut checked = Vec::with_capacity(writes.len());
    for write in writes.iter() {
        let table_name = || writes.name(write.table()).to_owned();
        let at = usize::try_from(write.event()).unwrap_or(usize::MAX);
        let Some(event) = events.get(at) else {
            return Err(Box::new(Fault {
                event: 0,
                position: 0,
                table: table_name(),
                column: None,
                why: format!(
                    "the write names event {} of a batch of {}",
                    write.event(),
                    events.len()
                ),
            }));
        };
        let position = event.position.0;
        let fault = |(column, why): Wrong| {
            Box::new(Fault {
                event: at,
                position,
                table: table_name(),
                column,
                why,
            })
        };
        let Some(table) = named.table(write.table()) else {
            let known: Vec<_> = shapes
                .tables()
                .iter()
                .map(|shape| shape.table.name.as_str())
                .collect();
            return Err(fault((
                None,
                format!(
                    "the plugin owns no such table; it declared {}",
                    known.join(", ")
                ),
            )));
        };
        let one = One {
            shape: &shapes.tables()[table],
            position,
        };
        let columns = named.columns(table);
        checked.push(one.write(table, at, columns, write).map_err(fault)?);
    }
    Ok(checked)
}

/// What the names of a batch mean, each found out once.
struct Named<'a> {
    shapes: &'a Shapes,
    writes: &'a Writes,
    /// By name: the table, if there is one; none while nobody asked.
    tables: Vec<Option<Option<usize>>>,
    /// By table, then by name: the column.
    columns: Vec<Vec<Option<Option<usize>>>>,
}

impl<'a> Named<'a> {
    fn new(shapes: &'a Shapes, writes: &'a Writes) -> Self {
        Self {
            shapes,
            writes,
            tables: vec![None; writes.names()],
            columns: vec![Vec::new(); shapes.tables().len()],
        }
    }

    fn table(&mut self, name: Name) -> Option<usize> {
        *self.tables[name.place()].get_or_insert_with(|| self.shapes.find(self.writes.name(name)))
    }

    /// The columns of a table: the place of each, or its name when the table has no such column.
    fn columns(&mut self, table: usize) -> impl FnMut(Name) -> Result<usize, &'a str> {
        let shape = &self.shapes.tables()[table];
        let writes = self.writes;
        let known = &mut self.columns[table];
        if known.is_empty() {
            known.resize(writes.names(), None);
        }
        move |name| {
            known[name.place()]
                .get_or_insert_with(|| shape.find(writes.name(name)))
                .ok_or_else(|| writes.name(name))
        }
    }
}

/// Checks the keys of a look-up.
///
/// # Errors
/// What is wrong with the first bad one: the table, or a sentence about a column.
pub fn lookup_keys(shapes: &Shapes, keys: &Keys) -> Result<Vec<(usize, Key)>, KeyFault> {
    let rows = keys.rows();
    let mut named = Named::new(shapes, rows);
    rows.iter()
        .map(|row| {
            let name = || rows.name(row.table());
            let Some(table) = named.table(row.table()) else {
                return Err(KeyFault::UnknownTable(name().to_owned()));
            };
            let one = One {
                shape: &shapes.tables()[table],
                position: 0,
            };
            let mut column = named.columns(table);
            let key = one.key(row.key().map(|(name, value)| (column(name), value)));
            key.map(|key| (table, key)).map_err(|(column, why)| {
                KeyFault::Bad(match column {
                    Some(column) => format!("table {:?}, column {column:?}: {why}", name()),
                    None => format!("table {:?}: {why}", name()),
                })
            })
        })
        .collect()
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

/// A column's place, or its name when there is no such column; and its value.
type Given<'a> = (Result<usize, &'a str>, ValueRef<'a>);

struct One<'a> {
    shape: &'a TableShape,
    position: i64,
}

impl One<'_> {
    fn write<'w>(
        &self,
        table: usize,
        event: usize,
        mut column: impl FnMut(Name) -> Result<usize, &'w str>,
        write: WriteRef<'w>,
    ) -> Result<Checked, Wrong> {
        if write.kind() == Kind::RemoveWhere {
            if write.key().len() > 0 {
                return Err((
                    None,
                    "remove-where takes no key; name the columns in its cells".to_owned(),
                ));
            }
            let given = write.columns().map(|(name, value)| (column(name), value));
            let mut cells = self.cells(given, None)?;
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
        let key = self.key(write.key().map(|(name, value)| (column(name), value)))?;
        let given = write.columns().map(|(name, value)| (column(name), value));
        let change = match write.kind() {
            Kind::Insert => Change::Insert(self.whole(given, &key)?),
            Kind::Put => Change::Put(self.whole(given, &key)?),
            Kind::Merge => Change::Merge(self.cells(given, Some(&key))?),
            Kind::Patch => Change::Patch(self.cells(given, Some(&key))?),
            Kind::Add => Change::Add(self.amounts(given)?),
            Kind::Remove | Kind::RemoveWhere => Change::Remove,
        };
        Ok(Checked::Row {
            table,
            event,
            key,
            change,
        })
    }

    fn key<'v>(&self, cells: impl ExactSizeIterator<Item = Given<'v>>) -> Result<Key, Wrong> {
        let table = &self.shape.table;
        // Null is what was not given yet: no part may be null.
        let mut key: Key = vec![Datum::Null; table.primary_key.len()];
        for (column, value) in cells {
            let column = self.column(column)?;
            let wrong = |why: &str| (Some(self.shape.column_name(column)), why.to_owned());
            let Some(part) = self.shape.key_part(column) else {
                return Err(wrong("is not part of the primary key"));
            };
            let datum = self.datum(column, value)?;
            if datum.is_null() {
                return Err(wrong("a key part is null"));
            }
            if !key[part].is_null() {
                return Err(wrong("is given twice in the key"));
            }
            key[part] = datum.into_key();
        }
        size::check_key(&key).map_err(|why| (None, why))?;
        match key.iter().position(Datum::is_null) {
            Some(part) => Err((
                Some(self.shape.column_name(table.primary_key[part])),
                "is missing in the key".to_owned(),
            )),
            None => Ok(key),
        }
    }

    /// Cells of a write to one row. A key column may stand among them when it repeats the key.
    fn cells<'v>(
        &self,
        cells: impl ExactSizeIterator<Item = Given<'v>>,
        key: Option<&Key>,
    ) -> Result<Cells, Wrong> {
        let mut found: Cells = Vec::with_capacity(cells.len());
        let mut highest = None;
        for (column, value) in cells {
            let column = self.column(column)?;
            let wrong = |why: &str| (Some(self.shape.column_name(column)), why.to_owned());
            let datum = self.datum(column, value)?;
            // Most guests name columns in the order in which they declared them.
            let in_order = Some(column) > highest;
            if !in_order && found.iter().any(|(known, _)| *known == column) {
                return Err(wrong("is given twice"));
            }
            highest = highest.max(Some(column));
            if let Some(key) = key {
                if let Some(part) = self.shape.key_part(column) {
                    if key[part] != datum {
                        return Err(wrong("differs from the key"));
                    }
                    continue;
                }
                if datum.is_null() && !self.shape.table.columns[column].nullable {
                    return Err(wrong("is not nullable and is given null"));
                }
            }
            found.push((column, datum));
        }
        Ok(found)
    }

    /// Cells of a whole row: what is not given must have a default or be nullable.
    fn whole<'v>(
        &self,
        cells: impl ExactSizeIterator<Item = Given<'v>>,
        key: &Key,
    ) -> Result<Cells, Wrong> {
        let cells = self.cells(cells, Some(key))?;
        let required = self.shape.required.iter();
        let mut missing =
            required.filter(|column| !cells.iter().any(|(given, _)| given == *column));
        match missing.next() {
            Some(&column) => Err((
                Some(self.shape.column_name(column)),
                "is not nullable, has no default and is not given".to_owned(),
            )),
            None => Ok(cells),
        }
    }

    fn amounts<'v>(
        &self,
        cells: impl ExactSizeIterator<Item = Given<'v>>,
    ) -> Result<Vec<(usize, Amount)>, Wrong> {
        let mut found: Vec<(usize, Amount)> = Vec::with_capacity(cells.len());
        for (column, value) in cells {
            let column = self.column(column)?;
            let wrong = |why: &str| (Some(self.shape.column_name(column)), why.to_owned());
            if self.shape.in_key[column] {
                return Err(wrong("is part of the key, which add cannot change"));
            }
            let amount = Amount::from_value(value, self.column_type(column), self.position)
                .map_err(|why| wrong(&why))?;
            if let Amount::Decimal(number) = &amount {
                let bound = self.shape.index_bounds[column];
                size::check_indexed(&Datum::Numeric(number.clone()), bound)
                    .map_err(|why| wrong(&why))?;
            }
            if found.iter().any(|(known, _)| *known == column) {
                return Err(wrong("is given twice"));
            }
            found.push((column, amount));
        }
        Ok(found)
    }

    fn column(&self, found: Result<usize, &str>) -> Result<usize, Wrong> {
        found.map_err(|name| {
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

    fn datum(&self, column: usize, value: ValueRef<'_>) -> Result<Datum, Wrong> {
        Datum::from_value(value, self.column_type(column), self.position)
            .and_then(|datum| {
                size::check_indexed(&datum, self.shape.index_bounds[column])?;
                Ok(datum)
            })
            .map_err(|why| (Some(self.shape.column_name(column)), why))
    }
}
