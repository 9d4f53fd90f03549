//! The component's side of the contract: one projection per instance, made by `describe`.

use std::cell::RefCell;
use std::rc::Rc;

use crate::batch;
use crate::bindings::exports::projector::projection::manifest;
use crate::bindings::projector::projection::read_model::{self, LookupError};
use crate::bindings::projector::projection::types::{
    Cell, Event, Failure as ContractFailure, RowKey, Write,
};
use crate::config::Config;
use crate::failure::Failure;
use crate::log;
use crate::projection::Projection;
use crate::rows::ReadModel;
use crate::schema::Schema;

/// The instance's projection. [`export!`](crate::export) keeps one in a thread-local.
pub struct Guest<P> {
    loaded: RefCell<Option<(P, Rc<Schema>)>>,
}

impl<P: Projection> Guest<P> {
    /// An instance that was not described yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            loaded: RefCell::new(None),
        }
    }

    /// Makes the projection from its configuration.
    ///
    /// # Errors
    ///
    /// What the projection says against its configuration, or what is wrong with its description.
    pub fn describe(&self, config: String) -> Result<manifest::Description, String> {
        report_panics();
        let projection = P::new(&Config::from_json(config))?;
        let description = projection.describe();
        let schema = Schema::new(&description)?;
        self.loaded.replace(Some((projection, Rc::new(schema))));
        Ok(description.to_contract())
    }

    /// Handles a batch.
    ///
    /// # Errors
    ///
    /// The first failure in the order of events; fatal when `describe` did not come first, since the projection
    /// would not know its configuration.
    pub fn project(&self, events: &[Event]) -> Result<Vec<Write>, ContractFailure> {
        let loaded = self.loaded.borrow();
        let Some((projection, schema)) = loaded.as_ref() else {
            return Err(
                Failure::fatal("not-described", "`describe` must come before `project`").at(None),
            );
        };
        batch::run(projection, schema, &Host, events)
    }
}

impl<P: Projection> Default for Guest<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// The rows that the host answers.
struct Host;

impl ReadModel for Host {
    fn get(&self, keys: &[RowKey]) -> Result<Vec<Option<Vec<Cell>>>, LookupError> {
        read_model::get(keys)
    }
}

/// A panic becomes a trap without words; the log gets them first.
fn report_panics() {
    if cfg!(target_arch = "wasm32") {
        std::panic::set_hook(Box::new(|panic| log::error(&panic.to_string())));
    }
}
