//! What one store holds, and the host functions that a guest may call.
//!
//! Must never: let a guest's question last longer than its look-ups do, or count the host's time as the
//! guest's.

use std::sync::Arc;

use thiserror::Error;
use wasmtime::component::Linker;
use wasmtime::{StoreContextMut, bail};

use super::bindings::typed::projector::projection::{log, types};
use super::bindings::{Level, LookupError};
use super::clock::CallClock;
use super::json;
use super::limiter::Limiter;
use super::limits::Limits;
use super::logging::{CallLog, PluginLog};
use super::lookups::{Answers, LookupFailure, Lookups, NoLookups};
use super::wasi::Wasi;
use super::writes::Keys;

/// The interface of look-ups.
const READ_MODEL: &str = "projector:projection/read-model@0.1.0";

/// Which part of a call runs; for messages and for what is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Start functions run.
    Instantiate,
    /// `describe` runs.
    Describe,
    /// `project` runs.
    Project,
}

impl Stage {
    /// How messages say it.
    pub(super) const fn doing(self) -> &'static str {
        match self {
            Self::Instantiate => "starting",
            Self::Describe => "describing itself",
            Self::Project => "projecting",
        }
    }
}

/// Why a host function ends the call.
#[derive(Debug, Error)]
pub(super) enum HostStop {
    /// The database did not answer.
    #[error("{0}")]
    Lookup(String),
    /// Too many questions.
    #[error("it looked rows up more than {max} times in one batch; ask for all keys at once")]
    LookupCalls { max: usize },
}

/// The data of one store.
pub(super) struct State {
    pub(super) stage: Stage,
    pub(super) limiter: Limiter,
    pub(super) clock: CallClock,
    pub(super) log: CallLog,
    lookups: Box<dyn Lookups>,
    lookup_calls: usize,
    lookup_calls_max: usize,
    lookup_keys_max: usize,
    output_bytes_max: usize,
    /// What the guest's clock says, in microseconds since 1970.
    pub(super) recorded_at: i64,
    handles_max: usize,
    wasi: Option<Box<Wasi>>,
}

impl State {
    /// For a guest that starts; it cannot look anything up yet.
    pub(super) fn new(log: Arc<PluginLog>, limits: &Limits) -> Self {
        Self {
            recorded_at: 0,
            handles_max: limits.handles_max,
            wasi: None,
            stage: Stage::Instantiate,
            limiter: Limiter::new(limits),
            clock: CallClock::start(limits.call_timeout),
            log: CallLog::new(log, limits),
            lookups: Box::new(NoLookups),
            lookup_calls: 0,
            lookup_calls_max: limits.lookup_calls_max,
            lookup_keys_max: limits.lookup_keys_max,
            output_bytes_max: limits.output_bytes_max,
        }
    }

    /// From now on a batch is projected.
    pub(super) fn serve(&mut self, lookups: Box<dyn Lookups>) {
        self.lookups = lookups;
        self.stage = Stage::Project;
        self.clock.resume();
    }

    /// Made at the first use, since most guests import nothing of it.
    pub(super) fn wasi(&mut self) -> &mut Wasi {
        self.wasi
            .get_or_insert_with(|| Box::new(Wasi::closed(self.recorded_at, self.handles_max)))
    }

    /// Ends the call's log; returns how many lines were dropped.
    pub(super) fn finish_log(&mut self) -> u64 {
        if let Some(wasi) = &self.wasi {
            wasi.log(&mut self.log);
        }
        self.log.finish()
    }

    fn look_up(&mut self, keys: &Keys) -> wasmtime::Result<Result<Answers, LookupError>> {
        if self.stage != Stage::Project {
            return Ok(Err(LookupError::BadKey(
                "rows can be looked up only while a batch is projected".into(),
            )));
        }
        if self.lookup_calls >= self.lookup_calls_max {
            bail!(HostStop::LookupCalls {
                max: self.lookup_calls_max
            });
        }
        self.lookup_calls += 1;
        if keys.len() > self.lookup_keys_max {
            return Ok(Err(LookupError::TooMany(format!(
                "{} keys in one call; at most {} are allowed",
                keys.len(),
                self.lookup_keys_max
            ))));
        }
        let Self { clock, lookups, .. } = self;
        match clock.host(|| lookups.get(keys)) {
            Ok(rows) if rows.len() == keys.len() => Ok(Ok(rows)),
            Ok(rows) => bail!("{} keys were answered with {} rows", keys.len(), rows.len()),
            Err(LookupFailure::Refused(refusal)) => Ok(Err(refusal)),
            Err(LookupFailure::Transient(reason)) => bail!(HostStop::Lookup(reason)),
        }
    }
}

impl State {
    fn look_up_json(&mut self, keys: &str) -> wasmtime::Result<Result<String, LookupError>> {
        let keys = match json::keys(keys, self.lookup_keys_max, self.output_bytes_max) {
            Ok(keys) => keys,
            Err(fault @ json::JsonFault::TooMany { .. }) => {
                return Ok(Err(LookupError::TooMany(fault.to_string())));
            }
            Err(fault) => return Ok(Err(LookupError::BadKey(fault.to_string()))),
        };
        let rows = self.look_up(&Keys::from_list(&keys)?)?;
        Ok(rows.map(|rows| json::rows(&rows)))
    }
}

impl types::Host for State {}

impl log::Host for State {
    fn log(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        let Self { clock, log, .. } = self;
        clock.host(|| log.line(level, &message));
        Ok(())
    }
}

/// Answers look-ups. Not by the generated trait, which would make a block of each name, going in and out.
pub(super) fn add_read_model(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let mut instance = linker.instance(READ_MODEL)?;
    instance.func_wrap(
        "get",
        |mut store: StoreContextMut<'_, State>, (keys,): (Keys,)| {
            Ok((store.data_mut().look_up(&keys)?,))
        },
    )?;
    instance.func_wrap(
        "get-json",
        |mut store: StoreContextMut<'_, State>, (keys,): (String,)| {
            Ok((store.data_mut().look_up_json(&keys)?,))
        },
    )
}
