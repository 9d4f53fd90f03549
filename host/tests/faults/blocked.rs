//! Somebody else is in the way: rows that are locked, transactions that take long, writers that do not end.

use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Site};
use projector_testkit::test_database;

use crate::support::*;

/// Nobody projects it, and nobody else appends to its stream.
const LATE_EVENT: &str =
    "select from event_store.append('late-x', null, '[{\"type\": \"Late\", \"data\": {}}]')";

#[test]
fn a_locked_checkpoint_delays_one_projection_and_makes_nobody_step_down() {
    let site = site();
    let mut generator = Generator::new(91);
    let leader = site.leader("a");
    site.append(&generator.lines(40), 20);
    site.all_is_right_at_the_head();
    let before = term(&site);
    let stood = site.position("order");
    let mut blocker = site.model_session();
    blocker.run("begin; select from projector.checkpoints where projection = 'order' for update");
    site.append(&generator.lines(40), 20);
    until(&site, "the lock time-out of the batch is seen", || {
        leader.log().contains("lock timeout")
            && leader.metric("projector_retries_total") > Some(0.0)
    });
    site.runs(&["wait", "scheduling", "service-request", "--until-caught-up"]);
    assert_eq!(site.position("order"), stood);
    assert!(leader.leads());
    site.rows_are_right();
    blocker.run("rollback");
    site.all_is_right_at_the_head();
    assert_eq!(term(&site), before, "nobody stepped down");
    ends_well(&site, &mut generator, &[&leader]);
}

#[test]
fn long_transactions_that_never_touch_events_hold_nobody_up() {
    let site = site();
    let mut generator = Generator::new(92);
    let leader = site.leader("a");
    site.append(&generator.lines(40), 20);
    site.wait();
    let elsewhere = test_database().expect("a server is installed");
    elsewhere.psql("create table t (n int)").expect("created");
    let other = Site::with_store(programs(), elsewhere.url(), QUICK);
    let mut sessions = [site.session(), site.session(), other.session()];
    sessions[0]
        .run("begin isolation level repeatable read; select count(*) from event_store.events");
    sessions[1].run("begin; create table mine (n int); insert into mine values (1)");
    sessions[2].run("begin; insert into t values (1)");
    site.store("begin; create table prepared (n int); prepare transaction 'unrelated'");
    for _ in 0..3 {
        site.append(&generator.lines(20), 10);
        site.all_is_right_at_the_head();
    }
    site.store("rollback prepared 'unrelated'");
    drop(sessions);
    ends_well(&site, &mut generator, &[&leader]);
}

#[test]
fn a_prepared_transaction_and_a_writer_that_dies_hold_the_position_until_their_fate_is_known() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let mut generator = Generator::new(93);
    let first = site.leader("a");
    site.append(&generator.lines(20), 20);
    site.all_is_right_at_the_head();
    let held_at = |position: i64| {
        site.eventually("the gap is waited for", || {
            let status = site.status_of("order");
            (status["held"]["position"] == position && status["state"] == "held").then_some(status)
        })
    };
    let mut writer = site.session();
    writer.run("begin; set local projector.notify = 'off'");
    writer.run(LATE_EVENT);
    writer.run("prepare transaction 'late'");
    site.append(&generator.lines(20), 20);
    let status = held_at(21);
    assert!(
        status["held"]["waiting_for"][0]["pid"].is_null(),
        "{status}"
    );
    // Neither its session's end nor another leader makes it undone.
    drop(writer);
    first.kill();
    let second = site.leader("b");
    held_at(21);
    assert_eq!(site.position("order"), 20);
    site.store("commit prepared 'late'");
    site.all_is_right_at_the_head();
    assert_eq!(site.events().len(), 41);

    let mut writer = site.session();
    writer.run("begin");
    writer.run(LATE_EVENT);
    site.append(&generator.lines(20), 20);
    held_at(42);
    // Its process dies; the server rolls back.
    drop(writer);
    site.all_is_right_at_the_head();
    assert_eq!(site.events().len(), 61, "the lost event left a hole");
    ends_well(&site, &mut generator, &[&second]);
}
