//! A bounded number of threads, deep enough for guest calls, that load files side by side.
//!
//! Promises: a panic while one file is loaded refuses that file and no other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::guest::Engine;
use crate::guest::thread::{panic_text, stack_bytes};
use crate::plugin::error::Error;

/// Files that are loaded side by side; the compiler uses further threads of its own.
const THREADS_MAX: usize = 4;

/// The results in the order of the files.
pub(super) fn map<T: Send>(
    engine: &Engine,
    files: &[PathBuf],
    load: impl Fn(&Path) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let results: Vec<Mutex<Option<Result<T, Error>>>> =
        files.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(at) else { break };
            let result = catch_unwind(AssertUnwindSafe(|| load(file)))
                .unwrap_or_else(|panic| Err(Error::Bug(panic_text(&*panic))));
            if let Ok(mut slot) = results[at].lock() {
                *slot = Some(result);
            }
        }
    };
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(THREADS_MAX)
        .min(files.len());
    thread::scope(|scope| {
        for at in 0..threads {
            let spawned = thread::Builder::new()
                .name(format!("plugin-load-{at}"))
                .stack_size(stack_bytes(engine))
                .spawn_scoped(scope, work);
            if let Err(error) = spawned {
                tracing::warn!(%error, "fewer threads than wanted load plugins");
            }
        }
    });
    results
        .into_iter()
        .map(|slot| {
            slot.into_inner().ok().flatten().unwrap_or_else(|| {
                Err(Error::Read(std::io::Error::other(
                    "the system gives no thread to load it",
                )))
            })
        })
        .collect()
}
