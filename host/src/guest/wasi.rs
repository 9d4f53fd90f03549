//! The closed, deterministic part of WASI, for guests whose language cannot do without it.
//!
//! Promises: no files, no network, no environment, no arguments; a clock that stands at the batch's last
//! event; the same "random" bytes in every instance; sleeping returns at once; what is printed becomes log
//! lines. So a rebuild gives the same rows. Everything else of WASI 0.2 that a guest imports traps when it is
//! called. Must never: ask the machine for anything.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use thiserror::Error;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{HasData, Linker, Resource, ResourceTable, ResourceType};
use wasmtime::{StoreContextMut, bail};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream, WasiCli, WasiCliView as _};
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView as _};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystem, WasiFilesystemView as _};
use wasmtime_wasi::p2::bindings::{cli, clocks, filesystem, random, sync};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, IoError, OutputStream, Pollable, StreamResult,
    subscribe,
};
use wasmtime_wasi::random::WasiRandom;
use wasmtime_wasi::{
    Deterministic, HostMonotonicClock, HostWallClock, WasiCtx, WasiCtxView, WasiView, async_trait,
};

use super::bindings::Level;
use super::logging::CallLog;
use super::state::State;

/// Interfaces that are defined; the rest of `wasi:` traps.
const CLOSED: [&str; 20] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stderr",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/terminal-input",
    "wasi:cli/terminal-output",
    "wasi:cli/terminal-stderr",
    "wasi:cli/terminal-stdin",
    "wasi:cli/terminal-stdout",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:filesystem/preopens",
    "wasi:filesystem/types",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:random/random",
];
/// The interface whose timers have to be replaced: they would wait for real time.
const MONOTONIC_CLOCK: &str = "wasi:clocks/monotonic-clock@0.2.12";
/// Bytes of printed text that one call may keep.
const PRINTED_BYTES_MAX: usize = 64 << 10;
/// Bytes of randomness that one request may ask for.
const RANDOM_BYTES_MAX: u64 = 64 << 10;

/// What one store holds for a guest that imports WASI.
pub(super) struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
    printed: Printed,
}

impl Wasi {
    /// A closed world whose clock stands at this time, in microseconds since 1970.
    pub(super) fn closed(recorded_at: i64, handles_max: usize) -> Self {
        let now = Standing(Duration::from_micros(u64::try_from(recorded_at).unwrap_or(0)));
        let printed = Printed::default();
        let mut table = ResourceTable::new();
        table.set_max_capacity(handles_max);
        let ctx = WasiCtx::builder()
            .wall_clock(now)
            .monotonic_clock(now)
            .secure_random(Deterministic::new(fixed_bytes()))
            .insecure_random(Deterministic::new(fixed_bytes()))
            .insecure_random_seed(0x7072_6f6a_6563_746f_7220_686f_7374_2031)
            .max_random_size(RANDOM_BYTES_MAX)
            .allow_tcp(false)
            .allow_udp(false)
            .allow_ip_name_lookup(false)
            .stdout(printed.clone())
            .stderr(printed.clone())
            .build();
        Self {
            ctx,
            table,
            printed,
        }
    }

    /// Turns what was printed into log lines.
    pub(super) fn log(&self, log: &mut CallLog) {
        for line in self.printed.take().lines() {
            log.line(Level::Info, line);
        }
    }
}

/// Whether a name belongs to the WASI that guests may import, defined or not.
pub(super) fn is_wasi(name: &str) -> bool {
    name.starts_with("wasi:")
        && name
            .split_once('@')
            .is_some_and(|(_, version)| version.starts_with("0.2."))
}

/// Imports that load, but trap when they are called.
pub(super) fn unavailable(imports: &[String]) -> Vec<String> {
    imports
        .iter()
        .filter(|name| {
            is_wasi(name) && !CLOSED.contains(&name.split_once('@').map_or("", |(name, _)| name))
        })
        .cloned()
        .collect()
}

/// Defines the closed part.
pub(super) fn add(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    let l = linker;
    sync::io::error::add_to_linker::<State, Table>(l, |state| state.ctx().table)?;
    sync::io::poll::add_to_linker::<State, Table>(l, |state| state.ctx().table)?;
    sync::io::streams::add_to_linker::<State, Table>(l, |state| state.ctx().table)?;
    clocks::wall_clock::add_to_linker::<State, WasiClocks>(l, State::clocks)?;
    clocks::monotonic_clock::add_to_linker::<State, WasiClocks>(l, State::clocks)?;
    random::random::add_to_linker::<State, WasiRandom>(l, |s| s.ctx().ctx.random())?;
    random::insecure::add_to_linker::<State, WasiRandom>(l, |s| s.ctx().ctx.random())?;
    random::insecure_seed::add_to_linker::<State, WasiRandom>(l, |s| s.ctx().ctx.random())?;
    cli::environment::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::exit::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stdin::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stdout::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::stderr::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_input::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_output::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stdin::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stdout::add_to_linker::<State, WasiCli>(l, State::cli)?;
    cli::terminal_stderr::add_to_linker::<State, WasiCli>(l, State::cli)?;
    // Language run-times ask for pre-opened folders when they start. There are none, and without one there is
    // no way to name a file.
    filesystem::preopens::add_to_linker::<State, WasiFilesystem>(l, State::filesystem)?;
    sync::filesystem::types::add_to_linker::<State, WasiFilesystem>(l, State::filesystem)?;
    timers(l)
}

/// Lets an interface load of which nothing may be called.
///
/// The engine has a function for this, but it also replaces interfaces that are defined under another patch
/// version.
pub(super) fn trap(
    engine: &wasmtime::Engine,
    linker: &mut Linker<State>,
    name: &str,
    item: &ComponentItem,
) -> wasmtime::Result<()> {
    let ComponentItem::ComponentInstance(interface) = item else {
        bail!("`{name}` is no interface");
    };
    let mut instance = linker.instance(name)?;
    for (inner, item) in interface.exports(engine) {
        match item.ty {
            ComponentItem::ComponentFunc(_) => {
                let function = format!("{name}#{inner}");
                instance.func_new(inner, move |_, _, _, _| bail!(Unavailable(function.clone())))?;
            }
            ComponentItem::Resource(_) => {
                instance.resource(inner, resource(inner), |_, _| Ok(()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// A resource that interfaces share has to be the one that the closed part defines.
fn resource(name: &str) -> ResourceType {
    match name {
        "pollable" => ResourceType::host::<DynPollable>(),
        "input-stream" => ResourceType::host::<DynInputStream>(),
        "output-stream" => ResourceType::host::<DynOutputStream>(),
        "error" => ResourceType::host::<IoError>(),
        "descriptor" => ResourceType::host::<Descriptor>(),
        _ => ResourceType::host::<Never>(),
    }
}

/// Stands for resources that no call can return.
struct Never;

/// A guest called what a projection cannot have.
#[derive(Debug, Error)]
#[error("it called `{0}`, which a projection cannot have")]
pub(super) struct Unavailable(String);

/// Timers are over at once: time stands still while a batch is projected.
fn timers(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    let mut clock = linker.instance(MONOTONIC_CLOCK)?;
    for name in ["subscribe-duration", "subscribe-instant"] {
        clock.func_wrap(name, |mut store: StoreContextMut<'_, State>, (_,): (u64,)| {
            let table = store.data_mut().ctx().table;
            let over: Resource<Over> = table.push(Over)?;
            let pollable: Resource<DynPollable> = subscribe(table, over)?;
            Ok((pollable,))
        })?;
    }
    linker.allow_shadowing(false);
    Ok(())
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi();
        WasiCtxView {
            ctx: &mut wasi.ctx,
            table: &mut wasi.table,
        }
    }
}

struct Table;

impl HasData for Table {
    type Data<'a> = &'a mut ResourceTable;
}

/// A timer that is over.
struct Over;

#[async_trait]
impl Pollable for Over {
    async fn ready(&mut self) {}
}

/// A clock that stands.
#[derive(Clone, Copy)]
struct Standing(Duration);

impl HostWallClock for Standing {
    fn resolution(&self) -> Duration {
        Duration::from_micros(1)
    }

    fn now(&self) -> Duration {
        self.0
    }
}

impl HostMonotonicClock for Standing {
    fn resolution(&self) -> u64 {
        1_000
    }

    fn now(&self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// Standard output and error together, cut at a bound; a guest that prints more notices nothing.
#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Printed {
    fn take(&self) -> String {
        let mut bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&std::mem::take(&mut *bytes)).into_owned()
    }
}

impl IsTerminal for Printed {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Printed {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for Printed {
    async fn ready(&mut self) {}
}

impl OutputStream for Printed {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = PRINTED_BYTES_MAX.saturating_sub(kept.len());
        kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PRINTED_BYTES_MAX)
    }
}

/// Bytes without a pattern, the same in every process for ever.
fn fixed_bytes() -> Vec<u8> {
    (0_u8..64)
        .flat_map(|block| Sha256::digest([b"projector-host".as_slice(), &[block]].concat()))
        .collect()
}
