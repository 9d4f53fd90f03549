//! The rows that a projection reads and writes while a batch runs: it sees its own writes at once.

mod cells;
mod overlay;
mod write;

use std::rc::Rc;

use crate::contract::{Change, Found, LookupError, RowKey, Write};
use crate::event::Event;
use crate::failure::Failure;
use crate::key::{self, Key, KeyPart, KeyValue, Keys};
use crate::row::Row;
use crate::schema::Schema;

use cells::Cells;
use overlay::{Overlay, Slot};
pub use write::RowWrite;

/// How many rows one lookup asks for; fewer when the host says that it is too many.
const LOOKUP_KEYS_MAX: usize = 1_000;

/// Where rows that this batch did not write come from.
pub(crate) trait ReadModel {
    /// One answer a key, in the order of the keys.
    fn get(&self, keys: &[RowKey]) -> Result<Found, LookupError>;
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
    /// The write that is being built: the parts of its key, and its cells.
    parts: Vec<KeyPart>,
    cells: Cells,
    /// Where the canonical form of a key is made.
    key: Vec<KeyValue>,
}

impl<'batch> Rows<'batch> {
    /// The row as it stands now, or `None` when there is none.
    ///
    /// # Errors
    ///
    /// Rejects the event when a part of the key is missing or does not fit its column; fatal when the projection
    /// has no such table.
    pub fn get(&mut self, key: &Key) -> Result<Option<&Row>, Failure> {
        let table = self.schema.place(key.table).ok_or_else(|| {
            Failure::fatal(
                "unknown-table",
                format!("the projection describes no table `{}`", key.table),
            )
        })?;
        if !self.overlay.is_tracked(table) {
            self.track(table);
        }
        let position = self.events[self.event].position;
        if !self.schema.tables[table].key(&key.parts, position, &mut self.key) {
            return Err(bad_key(
                key,
                "its parts are not those of the table's primary key",
            ));
        }
        let slot = self.overlay.slot(table, &self.key);
        if !self.overlay.is_known(slot) {
            let row = self.fetch(slot, key)?;
            self.overlay.resolve(slot, row, &self.writes, self.events);
        }
        Ok(self.overlay.row(slot))
    }

    /// Begins a write on the row that this key names.
    pub fn row(&mut self, key: &Key) -> RowWrite<'_, 'batch> {
        self.parts.clear();
        self.parts.extend_from_slice(&key.parts);
        RowWrite::new(self, key.table)
    }

    /// Begins a write on a row of this table; its key follows with [`RowWrite::key`].
    pub fn table(&mut self, name: &'static str) -> RowWrite<'_, 'batch> {
        self.parts.clear();
        RowWrite::new(self, crate::Text::new(name))
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
            writes: Vec::with_capacity(2 * events.len()),
            parts: Vec::with_capacity(4),
            cells: Cells::default(),
            key: Vec::with_capacity(4),
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
            let Some(table) = self.schema.place(key.table) else {
                continue;
            };
            self.overlay.track(table);
            if key.parts.iter().any(KeyPart::is_position)
                || !self.schema.tables[table].key(&key.parts, 0, &mut self.key)
            {
                continue;
            }
            if let Some(slot) = self.overlay.expect(table, &self.key) {
                let target = RowKey {
                    table: key.table,
                    key: self.overlay.cells(slot),
                };
                wanted.push((slot, target));
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
                for (&slot, row) in slots.iter().zip(&*rows) {
                    let table = &self.schema.tables[slot.table];
                    let row = row.into_option().map(|cells| Row::from_host(table, cells));
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

    fn fetch(&self, slot: Slot, key: &Key) -> Result<Option<Row>, Failure> {
        let rows = self
            .read_model
            .get(&[key.at(self.events[self.event].position)])
            .map_err(|error| match error {
                LookupError::BadKey(message) => bad_key(key, &message),
                LookupError::TooMany(message) => Failure::rejected("too-many", message),
                LookupError::UnknownTable(message) => Failure::fatal("unknown-table", message),
                LookupError::UnknownColumn(message) => Failure::fatal("unknown-column", message),
            })?;
        let row = rows.last().and_then(|row| row.into_option());
        Ok(row.map(|cells| Row::from_host(&self.schema.tables[slot.table], cells)))
    }

    /// Follows a table from now on, starting with what this batch has already written to it.
    fn track(&mut self, table: usize) {
        self.overlay.track(table);
        let name = self.schema.tables[table].name;
        for index in 0..self.writes.len() {
            let write = self.writes[index];
            if write.target.table != name {
                continue;
            }
            self.parts.clear();
            self.parts
                .extend(write.target.key.iter().map(|&cell| KeyPart::from(cell)));
            let slot = self.slot(table, write.event as usize, write.change);
            self.overlay
                .record(table, slot, index, &self.writes, self.events);
        }
    }

    /// Ends the write that is being built.
    fn push(&mut self, table: crate::Text, change: Change) {
        let place = self
            .schema
            .place(table)
            .filter(|&place| self.overlay.is_tracked(place));
        let slot = place.and_then(|place| self.slot(place, self.event, change));
        let key = match slot {
            Some(slot) if !self.parts.iter().any(KeyPart::is_position) => self.overlay.cells(slot),
            _ => key::cells(&self.parts),
        };
        self.writes.push(Write {
            event: u32::try_from(self.event).unwrap_or(u32::MAX),
            target: RowKey { table, key },
            change,
        });
        if let Some(place) = place {
            let index = self.writes.len() - 1;
            self.overlay
                .record(place, slot, index, &self.writes, self.events);
        }
    }

    /// The row that the write being built is on; none for a `remove-where`, or when the key is not the table's.
    fn slot(&mut self, table: usize, event: usize, change: Change) -> Option<Slot> {
        if matches!(change, Change::RemoveWhere(_)) {
            return None;
        }
        let position = self.events.get(event).map_or(0, |event| event.position);
        self.schema.tables[table]
            .key(&self.parts, position, &mut self.key)
            .then(|| self.overlay.slot(table, &self.key))
    }
}

fn bad_key(key: &Key, reason: &str) -> Failure {
    Failure::rejected(
        "bad-key",
        format!("the key of a row of `{}`: {reason}", key.table),
    )
}
