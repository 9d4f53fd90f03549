//! The contract's types, laid out in memory as the component model's canonical ABI lays them out.
//!
//! Owns: what crosses the boundary with every event, write and looked-up row. Promises: on WebAssembly a value of
//! these types is what the host reads and writes, byte for byte, so that a batch is neither copied on its way in nor
//! on its way out; the sizes are checked when the crate is compiled. Everything here lives as long as the instance,
//! which is one batch: nothing is freed, so everything may be shared and copied. Must never: hold a case or a field
//! that `plugins/wit/projection.wit` does not have, in that order.
#![allow(
    dead_code,
    reason = "some cases are only made by the host, and some types only cross the boundary of a component"
)]

#[cfg(target_arch = "wasm32")]
pub mod boundary;
mod list;

pub use list::{List, Text};

use crate::value::Value;

/// A column and its value.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Cell {
    pub(crate) column: Text,
    pub(crate) value: Value,
}

/// One row of one table.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct RowKey {
    pub(crate) table: Text,
    pub(crate) key: List<Cell>,
}

/// What happens to the row named by the key.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, u8)]
pub enum Change {
    Insert(List<Cell>),
    Put(List<Cell>),
    Merge(List<Cell>),
    Patch(List<Cell>),
    Add(List<Cell>),
    Remove,
    RemoveWhere(List<Cell>),
}

/// One write of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Write {
    /// Index of its event in the batch.
    pub(crate) event: u32,
    pub(crate) target: RowKey,
    pub(crate) change: Change,
}

/// An `option`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, u8)]
pub enum Maybe<T> {
    None,
    Some(T),
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Fault {
    /// Index of the event in the batch, when it is known.
    pub(crate) event: Maybe<u32>,
    pub(crate) code: Text,
    pub(crate) message: Text,
}

/// A [`Fault`] in its class.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, u8)]
pub enum Failure {
    Retry(Fault),
    Rejected(Fault),
    Fatal(Fault),
}

/// Why a look-up has no answer.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, u8)]
pub enum LookupError {
    UnknownTable(Text),
    UnknownColumn(Text),
    BadKey(Text),
    TooMany(Text),
}

/// A `result`.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, u8)]
pub enum Answer<T, E> {
    Ok(T),
    Err(E),
}

/// One answer a key: the cells of its row.
pub(crate) type Found = List<Maybe<List<Cell>>>;

impl<T> Maybe<T> {
    pub(crate) fn into_option(self) -> Option<T> {
        match self {
            Self::None => None,
            Self::Some(value) => Some(value),
        }
    }
}

impl<T> From<Option<T>> for Maybe<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Self::Some)
    }
}

impl<T, E> From<Result<T, E>> for Answer<T, E> {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(error) => Self::Err(error),
        }
    }
}

/// The canonical ABI's sizes and places. The order of fields and cases is that of the declarations above, which
/// `repr(C)` keeps.
#[cfg(target_arch = "wasm32")]
const _: () = {
    use std::mem::{align_of, offset_of, size_of};

    use crate::event::Event;

    assert!(size_of::<Text>() == 8 && align_of::<Text>() == 4);
    assert!(size_of::<Value>() == 24 && align_of::<Value>() == 8);
    assert!(size_of::<Cell>() == 32 && offset_of!(Cell, value) == 8);
    assert!(size_of::<RowKey>() == 16 && align_of::<RowKey>() == 4);
    assert!(size_of::<Change>() == 12 && align_of::<Change>() == 4);
    assert!(size_of::<Write>() == 32 && align_of::<Write>() == 4);
    assert!(offset_of!(Write, target) == 4 && offset_of!(Write, change) == 20);
    assert!(size_of::<Maybe<List<Cell>>>() == 12 && size_of::<Fault>() == 24);
    assert!(size_of::<Failure>() == 28 && size_of::<Answer<List<Write>, Failure>>() == 32);
    assert!(size_of::<Answer<Found, LookupError>>() == 16);
    assert!(size_of::<Event>() == 72 && align_of::<Event>() == 8);
    assert!(offset_of!(Event, version) == 24 && offset_of!(Event, schema_version) == 40);
    assert!(offset_of!(Event, recorded_at) == 48 && offset_of!(Event, metadata) == 64);
};
