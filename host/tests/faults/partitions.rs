//! Networks that carry nothing, in both directions or in one, while the leader is idle and while it is in a batch.

use std::time::{Duration, Instant};

use projector_testkit::domain::Generator;
use projector_testkit::proxy::{Link, Proxy, Silence};

use crate::support::*;

/// A claim ends the sessions of a former leader that block it after this long.
const BLOCKED_AFTER: Duration = Duration::from_secs(3);

/// The leader is cut off: it stops by itself, then another leads, and it follows when it is back.
fn a_leader_is_cut_off(silence: Silence, in_a_batch: bool) {
    let site = site();
    let mut generator = Generator::new(61);
    let proxy = Proxy::before(site.urls().0, 61);
    let far = leads_behind(&site, &proxy, "far");
    let near = site.replica("near");
    near.stands_by_eventually();
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    let mut blocker = site.model_session();
    if in_a_batch {
        blocker.run("begin; lock table order_g1.orders in share mode");
        site.append(&generator.lines(60), 60);
        a_batch_waits(&site, "far");
    }

    let cut = Instant::now();
    proxy.link(Link::default().silent(silence));
    site.eventually("the isolated leader stops by itself", || {
        (!far.leads()).then_some(())
    });
    let stopped = cut.elapsed();
    blocker.run("rollback");
    near.leads_eventually();
    let took = cut.elapsed();
    eprintln!("{silence:?}, in a batch {in_a_batch}: stopped {stopped:?}, taken over {took:?}");
    assert!(stopped <= LOCAL_LEASE + SLACK, "stopped after {stopped:?}");
    let blocked = if in_a_batch {
        BLOCKED_AFTER
    } else {
        Duration::ZERO
    };
    let bound = SERVER_LEASE + RETRY_INTERVAL + blocked + SLACK;
    assert!(took <= bound, "taken over after {took:?}");
    assert!(proxy.held_back_bytes() > 0, "nothing was held back");
    assert!(!far.leads());
    assert_eq!(far.code("/livez"), 200);
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();

    // What it sent before arrives now.
    proxy.heal();
    far.stands_by_eventually();
    assert!(near.leads(), "leadership stays where it went");
    ends_well(&site, &mut generator, &[&far, &near]);
}

#[test]
fn a_black_hole_around_an_idle_leader() {
    a_leader_is_cut_off(Silence::Both, false);
}

#[test]
fn a_black_hole_around_a_batch() {
    a_leader_is_cut_off(Silence::Both, true);
}

#[test]
fn requests_of_a_leader_vanish() {
    a_leader_is_cut_off(Silence::ToServer, false);
}

#[test]
fn answers_to_an_idle_leader_vanish() {
    a_leader_is_cut_off(Silence::ToClient, false);
}

#[test]
fn answers_to_a_batch_vanish() {
    a_leader_is_cut_off(Silence::ToClient, true);
}

#[test]
fn only_the_lock_session_is_cut_off_while_batches_still_could_be_written() {
    let site = site();
    let mut generator = Generator::new(62);
    let proxy = Proxy::before(site.urls().0, 62);
    let far = leads_behind(&site, &proxy, "far");
    let near = site.replica("near");
    near.stands_by_eventually();
    site.append(&generator.lines(60), 20);
    let before = term(&site);
    proxy.link(Link::default().silent(Silence::Both).only("lock"));
    let stopped = until(&site, "it stops by itself", || !far.leads());
    assert!(stopped <= LOCAL_LEASE + SLACK, "stopped after {stopped:?}");
    near.leads_eventually();
    assert!(term(&site) > before);
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    proxy.heal();
    far.stands_by_eventually();
    ends_well(&site, &mut generator, &[&far, &near]);
}

#[test]
fn a_listener_that_hears_nothing_costs_no_more_than_a_poll() {
    let site = site();
    let mut generator = Generator::new(63);
    let proxy = Proxy::before(site.urls().0, 63);
    let leader = leads_behind(&site, &proxy, "a");
    let listens = |wanted| leader.metric("projector_listening") == Some(wanted);
    until(&site, "it listens", || listens(1.0));
    let before = term(&site);
    proxy.link(Link::default().silent(Silence::Both).only("listen"));
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    until(&site, "it notices that nobody answers", || listens(0.0));
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    proxy.heal();
    until(&site, "it listens again", || listens(1.0));
    assert_eq!(term(&site), before, "nobody stepped down");
    ends_well(&site, &mut generator, &[&leader]);
}
