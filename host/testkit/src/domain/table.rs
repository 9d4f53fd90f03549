//! A table's columns, and its rows as they must be.

use std::collections::BTreeMap;

use serde_json::Value;

/// What a column holds, as far as reading it out goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `uuid`, `text` or `bigint`.
    Plain,
    /// `timestamptz`
    Time,
    /// `jsonb`
    Json,
}

/// A table's name and shape.
#[derive(Debug)]
pub struct Layout {
    /// Its name.
    pub name: &'static str,
    /// The columns of its primary key.
    pub key: &'static [&'static str],
    /// Every column, those of the key included.
    pub columns: &'static [(&'static str, Kind)],
    /// Rows in which this column is zero may stay or be absent.
    pub zero: Option<&'static str>,
}

/// A row by column. Times have six fraction digits; JSON is its text, so that SQL's null and JSON's null differ.
pub type Row = BTreeMap<String, Value>;

/// A table as it must stand.
#[derive(Debug)]
pub struct Table {
    /// Its shape.
    pub layout: &'static Layout,
    /// Its rows, in no order.
    pub rows: Vec<Row>,
}

/// A row of these cells.
pub(super) fn row<const N: usize>(cells: [(&str, Value); N]) -> Row {
    cells
        .into_iter()
        .map(|(name, cell)| (name.to_owned(), cell))
        .collect()
}
