//! Calls guests the way the host does: on a thread of their own.

use std::path::PathBuf;
use std::sync::OnceLock;

use projector_host::event_store::event::{Event, Position};
use projector_host::guest::thread::GuestThread;
use projector_host::guest::{
    CallError, Engine, EngineOptions, Guest, Limits, Lookups, NoLookups, Output,
};
use projector_host::plugin::file;

pub use projector_testkit::guests::module;

/// One engine for all tests: as in the host, it outlives every plugin.
pub fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| Engine::new(&EngineOptions::default()).expect("an engine"))
}

/// A folder of the repository.
pub fn repository(path: &str) -> PathBuf {
    projector_testkit::repository(path)
}

/// Compiles a guest.
pub fn compile(bytes: &[u8]) -> Guest {
    let component = file::component(engine(), bytes).expect("a projection");
    let compiled =
        wasmtime::component::Component::from_binary(engine().wasmtime(), &component.bytes)
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
    on_thread(move || guest.project(None, "{}", &events, lookups, &limits))
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
