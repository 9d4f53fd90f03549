//! Rows equal the domain told a second time, whatever happens to the leader meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Replica, Site};

use crate::support::programs;

const APPENDERS: u64 = 4;
const EVENTS_EACH: usize = 1_250;
const KILLS: usize = 4;

#[test]
fn rows_are_right_while_leaders_are_killed_in_one_database() {
    rows_are_right_while_leaders_are_killed(Databases::One, 20_260_301);
}

#[test]
fn rows_are_right_while_leaders_are_killed_in_two_databases() {
    rows_are_right_while_leaders_are_killed(Databases::Two, 7);
}

fn rows_are_right_while_leaders_are_killed(databases: Databases, seed: u64) {
    eprintln!("seed {seed}");
    let site = Site::shared(programs(), databases, QUICK);
    let mut replicas: Vec<Replica<'_>> = ["a", "b", "c"].map(|node| site.replica(node)).into();
    site.begun();
    let appending = AtomicUsize::new(APPENDERS as usize);
    std::thread::scope(|scope| {
        for appender in 0..APPENDERS {
            let (site, appending) = (&site, &appending);
            scope.spawn(move || {
                let mut generator = Generator::new(seed);
                // Every appender tells another part of the same world, so that they meet in the same rows.
                generator.lines(EVENTS_EACH * appender as usize);
                for _ in 0..5 {
                    site.append(&generator.lines(EVENTS_EACH / 5), 40);
                }
                appending.fetch_sub(1, Ordering::SeqCst);
            });
        }
        for kill in 0..KILLS {
            let leader = site.eventually("somebody leads", || {
                replicas.iter().position(Replica::leads)
            });
            let before = site.position("order");
            site.eventually("the leader has moved on", || {
                let position = site.position("order");
                let all_done = appending.load(Ordering::SeqCst) == 0 && position == site.head();
                (position > before || all_done).then_some(())
            });
            replicas[leader].kill();
            replicas[leader] = site.replica(&format!("after-kill-{kill}"));
            site.rows_are_right();
        }
    });
    assert_eq!(appending.into_inner(), 0);
    assert_eq!(
        site.head(),
        (APPENDERS as usize * EVENTS_EACH) as i64,
        "every event was appended once"
    );
    site.all_is_right_at_the_head();
}
