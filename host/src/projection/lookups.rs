//! Answers to a plugin's look-ups: the committed rows, with the batches in flight laid over them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::database::connections::Connections;
use crate::database::error::Error as DatabaseError;
use crate::database::session::bounded;
use crate::guest::bindings::LookupError;
use crate::guest::lookups::{Answers, Found, LookupFailure, Lookups};
use crate::guest::writes::Keys;
use crate::read_model::check::{Key, KeyFault, Shapes, lookup_keys};
use crate::read_model::fold::{Known, Row};
use crate::read_model::lookup::{self, Source};

use super::pending::Pending;

/// Longest wait for the rows of one look-up.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(35);

/// Looks rows up in one generation. Lives on the guest's thread, outside the runtime.
#[derive(Debug, Clone)]
pub struct RowLookups {
    /// Where rows are.
    pub source: Source,
    /// The plugin's tables.
    pub shapes: Shapes,
    /// Sessions for look-ups.
    pub connections: Connections,
    /// Batches in flight.
    pub pending: Pending,
    /// What was found, for the fold of the running batch.
    pub known: Arc<Mutex<Known>>,
    /// Runs the statements.
    pub runtime: Handle,
}

impl Lookups for RowLookups {
    fn get(&mut self, keys: &Keys) -> Result<Answers, LookupFailure> {
        let keys = lookup_keys(&self.shapes, keys).map_err(|fault| {
            LookupFailure::Refused(match fault {
                KeyFault::UnknownTable(table) => LookupError::UnknownTable(table),
                KeyFault::Bad(why) => LookupError::BadKey(why),
            })
        })?;
        let pending = self.pending.all();
        let found = self
            .runtime
            .block_on(self.read(&keys))
            .map_err(|error| LookupFailure::Transient(error.to_string()))?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        keys.into_iter()
            .zip(found)
            .map(|((table, key), (mut row, seen))| {
                for batch in pending.iter().filter(|batch| batch.to > seen) {
                    row = batch.folded.overlay(table, &key, row).map_err(|fault| {
                        LookupFailure::Transient(format!("the batch before will not pass: {fault}"))
                    })?;
                }
                let cells = row.as_ref().map(|row| self.cells(table, row));
                known.insert(table, key, row.is_some());
                Ok(cells)
            })
            .collect()
    }
}

impl RowLookups {
    async fn read(&self, keys: &[(usize, Key)]) -> Result<Vec<lookup::Answer>, DatabaseError> {
        let name = self.connections.database();
        let mut loan = bounded(name, LOOKUP_TIMEOUT, self.connections.lend()).await?;
        let found = bounded(
            name,
            LOOKUP_TIMEOUT,
            lookup::rows(&mut loan, &self.source, &self.shapes, keys),
        )
        .await?;
        loan.give_back();
        Ok(found)
    }

    fn cells(&self, table: usize, row: &Row) -> Vec<Found> {
        let names = &self.shapes.tables()[table].names;
        names
            .iter()
            .zip(row)
            .map(|(column, datum)| Found {
                column: Arc::clone(column),
                value: datum.to_value(),
            })
            .collect()
    }
}
