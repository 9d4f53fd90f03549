//! Tables in memory that take writes one by one, as the contract means them, and answer lookups.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::check::fits;
use crate::canonical::canonical;
use crate::change::apply;
use crate::contract::{Cell, Change, Found, List, LookupError, Maybe, RowKey, Text, Write};
use crate::description::ColumnType;
use crate::event::Event;
use crate::key::{Key, KeyPart};
use crate::row::Row;
use crate::rows::ReadModel;
use crate::schema::{Schema, TableSchema};
use crate::value::Value;

/// Fewer than the SDK asks for at once, so that its splitting is always at work.
const LOOKUP_KEYS_MAX: usize = 300;

/// A write that its table refuses.
#[derive(Debug)]
pub(super) struct Refused {
    /// Index of its event in the batch.
    pub(super) event: usize,
    pub(super) message: String,
}

/// What a row was before a write.
struct Undo {
    table: usize,
    place: Vec<u8>,
    before: Option<Row>,
}

/// The projection's tables and their rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Tables {
    tables: Vec<Stored>,
}

#[derive(Debug, Clone, PartialEq)]
struct Stored {
    schema: Rc<TableSchema>,
    /// By the sortable form of the key.
    rows: BTreeMap<Vec<u8>, Row>,
}

impl Tables {
    /// The rows of a table in the order of its primary key; none when there is no such table.
    pub fn rows(&self, table: &str) -> impl Iterator<Item = &Row> {
        self.stored(table)
            .into_iter()
            .flat_map(|stored| stored.rows.values())
    }

    /// The same as JSON objects.
    #[must_use]
    pub fn json(&self, table: &str) -> Vec<String> {
        self.rows(table).map(|row| row.to_json(|_| true)).collect()
    }

    /// The row that this key names.
    #[must_use]
    pub fn row(&self, key: &Key) -> Option<&Row> {
        let Stored { schema, rows } = self.stored(key.table())?;
        rows.get(&sortable(&schema.key_values(&key.parts, 0)?))
    }

    /// Whether the projection has this table.
    #[must_use]
    pub fn has(&self, table: &str) -> bool {
        self.stored(table).is_some()
    }

    /// The first row in which the tables of the same projection differ, as both have it.
    pub(super) fn difference(&self, other: &Self) -> Option<String> {
        let show = |row: Option<&Row>| row.map_or("no row".to_owned(), |row| row.to_json(|_| true));
        self.tables
            .iter()
            .zip(&other.tables)
            .find_map(|(left, right)| {
                let places = left.rows.keys().chain(right.rows.keys());
                places
                    .map(|place| (left.rows.get(place), right.rows.get(place)))
                    .find(|(left, right)| left != right)
                    .map(|(ours, theirs)| {
                        format!(
                            "`{}`: {} and {}",
                            left.schema.name,
                            show(ours),
                            show(theirs)
                        )
                    })
            })
    }

    pub(super) fn new(schema: &Schema) -> Self {
        let empty = |schema: &Rc<TableSchema>| Stored {
            schema: Rc::clone(schema),
            rows: BTreeMap::new(),
        };
        Self {
            tables: schema.tables.iter().map(empty).collect(),
        }
    }

    fn stored(&self, table: &str) -> Option<&Stored> {
        self.tables
            .iter()
            .find(|stored| stored.schema.name == *table)
    }

    /// Applies these writes, or none of them when a table refuses one.
    pub(super) fn apply(&mut self, writes: &[Write], events: &[Event]) -> Result<(), Refused> {
        let mut undo = Vec::new();
        for write in writes {
            let event = write.event as usize;
            if let Err(message) = self.write(write, events[event].position, &mut undo) {
                self.roll_back(undo);
                return Err(Refused {
                    event,
                    message: format!("table `{}`: {message}", write.target.table),
                });
            }
        }
        Ok(())
    }

    fn write(&mut self, write: &Write, position: u64, undo: &mut Vec<Undo>) -> Result<(), String> {
        let Write { target, change, .. } = write;
        let table = self
            .tables
            .iter()
            .position(|stored| stored.schema.name == target.table)
            .ok_or("no such table")?;
        let Stored { schema, rows } = &mut self.tables[table];
        check_cells(schema, change, position)?;
        let places = if matches!(change, Change::RemoveWhere(_)) {
            if !target.key.is_empty() {
                return Err("`remove-where` takes no key".to_owned());
            }
            rows.keys().cloned().collect()
        } else {
            vec![sortable(&key(schema, &target.key, position)?)]
        };
        for place in places {
            let before = rows.get(&place).cloned();
            let mut row = before.clone();
            apply(schema, &target.key, change, position, &mut row);
            if row == before {
                continue;
            }
            match row {
                Some(row) => {
                    fits_table(&row)?;
                    rows.insert(place.clone(), row);
                }
                None => {
                    rows.remove(&place);
                }
            }
            undo.push(Undo {
                table,
                place,
                before,
            });
        }
        Ok(())
    }

    fn roll_back(&mut self, undo: Vec<Undo>) {
        for Undo {
            table,
            place,
            before,
        } in undo.into_iter().rev()
        {
            let rows = &mut self.tables[table].rows;
            match before {
                Some(row) => rows.insert(place, row),
                None => rows.remove(&place),
            };
        }
    }
}

impl ReadModel for Tables {
    fn get(&self, keys: &[RowKey]) -> Result<Found, LookupError> {
        if keys.len() > LOOKUP_KEYS_MAX {
            return Err(LookupError::TooMany(format!("{} keys", keys.len()).into()));
        }
        let answers: Result<Vec<_>, _> = keys.iter().map(|wanted| self.look_up(wanted)).collect();
        answers.map(List::from)
    }
}

impl Tables {
    fn look_up(&self, wanted: &RowKey) -> Result<Maybe<List<Cell>>, LookupError> {
        let Stored { schema, rows } = self
            .stored(&wanted.table)
            .ok_or(LookupError::UnknownTable(wanted.table))?;
        if wanted.key.iter().any(|cell| cell.value == Value::Position) {
            return Err(LookupError::BadKey(Text::new("a lookup has no event")));
        }
        let values =
            key(schema, &wanted.key, 0).map_err(|reason| LookupError::BadKey(reason.into()))?;
        Ok(rows.get(&sortable(&values)).map(answer).into())
    }
}

/// A row as the host answers it; its JSON is spaced otherwise than a plugin would write it.
fn answer(row: &Row) -> List<Cell> {
    let cells = row.table.columns.iter().zip(&row.values);
    cells
        .map(|(column, value)| Cell {
            column: column.name,
            value: match value {
                Value::Text(json) if column.column_type == ColumnType::Jsonb => {
                    format!(" {json} ").into()
                }
                other => *other,
            },
        })
        .collect::<Vec<_>>()
        .into()
}

fn fits_table(row: &Row) -> Result<(), String> {
    for (column, value) in row.table.columns.iter().zip(&row.values) {
        fits(column, value).map_err(|reason| format!("column `{}`: {reason}", column.name))?;
    }
    Ok(())
}

/// The key's values, each checked.
fn key(schema: &TableSchema, key: &[Cell], position: u64) -> Result<Vec<Value>, String> {
    let parts: Vec<KeyPart> = key.iter().map(|&cell| cell.into()).collect();
    let values = schema
        .key_values(&parts, position)
        .ok_or("the key does not have the parts of the primary key")?;
    for (&place, value) in schema.primary_key.iter().zip(&values) {
        let column = &schema.columns[place];
        fits(column, value).map_err(|reason| format!("column `{}`: {reason}", column.name))?;
    }
    Ok(values)
}

/// Every column that a write gives must exist and its value fit, whether or not it comes to anything.
fn check_cells(schema: &TableSchema, change: &Change, position: u64) -> Result<(), String> {
    let cells = match change {
        Change::Insert(cells)
        | Change::Put(cells)
        | Change::Merge(cells)
        | Change::Patch(cells)
        | Change::Add(cells)
        | Change::RemoveWhere(cells) => cells,
        Change::Remove => return Ok(()),
    };
    for cell in cells {
        let name = cell.column;
        let place = schema
            .column(&name)
            .ok_or_else(|| format!("no column `{name}`"))?;
        let column = &schema.columns[place];
        let value = canonical(column.column_type, cell.value, position);
        let fitting = match change {
            // An amount may be larger than its column; the sum may not.
            Change::Add(_) if matches!(value, Value::Other(..)) => Ok(()),
            Change::RemoveWhere(_) if value.is_null() => Ok(()),
            _ if schema.primary_key.contains(&place)
                && !matches!(change, Change::RemoveWhere(_)) =>
            {
                Err("a part of the key cannot be written".to_owned())
            }
            _ => fits(column, &value),
        };
        fitting.map_err(|reason| format!("column `{name}`: {reason}"))?;
    }
    Ok(())
}

/// Bytes that sort as the values do.
fn sortable(values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        match value {
            Value::Int(number) => bytes.extend_from_slice(&(number ^ i64::MIN).to_be_bytes()),
            Value::Text(text) => {
                bytes.extend_from_slice(text.as_bytes());
                bytes.push(0);
            }
            other => bytes.extend_from_slice(format!("{other:?}\0").as_bytes()),
        }
    }
    bytes
}
