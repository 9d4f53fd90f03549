//! The engine: one per process. Owns its configuration, the linker of each kind of guest and the thread
//! that ticks the epoch.
//!
//! Promises: what is switched off stays off, whatever features another crate of the build asks for; this is
//! checked on the built engine. Must never: clone a linker.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Config, EngineWeak, InstanceAllocationStrategy, ModuleVersionStrategy, OptLevel};
use wasmtime::{WasmBacktraceDetails, WasmFeatures};

use super::bindings::typed::projector::projection::{log, types};
use super::memory::Memories;
use super::state::{State, add_read_model};

/// How often the epoch advances, and so how exact the wall-clock limit is.
pub const TICK: Duration = Duration::from_millis(10);

/// The version of the engine that compiled code belongs to, together with this host's build.
const COMPILED_VERSION: &str = concat!("48.0.8+projector-host-", env!("CARGO_PKG_VERSION"));

/// What differs between engines.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EngineOptions {
    /// Bytes of stack that a guest may use.
    pub stack_max: usize,
    /// Compile fast instead of well.
    pub dev: bool,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            stack_max: 1 << 20,
            dev: false,
        }
    }
}

/// Why there is no engine.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The configuration is not possible on this machine.
    #[error("the WebAssembly engine cannot start: {0:#}")]
    Start(wasmtime::Error),
    /// Something is on that has to be off, or the reverse.
    #[error("the WebAssembly engine came up with {0}, which this host must not run with")]
    Feature(&'static str),
    /// No thread for the ticker.
    #[error("the thread that ends overlong plugin calls cannot start")]
    Ticker(#[source] std::io::Error),
}

/// The engine of this process; a clone is the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    engine: wasmtime::Engine,
    linker: Linker<State>,
    options: EngineOptions,
}

impl Engine {
    /// Builds the engine and starts its ticker, which ends with it.
    ///
    /// # Errors
    /// When the machine cannot run it, or a feature is on that has to be off.
    pub fn new(options: &EngineOptions) -> Result<Self, EngineError> {
        let engine = config(options)
            .and_then(|config| wasmtime::Engine::new(&config))
            .map_err(EngineError::Start)?;
        check(&engine)?;
        let linker = linker(&engine).map_err(EngineError::Start)?;
        tick(engine.weak()).map_err(EngineError::Ticker)?;
        Ok(Self {
            shared: Arc::new(Shared {
                engine,
                linker,
                options: options.clone(),
            }),
        })
    }

    /// The engine underneath, to compile with.
    #[must_use]
    pub fn wasmtime(&self) -> &wasmtime::Engine {
        &self.shared.engine
    }

    /// Bytes of stack that a guest may use.
    #[must_use]
    pub fn stack_max(&self) -> usize {
        self.shared.options.stack_max
    }

    /// What it was built with.
    #[must_use]
    pub fn options(&self) -> &EngineOptions {
        &self.shared.options
    }

    pub(super) fn linker(&self) -> &Linker<State> {
        &self.shared.linker
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("options", &self.shared.options)
            .finish_non_exhaustive()
    }
}

/// Both worlds import the same two interfaces, so one linker serves them.
fn linker(engine: &wasmtime::Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    add_contract(&mut linker)?;
    Ok(linker)
}

/// Defines what the contract lets a guest import.
pub(super) fn add_contract(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    log::add_to_linker::<_, HasSelf<State>>(linker, |state| state)?;
    add_read_model(linker)
}

/// What no projection needs: each is attack surface, or makes results differ between machines.
fn off() -> WasmFeatures {
    WasmFeatures::THREADS
        | WasmFeatures::SHARED_EVERYTHING_THREADS
        | WasmFeatures::GC
        | WasmFeatures::GC_TYPES
        | WasmFeatures::FUNCTION_REFERENCES
        | WasmFeatures::EXCEPTIONS
        | WasmFeatures::LEGACY_EXCEPTIONS
        | WasmFeatures::RELAXED_SIMD
        | WasmFeatures::MEMORY64
        | WasmFeatures::STACK_SWITCHING
        | WasmFeatures::CUSTOM_PAGE_SIZES
        | WasmFeatures::CM_ASYNC
}

fn config(options: &EngineOptions) -> wasmtime::Result<Config> {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .consume_fuel(true)
        .concurrency_support(false)
        .cranelift_nan_canonicalization(true)
        .wasm_simd(true)
        .wasm_features(off(), false)
        .cranelift_opt_level(if options.dev {
            OptLevel::None
        } else {
            OptLevel::Speed
        })
        .max_wasm_stack(options.stack_max)
        .async_stack_size(options.stack_max + (2 << 20))
        .native_unwind_info(false)
        .wasm_backtrace_details(WasmBacktraceDetails::Enable)
        .allocation_strategy(InstanceAllocationStrategy::OnDemand)
        .with_host_memory(Arc::new(Memories::default()))
        // Images of memory are for the engine's own mappings.
        .memory_init_cow(false)
        .module_version(ModuleVersionStrategy::Custom(COMPILED_VERSION.into()))?;
    Ok(config)
}

/// Cargo unifies features over the whole build, so another crate could switch these on without a word.
fn check(engine: &wasmtime::Engine) -> Result<(), EngineError> {
    let found = engine.get_wasm_features() & off();
    if let Some((name, _)) = found.iter_names().next() {
        return Err(EngineError::Feature(name));
    }
    let on = [
        (!engine.get_concurrency_support(), "concurrency support"),
        (engine.get_epoch_interruption(), "no wall-clock limit"),
        (engine.get_consume_fuel(), "no instruction budget"),
        (
            engine.get_cranelift_nan_canonicalization() == Some(true),
            "NaN bits that differ between machines",
        ),
    ];
    for (holds, what) in on {
        if !holds {
            return Err(EngineError::Feature(what));
        }
    }
    Ok(())
}

/// An own thread: a blocked async runtime must not be able to stop it.
fn tick(engine: EngineWeak) -> std::io::Result<()> {
    std::thread::Builder::new()
        .name("guest-ticker".into())
        .spawn(move || {
            loop {
                std::thread::sleep(TICK);
                match engine.upgrade() {
                    Some(engine) => engine.increment_epoch(),
                    None => break,
                }
            }
        })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiled_code_is_bound_to_the_exact_version_of_the_engine() {
        let manifest = include_str!("../../../Cargo.toml");
        let pinned = manifest
            .lines()
            .find_map(|line| line.strip_prefix("wasmtime = { version = \"="))
            .and_then(|rest| rest.split('"').next())
            .expect("the engine is pinned to one version");
        assert!(
            COMPILED_VERSION.starts_with(&format!("{pinned}+")),
            "COMPILED_VERSION is {COMPILED_VERSION}, the engine is {pinned}: code of another engine would be loaded"
        );
    }
}
