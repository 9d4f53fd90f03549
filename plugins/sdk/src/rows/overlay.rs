//! What a batch has made of the rows so far.
//!
//! Only tables that were read from are followed. A row is *known* once the host answered it or a write replaced it
//! as a whole; until then the writes on it are kept as a list and applied when somebody asks for it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::rc::Rc;

use crate::bindings::projector::projection::types::{Cell, Change, Event, Write};
use crate::change::apply;
use crate::row::Row;
use crate::schema::{Schema, TableSchema};

/// Names a row: the table's place in the schema and its key in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) table: usize,
    key: Vec<u8>,
}

#[derive(Debug)]
enum Entry {
    Known(Option<Row>),
    /// Indexes of the writes since the host's row.
    Pending(Vec<usize>),
}

#[derive(Debug)]
struct Tracked {
    schema: Rc<TableSchema>,
    followed: bool,
    entries: HashMap<Vec<u8>, Entry, BuildHasherDefault<Quick>>,
    /// Indexes of the `remove-where` writes, which may concern rows that nobody named yet.
    sweeps: Vec<usize>,
}

#[derive(Debug)]
pub(super) struct Overlay {
    tables: Vec<Tracked>,
}

impl Overlay {
    pub(super) fn new(schema: &Schema) -> Self {
        let tracked = |schema: &Rc<TableSchema>| Tracked {
            schema: Rc::clone(schema),
            followed: false,
            entries: HashMap::default(),
            sweeps: Vec::new(),
        };
        Self {
            tables: schema.tables.iter().map(tracked).collect(),
        }
    }

    pub(super) fn is_tracked(&self, table: usize) -> bool {
        self.tables[table].followed
    }

    /// Follows a table from now on.
    pub(super) fn track(&mut self, table: usize) {
        self.tables[table].followed = true;
    }

    /// The row's name; `None` when the key is not the table's.
    pub(super) fn slot(&self, table: usize, key: &[Cell], position: u64) -> Option<Slot> {
        let key = self.tables[table].schema.key_bytes(key, position)?;
        Some(Slot { table, key })
    }

    /// Notes that a row is about to be fetched; false when it was noted before.
    pub(super) fn expect(&mut self, slot: &Slot) -> bool {
        let entries = &mut self.tables[slot.table].entries;
        if entries.contains_key(&slot.key) {
            return false;
        }
        entries.insert(slot.key.clone(), Entry::Pending(Vec::new()));
        true
    }

    pub(super) fn is_known(&self, slot: &Slot) -> bool {
        matches!(
            self.tables[slot.table].entries.get(&slot.key),
            Some(Entry::Known(_))
        )
    }

    pub(super) fn row(&self, slot: &Slot) -> Option<&Row> {
        match self.tables[slot.table].entries.get(&slot.key) {
            Some(Entry::Known(row)) => row.as_ref(),
            _ => None,
        }
    }

    /// Takes the host's row and applies what this batch did to it since.
    pub(super) fn resolve(
        &mut self,
        slot: &Slot,
        mut row: Option<Row>,
        writes: &[Write],
        events: &[Event],
    ) {
        let table = &mut self.tables[slot.table];
        let since = match table.entries.get(&slot.key) {
            Some(Entry::Pending(since)) => since,
            _ => &table.sweeps,
        };
        for &index in since {
            apply_write(&table.schema, &writes[index], events, &mut row);
        }
        match table.entries.get_mut(&slot.key) {
            Some(entry) => *entry = Entry::Known(row),
            None => {
                table.entries.insert(slot.key.clone(), Entry::Known(row));
            }
        }
    }

    /// Takes a write into account. One that the host is going to refuse changes nothing here.
    pub(super) fn record(&mut self, index: usize, writes: &[Write], events: &[Event]) {
        let write = &writes[index];
        let Some(table) = self
            .tables
            .iter_mut()
            .find(|table| table.followed && table.schema.name == write.target.table)
        else {
            return;
        };
        if matches!(write.change, Change::RemoveWhere(_)) {
            for entry in table.entries.values_mut() {
                match entry {
                    Entry::Known(row) => apply_write(&table.schema, write, events, row),
                    Entry::Pending(since) => since.push(index),
                }
            }
            table.sweeps.push(index);
            return;
        }
        let Some(key) = table
            .schema
            .key_bytes(&write.target.key, position(write, events))
        else {
            return;
        };
        let sweeps = &table.sweeps;
        let entry = table
            .entries
            .entry(key)
            .or_insert_with(|| Entry::Pending(sweeps.clone()));
        match entry {
            Entry::Known(row) => apply_write(&table.schema, write, events, row),
            Entry::Pending(since) => {
                if matches!(write.change, Change::Put(_) | Change::Remove) {
                    let mut row = None;
                    apply_write(&table.schema, write, events, &mut row);
                    *entry = Entry::Known(row);
                } else {
                    since.push(index);
                }
            }
        }
    }
}

/// Hashes keys, eight bytes at a time. The order of a hash map never shows, and in a component the usual hasher has no
/// random seed either.
#[derive(Debug, Default)]
struct Quick(u64);

impl Quick {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        for byte in rest {
            self.mix(u64::from(*byte));
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

fn position(write: &Write, events: &[Event]) -> u64 {
    usize::try_from(write.event)
        .ok()
        .and_then(|index| events.get(index))
        .map_or(0, |event| event.position)
}

fn apply_write(schema: &Rc<TableSchema>, write: &Write, events: &[Event], row: &mut Option<Row>) {
    apply(
        schema,
        &write.target.key,
        &write.change,
        position(write, events),
        row,
    );
}
