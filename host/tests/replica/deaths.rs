//! Starts that lead to no commit: a process that dies again and again, and a database that does not let it work.

use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Site};

use crate::support::programs;

const EVENTS: usize = 60;

#[test]
fn after_starts_without_a_commit_events_are_tried_one_by_one_and_nobody_is_blamed_for_the_database()
{
    let site = Site::shared(programs(), Databases::One, QUICK);
    let first = site.leader("first");
    site.all_is_right_at_the_head();
    // As long as this stands, no batch of orders commits.
    let mut blocker = site.model_session();
    blocker.run("begin");
    blocker.run("lock table order_g1.orders in share mode");
    site.append(&Generator::new(41).lines(EVENTS), EVENTS);
    let starts = |site: &Site| {
        site.model(
            "select starts_without_commit from projector.checkpoints where projection = 'order'",
        )
    };
    first.kill();
    for death in 1..=3 {
        let before = starts(&site);
        let replica = site.leader(&format!("death-{death}"));
        site.eventually("the start is counted", || {
            (starts(&site) != before).then_some(())
        });
        replica.kill();
    }
    let last = site.leader("last");
    last.logs("trying events one by one");
    // The lock time-out of several runs in one process counts neither as starts nor as attempts.
    last.logs("trying again");
    let counted = starts(&site);
    last.logs("lock timeout");
    assert_eq!(starts(&site), counted);
    assert_ne!(site.status_of("order")["state"], "stopped");
    blocker.run("rollback");
    site.all_is_right_at_the_head();
    assert_eq!(starts(&site), "0");
    let attempts = site.model("select sum(attempts) from projector.checkpoints");
    assert_eq!(attempts, "0");
}
