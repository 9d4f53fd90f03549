//! A thousand changed files leave memory and file handles as they were.

use std::sync::Arc;

use projector_host::guest::{Engine, EngineOptions, Limits};
use projector_host::plugin::{Loader, Options, Shelf};

use crate::support::{save, small};

const RELOADS: usize = 1_000;

/// Compiled code that the engine keeps for a while, and what the allocator keeps.
const GROWTH_MAX_KB: u64 = 24 * 1_024;

fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("it is Linux");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .expect("it is there");
    line.split_whitespace()
        .nth(1)
        .and_then(|word| word.parse().ok())
        .expect("a number")
}

fn handles() -> usize {
    std::fs::read_dir("/proc/self/fd")
        .expect("it is Linux")
        .count()
}

/// Set in the process that measures: others of this program's tests would be measured as well.
const ALONE: &str = "PROJECTOR_TEST_ALONE";

#[test]
fn a_thousand_reloads_leave_memory_and_file_handles_flat() {
    if std::env::var_os(ALONE).is_none() {
        let program = std::env::current_exe().expect("this very program");
        let name = "flat::a_thousand_reloads_leave_memory_and_file_handles_flat";
        let mut alone = std::process::Command::new(program);
        let status = alone
            .args([name, "--exact", "--nocapture"])
            .env(ALONE, "1")
            .status();
        assert!(status.expect("it can be started").success());
        return;
    }
    let dir = tempfile::tempdir().expect("there is room");
    let options = Options {
        dir: dir.path().to_owned(),
        cache_dir: None,
        limits: Limits::default(),
        projections: Vec::new(),
        program: None,
    };
    let engine = Engine::new(&EngineOptions::default()).expect("an engine");
    let mut shelf = Shelf::new(Arc::new(Loader::new(&engine, &options)));
    let mut reload = |number: usize| {
        save(
            dir.path(),
            "hostile.wasm",
            &small(&format!("{:03}", number % 1_000)),
        );
        let changes = shelf.take_all();
        assert_eq!(changes.len(), 1, "{changes:?}");
        assert_eq!(shelf.loaded().plugins.len(), 1);
    };
    for number in 0..100 {
        reload(number);
    }
    let before = (resident_kb(), handles());
    for number in 100..RELOADS + 100 {
        reload(number);
    }
    let after = (resident_kb(), handles());
    eprintln!(
        "memory {} → {} kB, file handles {} → {}",
        before.0, after.0, before.1, after.1
    );
    assert!(after.0 < before.0 + GROWTH_MAX_KB, "{before:?} {after:?}");
    assert!(after.1 <= before.1 + 4, "{before:?} {after:?}");
}
