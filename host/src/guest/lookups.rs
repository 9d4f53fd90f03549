//! What a guest's look-ups are answered from; the read model implements it.

use std::sync::Arc;

use wasmtime::component::{ComponentType, Lower};

use super::bindings::{LookupError, Value};
use super::writes::Keys;

/// A column of a row that was found.
#[derive(Debug, Clone, ComponentType, Lower)]
#[component(record)]
pub struct Found {
    /// Its name, shared by all rows of the table.
    pub column: Arc<str>,
    /// What stands in it.
    pub value: Value,
}

/// One answer a key: all columns of its row, or nothing.
pub type Answers = Vec<Option<Vec<Found>>>;

/// Answers look-ups of rows by key while a guest runs.
pub trait Lookups: Send + 'static {
    /// One answer a key, in the order of the keys; a row has all its columns.
    ///
    /// # Errors
    /// Either something the guest is told, or a failure that ends the call.
    fn get(&mut self, keys: &Keys) -> Result<Answers, LookupFailure>;
}

/// Why a look-up has no answer.
#[derive(Debug)]
pub enum LookupFailure {
    /// The question is wrong; the guest gets this as the result and goes on.
    Refused(LookupError),
    /// The database cannot answer now; the call ends and is tried again.
    Transient(String),
}

/// For plugins that do not read, and for tests: every look-up is refused.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoLookups;

impl Lookups for NoLookups {
    fn get(&mut self, _keys: &Keys) -> Result<Answers, LookupFailure> {
        Err(LookupFailure::Refused(LookupError::UnknownTable(
            "this projection declares that it does not read (`reads` is false)".into(),
        )))
    }
}
