//! One call of a plugin: a fresh store and instance each time, thrown away afterwards.
//!
//! Promises: results depend on the arguments only, never on earlier calls; any error takes all output with
//! it; `describe` runs once in every instance before `project`, so that the guest knows its configuration.
//! An instance may be made before its batch is there; it still serves that one batch.

use std::sync::Arc;

use wasmtime::component::{Component, ComponentType, Instance, Lower};
use wasmtime::{Store, UpdateDeadline};

use crate::event_store::event::Event;

use super::bindings::{Description, Failure, Fault};
use super::engine::Engine;
use super::error::{CallError, Category};
use super::json;
use super::limits::Limits;
use super::load::{self, Linked, LoadError, World};
use super::logging::{PluginLog, tidy};
use super::lookups::Lookups;
use super::memory;
use super::state::{Stage, State};
use super::trap::classify;
use super::writes::Writes;

/// Largest memory of an instance that waits for its batch: an idle projection holds so much at most.
const READY_BYTES_MAX: u64 = 4 << 20;

/// A compiled plugin, ready to be called; a clone is the same code. Calls may run side by side.
#[derive(Clone)]
pub struct Guest {
    engine: Engine,
    linked: Arc<Linked>,
    log: Arc<PluginLog>,
}

/// What a batch came to.
#[derive(Debug)]
pub struct Output {
    /// The writes, in order; each names an event of the batch.
    pub writes: Writes,
    /// Fuel used, `describe` and instantiation included.
    pub fuel: u64,
    /// Bytes of linear memory at the end.
    pub memory_peak: u64,
    /// Log lines over the bound, which were not passed on.
    pub log_lines_dropped: u64,
    /// What is left of the instance.
    pub spent: Spent,
}

/// An instance that knows its configuration and waits for its only batch.
pub struct Ready {
    store: Store<State>,
    instance: Instance,
    log_lines_dropped: u64,
}

/// An instance that has done its work. Its memory is unmapped when this is dropped, which takes as long as a small batch:
/// best when nobody waits.
pub struct Spent {
    _store: Store<State>,
}

impl std::fmt::Debug for Ready {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ready").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spent").finish_non_exhaustive()
    }
}

/// The contract's `event`, with texts that stay where they are.
#[derive(ComponentType, Lower)]
#[component(record)]
struct EventRef<'a> {
    position: u64,
    id: &'a str,
    stream: &'a str,
    version: u64,
    #[component(name = "event-type")]
    event_type: &'a str,
    #[component(name = "schema-version")]
    schema_version: u32,
    #[component(name = "recorded-at")]
    recorded_at: i64,
    data: &'a str,
    metadata: &'a str,
}

impl<'a> From<&'a Event> for EventRef<'a> {
    fn from(event: &'a Event) -> Self {
        Self {
            position: u64::try_from(event.position.0).unwrap_or(0),
            id: &event.id,
            stream: &event.stream,
            version: u64::try_from(event.version).unwrap_or(0),
            event_type: &event.event_type,
            schema_version: u32::try_from(event.schema_version).unwrap_or(0),
            recorded_at: event.recorded_at,
            data: &event.data,
            metadata: &event.metadata,
        }
    }
}

impl Guest {
    /// Checks what compiled code imports and exports. Runs nothing of it.
    ///
    /// # Errors
    /// When it is no projection of a contract version that this host speaks.
    pub fn load(engine: &Engine, component: &Component) -> Result<Self, LoadError> {
        Ok(Self {
            linked: Arc::new(load::link(engine, component)?),
            engine: engine.clone(),
            log: Arc::new(PluginLog::new("")),
        })
    }

    /// The same code under the name that its log lines carry.
    #[must_use]
    pub fn named(&self, projection: &str) -> Self {
        Self {
            log: Arc::new(PluginLog::new(projection)),
            ..self.clone()
        }
    }

    /// Tells how many log lines were held back in minutes that are over.
    pub fn tell_held_lines(&self) {
        self.log.tell(false);
    }

    /// Whether it takes and returns JSON text.
    #[must_use]
    pub fn is_json(&self) -> bool {
        matches!(self.linked.world, World::Json(_))
    }

    /// Asks the plugin what it is, in an instance of its own.
    ///
    /// # Errors
    /// When the call fails; [`Category::Fatal`] when the plugin refuses its configuration.
    pub fn describe(&self, config_json: &str, limits: &Limits) -> Result<Description, CallError> {
        let mut store = self.store(limits)?;
        let described = self
            .start(&mut store, config_json)
            .map(|(described, _)| described);
        let result = finish(described, &mut store, limits);
        store.data_mut().finish_log();
        result?.map_err(|text| refused(&text, limits))
    }

    /// Makes the instance of a batch that is still to come, on the thread that will get it. None when it is better made
    /// with the batch: a guest that can read the clock has to find the batch's time there from its start on, a large one
    /// would hold its memory for nothing, and what fails is told by the batch that needs it.
    #[must_use]
    pub fn ready(&self, config_json: &str, limits: &Limits) -> Option<Ready> {
        if self.linked.has_clock {
            return None;
        }
        let begun = memory::apart(|| self.begin(self.store(limits)?, config_json, limits));
        let ready = begun.ok()?;
        (ready.store.data().limiter.memory_peak() <= READY_BYTES_MAX).then_some(ready)
    }

    /// Hands a batch to the plugin, in an instance that is ready or in a new one. Synchronous and possibly long: call it on
    /// a [`super::thread`], never on an async worker.
    ///
    /// # Errors
    /// When the call fails in any way; then there is no output.
    pub fn project(
        &self,
        ready: Option<Ready>,
        config_json: &str,
        events: &[Event],
        lookups: Box<dyn Lookups>,
        limits: &Limits,
    ) -> Result<Output, CallError> {
        let recorded_at = events.last().map_or(0, |event| event.recorded_at);
        let Ready {
            mut store,
            instance,
            mut log_lines_dropped,
        } = match ready {
            Some(ready) => ready,
            None => {
                let mut store = self.store(limits)?;
                store.data_mut().recorded_at = recorded_at;
                self.begin(store, config_json, limits)?
            }
        };
        store.data_mut().serve(lookups);
        let result = self.run(&mut store, &instance, events, limits);
        let fuel_left = store.get_fuel().unwrap_or(0);
        log_lines_dropped += store.data_mut().finish_log();
        Ok(Output {
            writes: result?,
            fuel: limits.fuel_max.saturating_sub(fuel_left),
            memory_peak: store.data().limiter.memory_peak(),
            log_lines_dropped,
            spent: Spent { _store: store },
        })
    }

    /// What it imports but cannot use: calling it is a trap.
    #[must_use]
    pub fn unavailable_imports(&self) -> &[String] {
        &self.linked.unavailable
    }

    fn run(
        &self,
        store: &mut Store<State>,
        instance: &Instance,
        events: &[Event],
        limits: &Limits,
    ) -> Result<Writes, CallError> {
        let writes = match &self.linked.world {
            World::Typed(project) => {
                let batch: Vec<EventRef<'_>> = events.iter().map(EventRef::from).collect();
                let returned = instance
                    .get_typed_func::<(&[EventRef<'_>],), (Result<Writes, Failure>,)>(
                        &mut *store,
                        project,
                    )
                    .and_then(|project| project.call(&mut *store, (&batch,)));
                let (returned,) = finish(returned, store, limits)?;
                returned.map_err(|f| failed(f, events.len(), limits))?
            }
            World::Json(indices) => {
                let batch = json::batch(events)?;
                let returned = indices
                    .load(&mut *store, instance)
                    .and_then(|projector| projector.call_project_json(&mut *store, &batch));
                let text = finish(returned, store, limits)?
                    .map_err(|f| failed(f, events.len(), limits))?;
                let invalid = |why: &dyn std::fmt::Display| {
                    CallError::new(
                        Category::Output,
                        format!("the plugin returned no valid list of writes: {why}"),
                    )
                };
                let list = json::writes(&text, limits).map_err(|fault| invalid(&fault))?;
                Writes::from_list(&list).map_err(|error| invalid(&error))?
            }
        };
        check(&writes, events.len(), limits)?;
        Ok(writes)
    }

    fn store(&self, limits: &Limits) -> Result<Store<State>, CallError> {
        let state = State::new(Arc::clone(&self.log), limits);
        let host = |error: wasmtime::Error| classify(&error, Stage::Instantiate, limits);
        let mut store = Store::try_new(self.engine.wasmtime(), state).map_err(host)?;
        store.limiter(|state| &mut state.limiter);
        store.set_hostcall_fuel(limits.output_bytes_max);
        store.set_max_component_handles(limits.handles_max);
        store.set_fuel(limits.fuel_max).map_err(host)?;
        // Before instantiation, which runs guest code too; the default deadline has already passed.
        let ticks = store.data().clock.ticks_left().unwrap_or(1);
        store.set_epoch_deadline(ticks);
        store.epoch_deadline_callback(|store| {
            Ok(match store.data().clock.ticks_left() {
                Some(ticks) => UpdateDeadline::Continue(ticks),
                None => UpdateDeadline::Interrupt,
            })
        });
        Ok(store)
    }

    /// Instantiates, and hands the configuration over.
    fn begin(
        &self,
        mut store: Store<State>,
        config_json: &str,
        limits: &Limits,
    ) -> Result<Ready, CallError> {
        let started = self.start(&mut store, config_json);
        let started = finish(started, &mut store, limits);
        let log_lines_dropped = store.data_mut().finish_log();
        let (described, instance) = started?;
        described.map_err(|text| refused(&text, limits))?;
        store.data_mut().clock.pause();
        Ok(Ready {
            store,
            instance,
            log_lines_dropped,
        })
    }

    fn start(
        &self,
        store: &mut Store<State>,
        config_json: &str,
    ) -> wasmtime::Result<(Result<Description, String>, Instance)> {
        let instance = self.linked.pre.instantiate(&mut *store)?;
        store.data_mut().stage = Stage::Describe;
        let manifest = self.linked.manifest.load(&mut *store, &instance)?;
        let described = manifest.call_describe(store, config_json)?;
        Ok((described, instance))
    }
}

impl std::fmt::Debug for Guest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guest")
            .field("projection", &self.log.projection())
            .field("json", &self.is_json())
            .finish_non_exhaustive()
    }
}

fn finish<T>(
    result: wasmtime::Result<T>,
    store: &mut Store<State>,
    limits: &Limits,
) -> Result<T, CallError> {
    result.map_err(|error| classify(&error, store.data().stage, limits))
}

fn refused(text: &str, limits: &Limits) -> CallError {
    CallError::new(
        Category::Fatal,
        format!(
            "the plugin refuses its configuration: {}",
            tidy(text, limits.log_line_bytes_max)
        ),
    )
}

fn failed(failure: Failure, events: usize, limits: &Limits) -> CallError {
    let (
        category,
        Fault {
            event,
            code,
            message,
        },
    ) = match failure {
        Failure::Retry(fault) => (Category::Retry, fault),
        Failure::Rejected(fault) => (Category::Rejected, fault),
        Failure::Fatal(fault) => (Category::Fatal, fault),
    };
    CallError {
        category,
        event: event
            .and_then(|event| usize::try_from(event).ok())
            .filter(|event| *event < events),
        message: format!(
            "{} ({})",
            tidy(&message, limits.log_line_bytes_max),
            tidy(&code, 100)
        ),
    }
}

fn check(writes: &Writes, events: usize, limits: &Limits) -> Result<(), CallError> {
    if writes.len() > limits.writes_per_batch_max {
        return Err(CallError::new(
            Category::Output,
            format!(
                "the plugin returned {} writes for one batch; writes_per_batch_max allows {}",
                writes.len(),
                limits.writes_per_batch_max
            ),
        ));
    }
    let stray = writes
        .iter()
        .enumerate()
        .find(|(_, write)| write.event() as usize >= events);
    match stray {
        Some((at, write)) => Err(CallError::new(
            Category::Output,
            format!(
                "write {at} of the plugin names event {} of a batch that has {events}",
                write.event()
            ),
        )),
        None => Ok(()),
    }
}
