//! Tests that cannot run on this machine say so where everybody sees it.

use std::{
    io::Write as _,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Says what is not tested here, and why. The line passes by the test harness, which would hide it, and counts.
pub fn skipped(what: &str, why: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
    let _ = writeln!(
        std::io::stderr().lock(),
        "SKIPPED ({count} in this program so far): {what}: {why}"
    );
}

/// Whether this process may do what only root may: mount, make networks, install packages.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The first of these files that is there.
pub fn first_of(paths: &[&str]) -> Option<std::path::PathBuf> {
    let mut paths = paths.iter().map(std::path::PathBuf::from);
    paths.find(|path| path.is_file())
}
