//! Builds the guests of `plugins/fixtures`, and calls guests the way the host does: on a thread of their own.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use projector_host::event_store::event::{Event, Position};
use projector_host::guest::thread::GuestThread;
use projector_host::guest::{
    CallError, Engine, EngineOptions, Guest, Limits, Lookups, NoLookups, Output,
};
use projector_host::plugin::file;
use wit_component::{StringEncoding, embed_component_metadata};

/// As much of WASI as the fixtures import, and worlds that have it.
const WASI: [&str; 6] = [
    "package wasi:io@0.2.3;
     interface error { resource error; }
     interface poll { resource pollable { block: func(); } }
     interface streams {
       use error.{error};
       variant stream-error { last-operation-failed(error), closed }
       resource output-stream { blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>; }
     }",
    "package wasi:clocks@0.2.3;
     interface wall-clock { record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }
     interface monotonic-clock {
       use wasi:io/poll@0.2.3.{pollable};
       subscribe-duration: func(when: u64) -> pollable;
     }",
    "package wasi:random@0.2.3; interface random { get-random-u64: func() -> u64; }",
    "package wasi:cli@0.2.3;
     interface stdout { use wasi:io/streams@0.2.3.{output-stream}; get-stdout: func() -> output-stream; }",
    "package wasi:sockets@0.2.3; interface lookup { resolve: func() -> u32; }",
    "package test:worlds;
     world with-wasi {
       include projector:projection/projection@0.1.0;
       import wasi:clocks/wall-clock@0.2.3;
       import wasi:clocks/monotonic-clock@0.2.3;
       import wasi:io/poll@0.2.3;
       import wasi:random/random@0.2.3;
       import wasi:cli/stdout@0.2.3;
     }
     world with-socket {
       include projector:projection/projection@0.1.0;
       import wasi:sockets/lookup@0.2.3;
     }",
];

/// One engine for all tests: as in the host, it outlives every plugin.
pub fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(&EngineOptions::default()).expect("an engine"))
}

/// A folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The core module of a fixture, with the type section.
pub fn module(name: &str) -> Vec<u8> {
    let read = |name: &str| {
        let path = repository("plugins/fixtures").join(format!("{name}.wat"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let base = read("base");
    let text = if name == "base" { base } else { replace(base, &read(name)) };
    from_text(&text)
}

/// A core module from text, with the type section of the world that it exports.
pub fn from_text(text: &str) -> Vec<u8> {
    let mut module = wat::parse_str(text).expect("valid text");
    let mut resolve = wit_parser::Resolve::default();
    let (package, _) = resolve
        .push_path(repository("plugins/wit"))
        .expect("the contract");
    let world = if text.contains("#project-json") {
        "projection-json"
    } else if text.contains("\"wasi:sockets") {
        "with-socket"
    } else if text.contains("\"wasi:clocks") {
        "with-wasi"
    } else {
        "projection"
    };
    let package = if world.starts_with("with") {
        WASI.iter()
            .map(|source| resolve.push_str("wasi.wit", source).expect("valid WIT"))
            .last()
            .unwrap_or(package)
    } else {
        package
    };
    let world = resolve
        .select_world(&[package], Some(world))
        .expect("the world");
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
        .expect("the type section");
    module
}

/// Puts the blocks of one text in the place of the blocks of the same name in another.
fn replace(mut base: String, with: &str) -> String {
    let mut replaced = 0;
    for name in ["imports", "memory", "describe", "project", "realloc", "more"] {
        let (open, close) = (format!(";; <{name}>\n"), format!(";; </{name}>"));
        let block = |text: &str| {
            let start = text.find(&open)? + open.len();
            Some(start..start + text[start..].find(&close)?)
        };
        if let Some(found) = block(with) {
            let place = block(&base).expect("the base has every block");
            base.replace_range(place, &with[found]);
            replaced += 1;
        }
    }
    assert!(replaced > 0, "no block is replaced");
    base
}

/// Compiles a guest.
pub fn compile(bytes: &[u8]) -> Guest {
    let component = file::component(engine(), bytes).expect("a projection");
    let compiled = wasmtime::component::Component::from_binary(engine().wasmtime(), &component.bytes)
        .expect("compiles");
    Guest::load(engine(), &compiled).expect("links")
}

/// A compiled fixture.
pub fn guest(name: &str) -> Guest {
    compile(&module(name)).named(name)
}

/// Events of no meaning.
pub fn events(count: i64) -> Vec<Event> {
    (1..=count)
        .map(|position| Event {
            position: Position(position),
            id: format!("event-{position}"),
            stream: "stream-1".into(),
            version: position,
            event_type: "Happened".into(),
            schema_version: 1,
            recorded_at: 1_700_000_000_000_000 + position,
            data: r#"{"a":1}"#.into(),
            metadata: "{}".into(),
        })
        .collect()
}

/// Calls `project` on a thread with the stack that the host gives it.
pub fn project(guest: &Guest, events: Vec<Event>, limits: &Limits) -> Result<Output, CallError> {
    project_with(guest, events, Box::new(NoLookups), limits)
}

/// The same with look-ups.
pub fn project_with(
    guest: &Guest,
    events: Vec<Event>,
    lookups: Box<dyn Lookups>,
    limits: &Limits,
) -> Result<Output, CallError> {
    let (guest, limits) = (guest.clone(), limits.clone());
    on_thread(move || guest.project("{}", &events, lookups, &limits))
}

/// Runs work on a guest thread.
pub fn on_thread<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    GuestThread::spawn("test-guest", engine())
        .expect("a thread")
        .call_blocking(work)
        .expect("no panic")
}

/// The components that ship with the host, built by `cargo xtask plugins`.
pub fn shipped(name: &str) -> PathBuf {
    let dir = std::env::var_os("PROJECTOR_TEST_PLUGINS").map_or_else(
        || {
            std::env::var_os("CARGO_TARGET_DIR")
                .map_or_else(|| repository("target"), PathBuf::from)
                .join("plugins")
        },
        PathBuf::from,
    );
    let path = dir.join(format!("{name}.wasm"));
    assert!(
        path.exists(),
        "{} does not exist; build the plugins with `cargo xtask plugins`, or set PROJECTOR_TEST_PLUGINS to their folder",
        path.display()
    );
    path
}
