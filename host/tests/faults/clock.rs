//! A wall clock that jumps: leases do not look at it.

use projector_testkit::domain::Generator;
use projector_testkit::skip::{first_of, skipped};

use crate::support::*;

const LIBRARY: [&str; 3] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib64/faketime/libfaketime.so.1",
];

#[test]
fn a_wall_clock_that_jumps_by_hours_changes_nobody_s_lease() {
    let Some(library) = first_of(&LIBRARY) else {
        return skipped("a wall clock that jumps", "libfaketime is not installed");
    };
    let library = library.to_string_lossy();
    let site = site();
    let mut generator = Generator::new(151);
    let jump = |by: &str| site.write("faketime", &format!("{by}\n"));
    let file = jump("+0");
    let variables = [
        ("LD_PRELOAD", &*library),
        ("FAKETIME_TIMESTAMP_FILE", &file),
        ("FAKETIME_NO_CACHE", "1"),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("DONT_FAKE_MONOTONIC", "1"),
    ];
    let leader = site.replica_with("jumps", &["run"], &variables);
    leader.leads_eventually();
    site.begun();
    let standby = site.replica("b");
    standby.stands_by_eventually();
    let before = term(&site);
    for by in ["+2h", "-2h", "+3000d"] {
        jump(by);
        site.append(&generator.lines(60), 20);
        site.all_is_right_at_the_head();
        // Longer than any lease.
        let beats = leader.metric("projector_leader_changes_total");
        let begun = std::time::Instant::now();
        until(&site, "several leases have passed", || {
            begun.elapsed() > SERVER_LEASE
        });
        assert!(leader.leads(), "after {by}");
        assert_eq!(leader.metric("projector_leader_changes_total"), beats);
    }
    let jumped = leader.log();
    let year = jumped
        .lines()
        .filter(|line| !line.starts_with("20"))
        .count();
    assert!(!jumped.is_empty() && year < jumped.lines().count());
    assert_eq!(term(&site), before, "nobody stepped down");
    ends_well(&site, &mut generator, &[&standby, &leader]);
}
