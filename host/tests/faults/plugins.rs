//! A plugin that computes for ever: its own projection stops, the heartbeat and the others do not notice.

use std::fs;

use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Site};

use crate::fixture;
use crate::support::*;

/// A call ends within a fraction of a second.
const LIMITS: &str = "[plugins.limits]\ncall_timeout = \"300ms\"\nfuel_max = 20000000\n";

/// The shipped plugins, and one that never comes back from `project`.
fn with_a_hostile_one(
    folder: &std::path::Path,
    fixture: &str,
) -> projector_testkit::site::Programs {
    let mut programs = programs();
    for name in projector_testkit::domain::PROJECTIONS {
        let file = format!("{name}.wasm");
        fs::copy(programs.plugins.join(&file), folder.join(&file)).expect("there is room");
    }
    fs::write(folder.join("hostile.wasm"), fixture::module(fixture)).expect("there is room");
    programs.plugins = folder.to_owned();
    programs
}

fn others_do_not_notice(fixture: &str) {
    let folder = tempfile::tempdir().expect("there is room");
    let programs = with_a_hostile_one(folder.path(), fixture);
    let site = Site::shared(programs, Databases::One, &format!("{QUICK}{LIMITS}"));
    let mut generator = Generator::new(161);
    let leader = site.replica("a");
    leader.leads_eventually();
    until(&site, "every projection has begun", || {
        site.model("select count(*) from projector.checkpoints") == "4"
    });
    let standby = site.replica("b");
    standby.stands_by_eventually();
    let before = term(&site);
    for _ in 0..5 {
        site.append(&generator.lines(40), 20);
        site.all_is_right_at_the_head();
    }
    until(&site, "the hostile one is stopped", || {
        site.status_of("hostile")["state"] == "stopped"
    });
    assert!(leader.leads());
    assert_eq!(term(&site), before, "nobody stepped down");
    ends_well(&site, &mut generator, &[&standby, &leader]);
}

#[test]
fn an_endless_loop() {
    others_do_not_notice("loop-in-project");
}

#[test]
fn a_hunger_for_memory() {
    others_do_not_notice("grow-memory");
}
