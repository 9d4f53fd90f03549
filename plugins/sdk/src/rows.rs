//! The rows that a projection reads and writes while a batch runs: it sees its own writes at once.

mod overlay;
mod write;

use std::rc::Rc;

use crate::bindings::projector::projection::read_model::LookupError;
use crate::bindings::projector::projection::types::{Cell, Event, RowKey, Write};
use crate::failure::Failure;
use crate::key::{Key, Keys};
use crate::row::Row;
use crate::schema::Schema;
use crate::value::Value;

use overlay::{Overlay, Slot};
pub use write::RowWrite;

/// How many rows one lookup asks for; fewer when the host says that it is too many.
const LOOKUP_KEYS_MAX: usize = 1_000;

/// Where rows that this batch did not write come from.
pub(crate) trait ReadModel {
    /// One answer a key, in the order of the keys.
    fn get(&self, keys: &[RowKey]) -> Result<Vec<Option<Vec<Cell>>>, LookupError>;
}

/// The projection's rows at this moment of the batch, and the writes so far.
pub struct Rows<'batch> {
    read_model: &'batch dyn ReadModel,
    schema: Rc<Schema>,
    events: &'batch [Event],
    /// Index of the event that is being handled.
    event: usize,
    writes: Vec<Write>,
    overlay: Overlay,
}

impl<'batch> Rows<'batch> {
    /// The row as it stands now, or `None` when there is none.
    ///
    /// # Errors
    ///
    /// Rejects the event when a part of the key is missing or does not fit its column; fatal when the projection
    /// has no such table.
    pub fn get(&mut self, key: &Key) -> Result<Option<&Row>, Failure> {
        let table = self.place(key)?;
        if !self.overlay.is_tracked(table) {
            self.track(table);
        }
        let slot = self
            .overlay
            .slot(table, &key.0.key, self.events[self.event].position)
            .ok_or_else(|| bad_key(key, "its parts are not those of the table's primary key"))?;
        if !self.overlay.is_known(&slot) {
            let row = self.fetch(&slot, key)?;
            self.overlay.resolve(&slot, row, &self.writes, self.events);
        }
        Ok(self.overlay.row(&slot))
    }

    /// Begins a write on the row that this key names.
    pub fn row(&mut self, key: Key) -> RowWrite<'_, 'batch> {
        RowWrite::new(self, key)
    }

    /// Begins a write on a row of this table; its key follows with [`RowWrite::key`].
    pub fn table(&mut self, name: &str) -> RowWrite<'_, 'batch> {
        self.row(Key::new(name))
    }

    pub(crate) fn new(
        read_model: &'batch dyn ReadModel,
        schema: Rc<Schema>,
        events: &'batch [Event],
    ) -> Self {
        Self {
            read_model,
            overlay: Overlay::new(&schema),
            schema,
            events,
            event: 0,
            writes: Vec::with_capacity(3 * events.len()),
        }
    }

    /// Writes belong to this event from now on.
    pub(crate) fn begin(&mut self, event: usize) {
        self.event = event;
    }

    /// Fetches rows before the first write. No event is being handled yet, so a key cannot hold the position of
    /// one. Keys that the host refuses are left out: asking for one later tells
    /// which event it is that names it.
    pub(crate) fn prefetch(&mut self, keys: Keys) {
        let mut wanted = Vec::new();
        for key in keys.0 {
            let Some(table) = self.schema.place(key.table()) else {
                continue;
            };
            self.overlay.track(table);
            if key.0.key.iter().any(|cell| cell.value == Value::Position) {
                continue;
            }
            if let Some(slot) = self.overlay.slot(table, &key.0.key, 0)
                && self.overlay.expect(&slot)
            {
                wanted.push((slot, key.0));
            }
        }
        let (slots, keys): (Vec<Slot>, Vec<RowKey>) = wanted.into_iter().unzip();
        for (slots, keys) in slots
            .chunks(LOOKUP_KEYS_MAX)
            .zip(keys.chunks(LOOKUP_KEYS_MAX))
        {
            self.prefetch_chunk(slots, keys);
        }
    }

    /// The writes of the batch.
    pub(crate) fn finish(self) -> Vec<Write> {
        self.writes
    }

    fn prefetch_chunk(&mut self, slots: &[Slot], keys: &[RowKey]) {
        match self.read_model.get(keys) {
            Ok(rows) if rows.len() == keys.len() => {
                for (slot, row) in slots.iter().zip(rows) {
                    let row =
                        row.map(|cells| Row::from_host(&self.schema.tables[slot.table], cells));
                    self.overlay.resolve(slot, row, &self.writes, self.events);
                }
            }
            Err(LookupError::TooMany(_)) if keys.len() > 1 => {
                let half = keys.len() / 2;
                self.prefetch_chunk(&slots[..half], &keys[..half]);
                self.prefetch_chunk(&slots[half..], &keys[half..]);
            }
            _ => {}
        }
    }

    fn fetch(&self, slot: &Slot, key: &Key) -> Result<Option<Row>, Failure> {
        let mut rows = self
            .read_model
            .get(&[key.at(self.events[self.event].position)])
            .map_err(|error| match error {
                LookupError::BadKey(message) => bad_key(key, &message),
                LookupError::TooMany(message) => Failure::rejected("too-many", message),
                LookupError::UnknownTable(message) => Failure::fatal("unknown-table", message),
                LookupError::UnknownColumn(message) => Failure::fatal("unknown-column", message),
            })?;
        let row = rows.pop().flatten();
        Ok(row.map(|cells| Row::from_host(&self.schema.tables[slot.table], cells)))
    }

    /// Follows a table from now on, starting with what this batch has already written to it.
    fn track(&mut self, table: usize) {
        self.overlay.track(table);
        let name = self.schema.tables[table].name;
        for index in 0..self.writes.len() {
            if self.writes[index].target.table == name {
                self.overlay.record(index, &self.writes, self.events);
            }
        }
    }

    fn push(&mut self, write: Write) {
        self.writes.push(write);
        self.overlay
            .record(self.writes.len() - 1, &self.writes, self.events);
    }

    fn place(&self, key: &Key) -> Result<usize, Failure> {
        self.schema.place(key.table()).ok_or_else(|| {
            Failure::fatal(
                "unknown-table",
                format!("the projection describes no table `{}`", key.table()),
            )
        })
    }
}

fn bad_key(key: &Key, reason: &str) -> Failure {
    Failure::rejected(
        "bad-key",
        format!("the key of a row of `{}`: {reason}", key.table()),
    )
}
