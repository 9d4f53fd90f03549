//! Rows equal the domain told a second time, whatever happens to the leader meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Replica, Site};

use crate::support::programs;

const APPENDERS: usize = 4;
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
    let killed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for appender in 0..APPENDERS {
            let (site, killed) = (&site, &killed);
            scope.spawn(move || {
                let mut generator = Generator::new(seed);
                // Every appender tells another part of the same world, so that they meet in the same rows.
                generator.lines(EVENTS_EACH * appender);
                for part in 0..=KILLS {
                    site.eventually("the leader is killed", || {
                        (killed.load(Ordering::SeqCst) >= part).then_some(())
                    });
                    site.append(&generator.lines(EVENTS_EACH / (KILLS + 1)), 40);
                }
            });
        }
        for kill in 0..KILLS {
            // Somewhere in the middle of what is being appended now.
            let goal = APPENDERS * EVENTS_EACH / (KILLS + 1) * kill + 150;
            site.eventually("the projection has moved on", || {
                (site.position("order") > goal as i64).then_some(())
            });
            let leader = site.eventually("somebody leads", || {
                replicas.iter().position(Replica::leads)
            });
            replicas[leader].kill();
            killed.fetch_add(1, Ordering::SeqCst);
            replicas[leader] = site.replica(&format!("after-kill-{kill}"));
            site.rows_are_right();
        }
    });
    assert_eq!(
        site.head(),
        (APPENDERS * EVENTS_EACH) as i64,
        "every event was appended once"
    );
    site.all_is_right_at_the_head();
}
