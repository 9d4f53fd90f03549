//! Naming rows: one key, and the keys that a batch is going to need.

use crate::contract::{Cell, List, RowKey, Text};
use crate::types::{Integer, Timestamp, Uuid};
use crate::value::Value;

/// Names one row of one of the projection's tables.
///
/// ```
/// use projector_sdk::Key;
///
/// let key = Key::new("orders").part("merchant_id", "m-1").part("order_no", 7_i64);
/// assert_eq!(key.table(), "orders");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Key {
    pub(crate) table: Text,
    pub(crate) parts: Vec<KeyPart>,
}

/// A column of a primary key and the value that is given for it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KeyPart {
    pub(crate) column: Text,
    pub(crate) value: KeyValue,
}

/// What a part of a key is made of. A UUID stays sixteen bytes here: most keys are only compared, and few are written
/// out.
#[derive(Debug, Clone, Copy)]
pub enum KeyValue {
    /// A UUID.
    Uuid(Uuid),
    /// Anything else.
    Value(Value),
}

impl Key {
    /// A key without parts yet.
    pub fn new(table: &'static str) -> Self {
        Self {
            table: Text::new(table),
            parts: Vec::with_capacity(2),
        }
    }

    /// Adds the value of a column of the primary key.
    pub fn part(mut self, column: &'static str, value: impl Into<KeyValue>) -> Self {
        self.parts.push(KeyPart {
            column: Text::new(column),
            value: value.into(),
        });
        self
    }

    /// The table's name.
    #[must_use]
    pub fn table(&self) -> &'static str {
        self.table.as_str()
    }

    /// The key as the host can look it up: it cannot know which event `position` would mean.
    pub(crate) fn at(&self, position: u64) -> RowKey {
        let cell = |part: &KeyPart| Cell {
            column: part.column,
            value: match part.value {
                _ if part.is_position() => Value::whole(position.into()),
                value => value.into(),
            },
        };
        RowKey {
            table: self.table,
            key: self.parts.iter().map(cell).collect::<Vec<_>>().into(),
        }
    }
}

impl KeyPart {
    /// Whether it is the position of the write's event.
    pub(crate) const fn is_position(&self) -> bool {
        matches!(self.value, KeyValue::Value(Value::Position))
    }

    /// The part as the contract has it.
    pub(crate) fn cell(&self) -> Cell {
        Cell {
            column: self.column,
            value: self.value.into(),
        }
    }
}

/// The parts as the contract has them.
pub(crate) fn cells(parts: &[KeyPart]) -> List<Cell> {
    let mut cells = Vec::with_capacity(parts.len());
    cells.extend(parts.iter().map(KeyPart::cell));
    cells.into()
}

impl From<Cell> for KeyPart {
    fn from(cell: Cell) -> Self {
        Self {
            column: cell.column,
            value: KeyValue::Value(cell.value),
        }
    }
}

impl From<KeyValue> for Value {
    fn from(value: KeyValue) -> Self {
        match value {
            KeyValue::Uuid(uuid) => uuid.into(),
            KeyValue::Value(value) => value,
        }
    }
}

/// Floats and the like are compared by what they look like; no table worth having has such a key.
impl PartialEq for KeyValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Uuid(left), Self::Uuid(right)) => left == right,
            (Self::Value(Value::Int(left)), Self::Value(Value::Int(right))) => left == right,
            (Self::Value(Value::Text(left)), Self::Value(Value::Text(right))) => left == right,
            (Self::Uuid(_), Self::Value(_)) | (Self::Value(_), Self::Uuid(_)) => false,
            (Self::Value(left), Self::Value(right)) => format!("{left:?}") == format!("{right:?}"),
        }
    }
}

impl Eq for KeyValue {}

impl From<Uuid> for KeyValue {
    fn from(uuid: Uuid) -> Self {
        Self::Uuid(uuid)
    }
}

macro_rules! from {
    ($($from:ty),*) => {$(
        impl From<$from> for KeyValue {
            fn from(value: $from) -> Self {
                Self::Value(value.into())
            }
        }
    )*};
}

from!(
    Value, bool, i32, u32, i64, &str, String, &String, Text, Integer, Timestamp
);

/// The rows that a batch is going to ask for. The SDK fetches them all at once.
#[derive(Debug, Default)]
pub struct Keys {
    /// Each with the index of the event that it was named for, which never falls.
    pub(crate) keys: Vec<(usize, Key)>,
    event: usize,
}

impl Keys {
    /// Adds a row; naming one twice costs nothing.
    pub fn add(&mut self, key: Key) {
        self.keys.push((self.event, key));
    }

    /// Keys are named for this event from now on.
    pub(crate) fn begin(&mut self, event: usize) {
        self.event = event;
    }
}
