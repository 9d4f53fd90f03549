//! The rows that a projection reads and writes while a batch runs: it sees its own writes at once.

mod cells;
mod overlay;
mod recent;
mod write;

use std::rc::Rc;

use crate::contract::{Change, Found, LookupError, RowKey, Text, Write};
use crate::event::Event;
use crate::failure::Failure;
use crate::key::{Key, KeyPart, KeyValue, Keys};
use crate::row::Row;
use crate::schema::Schema;

use cells::Cells;
use overlay::{Overlay, Slot};
use recent::Recent;
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
    recent: Recent,
    /// Where the canonical form of a key is made.
    key: Vec<KeyValue>,
    /// The rows that were named before, in the order of events, and from where on they are those of the event that is
    /// being handled.
    announced: Vec<Announced>,
    next: usize,
}

/// A row that `lookups` named for an event, which will most likely ask for it.
struct Announced {
    event: usize,
    key: Key,
    slot: Slot,
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
        let slot = self
            .slot(table, &key.parts)
            .ok_or_else(|| bad_key(key, "its parts are not those of the table's primary key"))?;
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
        RowWrite::new(self, Text::new(name))
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
            writes: Vec::with_capacity(5 * events.len() / 2),
            parts: Vec::with_capacity(4),
            cells: Cells::default(),
            recent: Recent::new(events.len()),
            key: Vec::with_capacity(4),
            announced: Vec::new(),
            next: 0,
        }
    }

    /// Writes belong to this event from now on.
    pub(crate) fn begin(&mut self, event: usize) {
        self.event = event;
        let before = |announced: &Announced| announced.event < event;
        while self.announced.get(self.next).is_some_and(before) {
            self.next += 1;
        }
    }

    /// Fetches rows before these events are handled. None is being handled yet, so a key cannot hold the position of
    /// one. Keys that the host refuses are left out: asking for one later tells which event it is that names it.
    pub(crate) fn prefetch(&mut self, keys: &mut Keys) {
        self.announced.clear();
        self.next = 0;
        let (mut slots, mut wanted) = (Vec::new(), Vec::new());
        for (event, key) in keys.keys.drain(..) {
            let Some(table) = self.schema.place(key.table) else {
                continue;
            };
            if !self.overlay.is_tracked(table) {
                self.track(table);
            }
            if key.parts.iter().any(KeyPart::is_position)
                || !self.schema.tables[table].key(&key.parts, 0, &mut self.key)
            {
                continue;
            }
            let slot = self.overlay.slot(table, &self.key);
            if self.overlay.expect(slot) {
                slots.push(slot);
                wanted.push(RowKey {
                    table: key.table,
                    key: self.overlay.cells(slot),
                });
            }
            self.announced.push(Announced { event, key, slot });
        }
        for (slots, keys) in slots
            .chunks(LOOKUP_KEYS_MAX)
            .zip(wanted.chunks(LOOKUP_KEYS_MAX))
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
        let schema = Rc::clone(&self.schema.tables[table]);
        for (index, write) in self.writes.iter().enumerate() {
            if write.target.table != schema.name {
                continue;
            }
            let cells = write.target.key.iter();
            let parts: Vec<KeyPart> = cells.map(|&cell| cell.into()).collect();
            let position = self.events[write.event as usize].position;
            let slot = schema
                .key(&parts, position, &mut self.key)
                .then(|| self.overlay.slot(table, &self.key));
            self.overlay
                .record(table, slot, index, &self.writes, self.events);
        }
    }

    /// Ends the write that is being built.
    fn push(&mut self, table: Text, change: Change) {
        let parts = std::mem::take(&mut self.parts);
        let place = self
            .schema
            .place(table)
            .filter(|&place| self.overlay.is_tracked(place));
        let slot = place.and_then(|place| self.slot(place, &parts));
        let key = match slot {
            Some(slot) if !parts.iter().any(KeyPart::is_position) => self.overlay.cells(slot),
            _ => self.recent.cells(table, &parts),
        };
        self.parts = parts;
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

    /// The row with this key; none when it is not the table's, as with a `remove-where`.
    fn slot(&mut self, table: usize, parts: &[KeyPart]) -> Option<Slot> {
        for announced in &self.announced[self.next..] {
            if announced.event != self.event {
                break;
            }
            if announced.slot.table == table && announced.key.parts == parts {
                return Some(announced.slot);
            }
        }
        let position = self.events[self.event].position;
        self.schema.tables[table]
            .key(parts, position, &mut self.key)
            .then(|| self.overlay.slot(table, &self.key))
    }
}

fn bad_key(key: &Key, reason: &str) -> Failure {
    Failure::rejected(
        "bad-key",
        format!("the key of a row of `{}`: {reason}", key.table),
    )
}
