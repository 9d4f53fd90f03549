//! One batch through the guest, the checks and the fold; no database but for look-ups.

use std::sync::{Arc, Mutex, PoisonError};

use crate::event_store::event::Event;
use crate::guest::call::{Ready, Spent};
use crate::guest::lookups::{Lookups, NoLookups};
use crate::plugin::Plugin;
use crate::read_model::check::{Shapes, check};
use crate::read_model::fold::{Folded, Known, fold};

use super::failure::Failure;
use super::lookups::RowLookups;
use super::pending::Pending;
use super::settings::Settings;

/// What every batch of a projection needs.
#[derive(Debug, Clone)]
pub struct Work {
    /// The plugin.
    pub plugin: Arc<Plugin>,
    /// Its tables.
    pub shapes: Shapes,
    /// How it runs.
    pub settings: Arc<Settings>,
    /// Answers its look-ups.
    pub lookups: RowLookups,
}

/// What came out of a batch.
#[derive(Debug)]
pub struct Outcome {
    /// The writes, folded.
    pub folded: Arc<Folded>,
    /// Instructions used, roughly.
    pub fuel: u64,
    /// Most memory that the instance had, in bytes.
    pub memory_peak: u64,
}

impl Work {
    /// Makes the instance of the next batch, if that can be done before the batch is there. Runs on the guest's thread.
    #[must_use]
    pub fn ready(&self) -> Option<Ready> {
        let plugin = &self.plugin;
        plugin.guest.ready(&plugin.config_json, &plugin.limits)
    }

    /// Projects a batch, in an instance that is ready or in a new one. Blocks; runs on the guest's thread, and so does the
    /// drop of what is left of the instance.
    ///
    /// # Errors
    /// Why the batch did not pass. Nothing of its output is left.
    pub fn project(
        &self,
        ready: Option<Ready>,
        events: &[Event],
        pending: &Pending,
    ) -> Result<(Outcome, Spent), Failure> {
        let known = Arc::<Mutex<Known>>::default();
        let lookups: Box<dyn Lookups> = if self.plugin.manifest.reads {
            Box::new(RowLookups {
                pending: pending.clone(),
                known: Arc::clone(&known),
                ..self.lookups.clone()
            })
        } else {
            Box::new(NoLookups)
        };
        let output = self.plugin.guest.project(
            ready,
            &self.plugin.config_json,
            events,
            lookups,
            &self.plugin.limits,
        )?;
        let checked = check(&self.shapes, events, &output.writes)?;
        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
        let position = |event: usize| events[event].position.0;
        let folded = fold(&self.shapes, &position, checked, &known);
        let outcome = Outcome {
            folded: Arc::new(folded),
            fuel: output.fuel,
            memory_peak: output.memory_peak,
        };
        Ok((outcome, output.spent))
    }
}
