//! What a plugin returned, packed: a few blocks for a whole batch instead of several for each write.
//!
//! Promises: the same writes, names and values in the same order as the plugin returned them; a name that is used many
//! times is kept once, so that what it means is found out once a batch. Must never: judge a write; that is
//! [`crate::read_model::check`]'s.

use std::collections::HashMap;
use std::fmt;

use foldhash::fast::RandomState;
use serde::Deserialize;
use thiserror::Error;

use super::bindings::{Cell, Change, RowKey, Value, Write};

/// The writes of a batch.
#[derive(Default)]
pub struct Writes {
    names: Names,
    /// All texts, one behind the other.
    text: String,
    /// All byte strings.
    bytes: Vec<u8>,
    /// Elements of lists of texts.
    texts: Vec<Span>,
    /// Keys and columns, in the order of the writes.
    cells: Vec<PackedCell>,
    writes: Vec<PackedWrite>,
}

/// Keys of rows, packed the same way: each is the removal of its row, of which table and key matter.
#[derive(Debug, Default)]
pub struct Keys(Writes);

/// A table's or a column's name: its place in [`Writes::names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name(u32);

/// Kind of a write; in JSON by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// If no row has this key, else nothing.
    Insert,
    /// The whole row.
    Put,
    /// Insert, or change the given columns.
    Merge,
    /// Change the given columns if the row exists.
    Patch,
    /// Add to columns, or insert with these amounts.
    Add,
    /// Delete the row.
    Remove,
    /// Delete every row whose columns equal these.
    RemoveWhere,
}

/// A value, borrowed from wherever it lies.
#[derive(Debug, Clone, PartialEq)]
pub enum ValueRef<'a> {
    /// SQL null.
    Null,
    /// A boolean.
    Boolean(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text, also the text form of any other type.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A list of texts.
    Texts(Vec<&'a str>),
    /// The position of the write's event.
    Position,
    /// A named type and the text form of a value.
    Other(&'a str, &'a str),
}

/// One write.
#[derive(Clone, Copy)]
pub struct WriteRef<'a> {
    all: &'a Writes,
    packed: PackedWrite,
}

/// Where something begins and ends in the block that holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    from: u32,
    to: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum PackedValue {
    Null,
    Boolean(bool),
    Int(i64),
    Float(f64),
    Text(Span),
    Bytes(Span),
    /// Elements of `texts`, from and to.
    Texts(Span),
    Position,
    Other(Span, Span),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct PackedCell {
    pub(super) column: Name,
    pub(super) value: PackedValue,
}

#[derive(Debug, Clone, Copy)]
struct PackedWrite {
    event: u32,
    table: Name,
    kind: Kind,
    /// Where its cells begin: first the key, then the columns.
    key: u32,
    columns: u32,
    end: u32,
}

/// More than can be packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum TooLarge {
    /// Four gigabytes of one kind.
    #[error("a batch has more than 4 GiB of writes")]
    Bytes,
    /// More names than all tables together can have columns.
    #[error("a batch names more than {NAMES_MAX} different tables and columns")]
    Names,
}

/// Different names in one batch. What each of them means is noted for each table, so their number is bounded.
const NAMES_MAX: usize = 1 << 16;

#[derive(Default)]
struct Names {
    list: Vec<Box<str>>,
    places: HashMap<Box<str>, u32, RandomState>,
}

impl Writes {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.writes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// In the order in which the plugin returned them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = WriteRef<'_>> {
        let write = |packed: &PackedWrite| WriteRef {
            all: self,
            packed: *packed,
        };
        self.writes.iter().map(write)
    }

    /// How many different names of tables and columns there are; each [`Name`] is below.
    #[must_use]
    pub fn names(&self) -> usize {
        self.names.list.len()
    }

    /// The text of a name.
    #[must_use]
    pub fn name(&self, name: Name) -> &str {
        &self.names.list[name.place()]
    }

    /// Packs a list of the contract's own type.
    ///
    /// # Errors
    /// When it is too large.
    pub fn from_list(list: &[Write]) -> Result<Self, TooLarge> {
        let mut all = Self::default();
        for write in list {
            all.push(write)?;
        }
        Ok(all)
    }

    /// The same as a list of the contract's own type.
    #[must_use]
    pub fn to_list(&self) -> Vec<Write> {
        self.iter().map(|write| write.to_write()).collect()
    }

    /// One more of the contract's own type.
    fn push(&mut self, write: &Write) -> Result<(), TooLarge> {
        let (kind, cells): (Kind, &[Cell]) = match &write.change {
            Change::Insert(cells) => (Kind::Insert, cells),
            Change::Put(cells) => (Kind::Put, cells),
            Change::Merge(cells) => (Kind::Merge, cells),
            Change::Patch(cells) => (Kind::Patch, cells),
            Change::Add(cells) => (Kind::Add, cells),
            Change::Remove => (Kind::Remove, &[]),
            Change::RemoveWhere(cells) => (Kind::RemoveWhere, cells),
        };
        self.push_parts(write.event, &write.target, kind, cells)
    }

    fn push_parts(
        &mut self,
        event: u32,
        target: &RowKey,
        kind: Kind,
        cells: &[Cell],
    ) -> Result<(), TooLarge> {
        let table = self.intern(&target.table)?;
        let key = self.cells.len();
        self.push_cells(&target.key)?;
        let columns = self.cells.len();
        self.push_cells(cells)?;
        self.end_write(event, table, kind, key, columns)
    }

    /// A name's place, the same for equal texts.
    pub(super) fn intern(&mut self, text: &str) -> Result<Name, TooLarge> {
        self.names.intern(text)
    }

    /// Keeps a text.
    pub(super) fn keep(&mut self, text: &str) -> Result<Span, TooLarge> {
        let from = self.text.len();
        self.text.push_str(text);
        Span::new(from, self.text.len())
    }

    /// Keeps bytes.
    pub(super) fn keep_bytes(&mut self, bytes: &[u8]) -> Result<Span, TooLarge> {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        Span::new(from, self.bytes.len())
    }

    /// Keeps a list of texts that were kept before.
    pub(super) fn keep_texts(&mut self, texts: &[Span]) -> Result<Span, TooLarge> {
        let from = self.texts.len();
        self.texts.extend_from_slice(texts);
        Span::new(from, self.texts.len())
    }

    /// Where the next cell will be.
    pub(super) fn next_cell(&self) -> usize {
        self.cells.len()
    }

    /// One more cell of the write that is being built.
    pub(super) fn push_cell(&mut self, column: Name, value: PackedValue) {
        self.cells.push(PackedCell { column, value });
    }

    /// Ends a write, whose key and columns begin at these cells.
    pub(super) fn end_write(
        &mut self,
        event: u32,
        table: Name,
        kind: Kind,
        key: usize,
        columns: usize,
    ) -> Result<(), TooLarge> {
        let place = |cell: usize| u32::try_from(cell).map_err(|_| TooLarge::Bytes);
        self.writes.push(PackedWrite {
            event,
            table,
            kind,
            key: place(key)?,
            columns: place(columns)?,
            end: place(self.cells.len())?,
        });
        Ok(())
    }

    /// Makes room for so many writes and cells, and for texts of usual length.
    pub(super) fn reserve(&mut self, writes: usize, cells: usize) {
        const USUAL_BYTES: usize = 24;
        self.writes.reserve_exact(writes);
        self.cells.reserve_exact(cells);
        self.text.reserve_exact(USUAL_BYTES * cells);
    }

    fn push_cells(&mut self, cells: &[Cell]) -> Result<(), TooLarge> {
        for cell in cells {
            let column = self.intern(&cell.column)?;
            let value = self.pack(&cell.value)?;
            self.push_cell(column, value);
        }
        Ok(())
    }

    fn pack(&mut self, value: &Value) -> Result<PackedValue, TooLarge> {
        Ok(match value {
            Value::Null => PackedValue::Null,
            Value::Boolean(boolean) => PackedValue::Boolean(*boolean),
            Value::Int(int) => PackedValue::Int(*int),
            Value::Float(float) => PackedValue::Float(*float),
            Value::Text(text) => PackedValue::Text(self.keep(text)?),
            Value::Bytes(bytes) => PackedValue::Bytes(self.keep_bytes(bytes)?),
            Value::Texts(texts) => {
                let kept = texts.iter().map(|text| self.keep(text));
                let kept = kept.collect::<Result<Vec<_>, _>>()?;
                PackedValue::Texts(self.keep_texts(&kept)?)
            }
            Value::Position => PackedValue::Position,
            Value::Other((name, text)) => {
                let name = self.keep(name)?;
                PackedValue::Other(name, self.keep(text)?)
            }
        })
    }

    fn text(&self, span: Span) -> &str {
        &self.text[span.from as usize..span.to as usize]
    }

    fn value(&self, packed: PackedValue) -> ValueRef<'_> {
        match packed {
            PackedValue::Null => ValueRef::Null,
            PackedValue::Boolean(boolean) => ValueRef::Boolean(boolean),
            PackedValue::Int(int) => ValueRef::Int(int),
            PackedValue::Float(float) => ValueRef::Float(float),
            PackedValue::Text(span) => ValueRef::Text(self.text(span)),
            PackedValue::Bytes(span) => {
                ValueRef::Bytes(&self.bytes[span.from as usize..span.to as usize])
            }
            PackedValue::Texts(span) => {
                let texts = &self.texts[span.from as usize..span.to as usize];
                ValueRef::Texts(texts.iter().map(|text| self.text(*text)).collect())
            }
            PackedValue::Position => ValueRef::Position,
            PackedValue::Other(name, text) => ValueRef::Other(self.text(name), self.text(text)),
        }
    }
}

impl Keys {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As removals, in the order in which the plugin named them.
    #[must_use]
    pub fn rows(&self) -> &Writes {
        &self.0
    }

    /// Packs a list of the contract's own type.
    ///
    /// # Errors
    /// When it is too large.
    pub fn from_list(list: &[RowKey]) -> Result<Self, TooLarge> {
        let mut all = Self::default();
        for key in list {
            all.0.push_parts(0, key, Kind::Remove, &[])?;
        }
        Ok(all)
    }

    pub(super) fn new(rows: Writes) -> Self {
        Self(rows)
    }
}

impl<'a> WriteRef<'a> {
    /// Index of the event in the batch.
    #[must_use]
    pub const fn event(&self) -> u32 {
        self.packed.event
    }

    /// The table that it names.
    #[must_use]
    pub const fn table(&self) -> Name {
        self.packed.table
    }

    /// What it does.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.packed.kind
    }

    /// The key's columns and values.
    pub fn key(&self) -> impl ExactSizeIterator<Item = (Name, ValueRef<'a>)> + use<'a> {
        self.cells(self.packed.key, self.packed.columns)
    }

    /// The other columns and values.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (Name, ValueRef<'a>)> + use<'a> {
        self.cells(self.packed.columns, self.packed.end)
    }

    fn cells(
        &self,
        from: u32,
        to: u32,
    ) -> impl ExactSizeIterator<Item = (Name, ValueRef<'a>)> + use<'a> {
        let all = self.all;
        all.cells[from as usize..to as usize]
            .iter()
            .map(move |cell| (cell.column, all.value(cell.value)))
    }

    fn to_write(self) -> Write {
        let cell = |(column, value): (Name, ValueRef<'_>)| Cell {
            column: self.all.name(column).to_owned(),
            value: value.to_value(),
        };
        let columns: Vec<Cell> = self.columns().map(cell).collect();
        Write {
            event: self.event(),
            target: RowKey {
                table: self.all.name(self.table()).to_owned(),
                key: self.key().map(cell).collect(),
            },
            change: self.kind().of(columns),
        }
    }
}

impl Kind {
    /// The contract's own form of a change of this kind. A removal has no columns.
    pub(super) fn of(self, columns: Vec<Cell>) -> Change {
        match self {
            Self::Insert => Change::Insert(columns),
            Self::Put => Change::Put(columns),
            Self::Merge => Change::Merge(columns),
            Self::Patch => Change::Patch(columns),
            Self::Add => Change::Add(columns),
            Self::Remove => Change::Remove,
            Self::RemoveWhere => Change::RemoveWhere(columns),
        }
    }
}

impl ValueRef<'_> {
    /// The same as a value of its own.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Boolean(boolean) => Value::Boolean(*boolean),
            Self::Int(int) => Value::Int(*int),
            Self::Float(float) => Value::Float(*float),
            Self::Text(text) => Value::Text((*text).to_owned()),
            Self::Bytes(bytes) => Value::Bytes((*bytes).to_vec()),
            Self::Texts(texts) => {
                Value::Texts(texts.iter().map(|text| (*text).to_owned()).collect())
            }
            Self::Position => Value::Position,
            Self::Other(name, text) => Value::Other(((*name).to_owned(), (*text).to_owned())),
        }
    }
}

impl<'a> From<&'a Value> for ValueRef<'a> {
    fn from(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Boolean(boolean) => Self::Boolean(*boolean),
            Value::Int(int) => Self::Int(*int),
            Value::Float(float) => Self::Float(*float),
            Value::Text(text) => Self::Text(text),
            Value::Bytes(bytes) => Self::Bytes(bytes),
            Value::Texts(texts) => Self::Texts(texts.iter().map(String::as_str).collect()),
            Value::Position => Self::Position,
            Value::Other((name, text)) => Self::Other(name, text),
        }
    }
}

impl Name {
    /// Below [`Writes::names`].
    #[must_use]
    pub const fn place(self) -> usize {
        self.0 as usize
    }
}

impl Span {
    fn new(from: usize, to: usize) -> Result<Self, TooLarge> {
        match (u32::try_from(from), u32::try_from(to)) {
            (Ok(from), Ok(to)) => Ok(Self { from, to }),
            _ => Err(TooLarge::Bytes),
        }
    }
}

impl Names {
    fn intern(&mut self, text: &str) -> Result<Name, TooLarge> {
        if let Some(&place) = self.places.get(text) {
            return Ok(Name(place));
        }
        let place = self.list.len();
        let known = u32::try_from(place).ok().filter(|_| place < NAMES_MAX);
        let known = known.ok_or(TooLarge::Names)?;
        self.list.push(text.into());
        self.places.insert(text.into(), known);
        Ok(Name(known))
    }
}

impl fmt::Debug for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.to_list()).finish()
    }
}

#[cfg(test)]
mod tests;
