//! What a guest's look-ups are answered from; the read model implements it.

use super::bindings::{Cell, LookupError, RowKey};

/// Answers look-ups of rows by key while a guest runs.
pub trait Lookups: Send + 'static {
    /// One answer a key, in the order of the keys; a row has all its columns.
    ///
    /// # Errors
    /// Either something the guest is told, or a failure that ends the call.
    fn get(&mut self, keys: &[RowKey]) -> Result<Vec<Option<Vec<Cell>>>, LookupFailure>;
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
    fn get(&mut self, _keys: &[RowKey]) -> Result<Vec<Option<Vec<Cell>>>, LookupFailure> {
        Err(LookupFailure::Refused(LookupError::UnknownTable(
            "this projection declares that it does not read (`reads` is false)".into(),
        )))
    }
}
