//! Building one write.

use super::Rows;
use crate::contract::{Cell, Change, List, Text};
use crate::key::{KeyPart, KeyValue};
use crate::value::Value;

/// A write that is being built: name the key, set columns, end with the kind of write.
///
/// ```
/// use projector_sdk::Rows;
///
/// fn close(rows: &mut Rows<'_>, id: &str) {
///     rows.table("tickets").key("id", id).set("open", false).patch();
/// }
/// ```
#[must_use = "a write is made by its last word, such as `put()`"]
pub struct RowWrite<'rows, 'batch> {
    rows: &'rows mut Rows<'batch>,
    table: Text,
}

impl<'rows, 'batch> RowWrite<'rows, 'batch> {
    pub(super) fn new(rows: &'rows mut Rows<'batch>, table: Text) -> Self {
        rows.cells.begin();
        Self { rows, table }
    }

    /// A part of the primary key.
    pub fn key(self, column: &'static str, value: impl Into<KeyValue>) -> Self {
        self.rows.parts.push(KeyPart {
            column: Text::new(column),
            value: value.into(),
        });
        self
    }

    /// The value of a column: what is written, what is added, or what rows to remove must have.
    pub fn set(self, column: &'static str, value: impl Into<Value>) -> Self {
        self.rows.cells.push(Cell {
            column: Text::new(column),
            value: value.into(),
        });
        self
    }

    /// Inserts the row if none has this key, else does nothing.
    pub fn insert(self) {
        self.write(Change::Insert);
    }

    /// Replaces or inserts the whole row; columns not set become null or their default.
    pub fn put(self) {
        self.write(Change::Put);
    }

    /// Inserts the row, or changes the columns that were set.
    pub fn merge(self) {
        self.write(Change::Merge);
    }

    /// Changes the columns that were set if the row exists, else does nothing.
    pub fn patch(self) {
        self.write(Change::Patch);
    }

    /// Adds to numeric columns; inserts the row with these amounts if absent.
    pub fn add(self) {
        self.write(Change::Add);
    }

    /// Deletes the row.
    pub fn remove(self) {
        self.write(|_| Change::Remove);
    }

    /// Deletes every row of the table whose columns equal those that were set; null equals null. Takes no key.
    pub fn remove_where(self) {
        self.write(Change::RemoveWhere);
    }

    fn write(self, change: impl FnOnce(List<Cell>) -> Change) {
        let cells = self.rows.cells.end();
        self.rows.push(self.table, change(cells));
    }
}
