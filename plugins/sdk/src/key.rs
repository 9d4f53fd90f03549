//! Naming rows: one key, and the keys that a batch is going to need.

use crate::bindings::projector::projection::types::{Cell, RowKey};
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
pub struct Key(pub(crate) RowKey);

impl Key {
    /// A key without parts yet.
    pub fn new(table: &str) -> Self {
        Self(RowKey {
            table: table.to_owned(),
            key: Vec::with_capacity(2),
        })
    }

    /// Adds the value of a column of the primary key.
    pub fn part(mut self, column: &str, value: impl Into<Value>) -> Self {
        self.0.key.push(Cell {
            column: column.to_owned(),
            value: value.into(),
        });
        self
    }

    /// The key as the host can look it up: it cannot know which event `position` would mean.
    pub(crate) fn at(&self, position: u64) -> RowKey {
        let mut key = self.0.clone();
        for cell in &mut key.key {
            if cell.value == Value::Position {
                cell.value = Value::whole(position.into());
            }
        }
        key
    }

    /// The table's name.
    #[must_use]
    pub fn table(&self) -> &str {
        &self.0.table
    }
}

/// The rows that a batch is going to ask for. The SDK fetches them all at once.
#[derive(Debug, Default)]
pub struct Keys(pub(crate) Vec<Key>);

impl Keys {
    /// Adds a row; naming one twice costs nothing.
    pub fn add(&mut self, key: Key) {
        self.0.push(key);
    }
}
