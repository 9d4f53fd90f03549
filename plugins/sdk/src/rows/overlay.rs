//! What a batch has made of the rows so far.
//!
//! Only tables that were read from are followed. A row is *known* once the host answered it or a write replaced it
//! as a whole; until then the writes on it are kept as a list and applied when somebody asks for it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::rc::Rc;

use crate::change::apply;
use crate::contract::{Cell, Change, List, Write};
use crate::event::Event;
use crate::key::KeyValue;
use crate::row::Row;
use crate::schema::{Schema, TableSchema};
use crate::value::Value;

/// Names a row: the table's place in the schema, and the row's among those that this batch has named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) table: usize,
    row: usize,
}

#[derive(Debug)]
enum State {
    Known(Option<Row>),
    /// Indexes of the writes since the host's row.
    Pending(Vec<usize>),
}

#[derive(Debug)]
struct Entry {
    /// The key as every write and look-up of this row has it.
    cells: List<Cell>,
    state: State,
    /// Whether it was asked for before an event needed it.
    is_expected: bool,
}

#[derive(Debug)]
struct Tracked {
    schema: Rc<TableSchema>,
    followed: bool,
    places: HashMap<Box<[KeyValue]>, usize, BuildHasherDefault<Quick>>,
    entries: Vec<Entry>,
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
            places: HashMap::default(),
            entries: Vec::new(),
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

    /// The row with this key, which is in its canonical form.
    pub(super) fn slot(&mut self, table: usize, key: &[KeyValue]) -> Slot {
        let tracked = &mut self.tables[table];
        let found = tracked.places.get(key).copied();
        let row = found.unwrap_or_else(|| tracked.enter(key));
        Slot { table, row }
    }

    /// Notes that a row is about to be fetched; false when it is known, or was noted before.
    pub(super) fn expect(&mut self, slot: Slot) -> bool {
        let entry = &mut self.tables[slot.table].entries[slot.row];
        let is_known = matches!(entry.state, State::Known(_));
        !is_known && !std::mem::replace(&mut entry.is_expected, true)
    }

    /// The row's key.
    pub(super) fn cells(&self, slot: Slot) -> List<Cell> {
        self.tables[slot.table].entries[slot.row].cells
    }

    pub(super) fn is_known(&self, slot: Slot) -> bool {
        matches!(
            self.tables[slot.table].entries[slot.row].state,
            State::Known(_)
        )
    }

    pub(super) fn row(&self, slot: Slot) -> Option<&Row> {
        match &self.tables[slot.table].entries[slot.row].state {
            State::Known(row) => row.as_ref(),
            State::Pending(_) => None,
        }
    }

    /// Takes the host's row and applies what this batch did to it since.
    pub(super) fn resolve(
        &mut self,
        slot: Slot,
        mut row: Option<Row>,
        writes: &[Write],
        events: &[Event],
    ) {
        let table = &mut self.tables[slot.table];
        let entry = &mut table.entries[slot.row];
        if let State::Pending(since) = &entry.state {
            for &index in since {
                apply_write(&table.schema, &writes[index], events, &mut row);
            }
        }
        entry.state = State::Known(row);
    }

    /// Takes a write into account. One that the host is going to refuse changes nothing here.
    pub(super) fn record(
        &mut self,
        table: usize,
        slot: Option<Slot>,
        index: usize,
        writes: &[Write],
        events: &[Event],
    ) {
        let write = &writes[index];
        let table = &mut self.tables[table];
        if matches!(write.change, Change::RemoveWhere(_)) {
            for entry in &mut table.entries {
                match &mut entry.state {
                    State::Known(row) => apply_write(&table.schema, write, events, row),
                    State::Pending(since) => since.push(index),
                }
            }
            table.sweeps.push(index);
            return;
        }
        let Some(slot) = slot else {
            return;
        };
        match &mut table.entries[slot.row].state {
            State::Known(row) => apply_write(&table.schema, write, events, row),
            state if matches!(write.change, Change::Put(_) | Change::Remove) => {
                let mut row = None;
                apply_write(&table.schema, write, events, &mut row);
                *state = State::Known(row);
            }
            State::Pending(since) => since.push(index),
        }
    }
}

impl Tracked {
    fn enter(&mut self, key: &[KeyValue]) -> usize {
        let row = self.entries.len();
        let mut cells = Vec::with_capacity(key.len());
        for (&place, &value) in self.schema.primary_key.iter().zip(key) {
            cells.push(Cell {
                column: self.schema.columns[place].name,
                value: value.into(),
            });
        }
        self.entries.push(Entry {
            cells: cells.into(),
            state: State::Pending(self.sweeps.clone()),
            is_expected: false,
        });
        self.places.insert(key.into(), row);
        row
    }
}

impl Hash for KeyValue {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        match self {
            Self::Uuid(uuid) => hasher.write(uuid.as_bytes()),
            Self::Value(Value::Int(number)) => hasher.write_i64(*number),
            Self::Value(Value::Text(text)) => {
                hasher.write(text.as_bytes());
                hasher.write_usize(text.len());
            }
            Self::Value(other) => hasher.write(format!("{other:?}").as_bytes()),
        }
    }
}

/// Hashes keys, eight bytes at a time; numbered UUIDs differ in few bits, which the end spreads over all. The order of a hash map never shows, and in a component the usual hasher has no
/// random seed either.
#[derive(Debug, Default)]
pub(super) struct Quick(u64);

impl Quick {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

    fn mix(&mut self, word: u64) {
        let product = (self.0 ^ word).wrapping_mul(Self::FACTOR);
        self.0 = product ^ product >> 32;
    }
}

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let word = |word, byte: &u8| word << 8 | u64::from(*byte);
            self.mix(rest.iter().fold(0, word));
        }
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    fn write_i64(&mut self, number: i64) {
        self.mix(number.cast_unsigned());
    }

    fn finish(&self) -> u64 {
        let product = self.0.wrapping_mul(Self::FACTOR);
        product ^ product >> 32
    }
}

fn apply_write(schema: &Rc<TableSchema>, write: &Write, events: &[Event], row: &mut Option<Row>) {
    let event = events.get(write.event as usize);
    apply(
        schema,
        &write.target.key,
        &write.change,
        event.map_or(0, |event| event.position),
        row,
    );
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::{KeyValue, Quick};
    use crate::types::Uuid;
    use crate::value::Value;

    /// A hash map looks at the lowest bits for the place and at the highest seven for a first comparison.
    fn check(keys: &[KeyValue]) {
        let hash = |key: &KeyValue| BuildHasherDefault::<Quick>::default().hash_one([*key]);
        let hashes: Vec<u64> = keys.iter().map(hash).collect();
        let distinct = |part: &dyn Fn(u64) -> u64| {
            let parts: HashSet<u64> = hashes.iter().map(|&hash| part(hash)).collect();
            parts.len()
        };
        assert!(distinct(&|hash| hash & 0xffff) > 3_500, "{:?}", keys[0]);
        assert!(distinct(&|hash| hash >> 57) > 120, "{:?}", keys[0]);
    }

    #[test]
    fn numbered_keys_are_spread() {
        let uuids = |at: usize| -> Vec<KeyValue> {
            let uuid = |number: u32| {
                let mut bytes = [7; 16];
                bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
                KeyValue::Uuid(Uuid::from_bytes(bytes))
            };
            (0..4_096).map(uuid).collect()
        };
        (0..=12).for_each(|at| check(&uuids(at)));
        let values = |value: fn(i64) -> Value| -> Vec<KeyValue> {
            (0..4_096).map(|n| KeyValue::Value(value(n))).collect()
        };
        check(&values(Value::Int));
        check(&values(|number| format!("item-{number:04}").into()));
        check(&values(|number| format!("{number:08}").into()));
    }
}
