//! The host's memory, file handles and mappings stay flat, however often guests fail.

use projector_host::guest::{Category, Limits, NoLookups};

use crate::fixture::{events, guest, on_thread};

const TRAPS: usize = 10_000;

#[test]
fn ten_thousand_traps_leave_nothing_behind() {
    let grown = on_thread(|| {
        let guests = [
            "trap-in-project",
            "trap-in-start",
            "bad-variant",
            "fails-rejected",
        ]
        .map(guest);
        let batch = events(10);
        let limits = Limits::default();
        let run = |count: usize| {
            for at in 0..count {
                let error = guests[at % guests.len()]
                    .project(None, "{}", &batch, Box::new(NoLookups), &limits)
                    .expect_err("each of them fails");
                assert!(
                    matches!(
                        error.category,
                        Category::Trap | Category::Output | Category::Rejected
                    ),
                    "{error}"
                );
            }
        };
        run(200);
        let before = Usage::now();
        run(TRAPS);
        (before, Usage::now())
    });
    let (before, after) = grown;
    // Other tests of this binary run meanwhile, so there is some play; a leak of one page a call would be 40 MB,
    // of one memory reservation a call thousands of mappings.
    assert!(
        after.anonymous_bytes < before.anonymous_bytes + (24 << 20)
            || cfg!(not(target_os = "linux")),
        "{before:?} {after:?}"
    );
    assert!(after.handles < before.handles + 200, "{before:?} {after:?}");
    assert!(
        after.mappings < before.mappings + 2_000,
        "{before:?} {after:?}"
    );
}

#[derive(Debug)]
struct Usage {
    anonymous_bytes: u64,
    handles: usize,
    mappings: usize,
}

impl Usage {
    fn now() -> Self {
        Self {
            anonymous_bytes: status("RssAnon:"),
            handles: std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count),
            mappings: std::fs::read_to_string("/proc/self/maps")
                .map_or(0, |maps| maps.lines().count()),
        }
    }
}

/// Most resident memory that the process ever had.
pub fn resident_peak_bytes() -> u64 {
    status("VmHWM:")
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok())
        .unwrap_or(0);
    kilobytes << 10
}
