//! From what the engine returns to a [`CallError`]: which budget or rule ended the call, and where in the
//! plugin's code.

use std::fmt::Write as _;

use wasmtime::{Trap, WasmBacktrace};

use super::error::{CallError, Category};
use super::limiter::LimitExceeded;
use super::limits::Limits;
use super::logging::{cut, tidy};
use super::state::{HostStop, Stage};

/// Frames of the plugin's code that a message shows.
const FRAMES_MAX: usize = 6;
/// Bytes of a function's name that a message shows.
const NAME_BYTES_MAX: usize = 200;

/// Classifies the error of a call.
pub(super) fn classify(error: &wasmtime::Error, stage: Stage, limits: &Limits) -> CallError {
    let (category, what) = cause(error, stage, limits);
    let what = tidy(&what, limits.log_line_bytes_max);
    let mut message = format!("the plugin failed while {}: {what}", stage.doing());
    if category != Category::Lookup {
        frames(error, &mut message);
    }
    CallError::new(category, cut(message, limits.log_line_bytes_max))
}

fn cause(error: &wasmtime::Error, stage: Stage, limits: &Limits) -> (Category, String) {
    if let Some(exceeded) = error.downcast_ref::<LimitExceeded>() {
        return (Category::Memory, exceeded.to_string());
    }
    if let Some(stop) = error.downcast_ref::<HostStop>() {
        let category = match stop {
            HostStop::Lookup(_) => Category::Lookup,
            HostStop::LookupCalls { .. } => Category::LookupLimit,
        };
        return (category, stop.to_string());
    }
    if let Some(trap) = error.downcast_ref::<Trap>() {
        return trapped(*trap, limits);
    }
    if let Some(unavailable) = error.downcast_ref::<super::wasi::Unavailable>() {
        return (Category::Trap, unavailable.to_string());
    }
    if let Some(exit) = error.downcast_ref::<wasmtime_wasi::I32Exit>() {
        return (
            Category::Trap,
            format!("it ended itself with exit code {}", exit.0),
        );
    }
    let text = error.root_cause().to_string();
    if text.starts_with("resource limit exceeded") {
        return (Category::Memory, text);
    }
    if error.root_cause().is::<std::io::Error>() || error.is::<wasmtime::OutOfMemory>() {
        return (
            Category::Host,
            format!("the machine cannot give what an instance needs: {text}"),
        );
    }
    if text.contains("fuel allocated for hostcalls") {
        return (
            Category::Output,
            format!(
                "it handed more to the host than output_bytes_max ({}) allows",
                limits.output_bytes_max
            ),
        );
    }
    match stage {
        Stage::Instantiate => (Category::Host, format!("no instance could be made: {text}")),
        Stage::Describe | Stage::Project => (
            Category::Output,
            format!("what it handed to the host is malformed: {text}"),
        ),
    }
}

fn trapped(trap: Trap, limits: &Limits) -> (Category, String) {
    match trap {
        Trap::OutOfFuel => (
            Category::Fuel,
            format!(
                "it used up its budget of instructions (fuel_max = {})",
                limits.fuel_max
            ),
        ),
        Trap::Interrupt => (
            Category::Timeout,
            format!(
                "it ran longer than call_timeout ({:?})",
                limits.call_timeout
            ),
        ),
        Trap::StackOverflow => (
            Category::Stack,
            "it used up its call stack (stack_max); most often an endless recursion".into(),
        ),
        Trap::UnreachableCodeReached => (
            Category::Trap,
            "it reached an `unreachable` instruction, most often a panic".into(),
        ),
        other => (Category::Trap, other.to_string()),
    }
}

/// Adds where in the plugin's code it happened, innermost first.
fn frames(error: &wasmtime::Error, message: &mut String) {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else {
        return;
    };
    for frame in backtrace.frames().iter().take(FRAMES_MAX) {
        let symbol = frame.symbols().first();
        let name = symbol
            .and_then(|symbol| symbol.name())
            .or_else(|| frame.func_name())
            .unwrap_or("a function without a name");
        let _ = write!(message, "\n  at {}", tidy(name, NAME_BYTES_MAX));
        if let Some(file) = symbol.and_then(|symbol| symbol.file()) {
            let line = symbol.and_then(|symbol| symbol.line()).unwrap_or(0);
            let _ = write!(message, " ({}:{line})", tidy(file, NAME_BYTES_MAX));
        }
    }
}
