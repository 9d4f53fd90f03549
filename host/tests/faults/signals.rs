//! SIGTERM in every state, a second one, and what is left: no lock at the moment of exit, no session soon after.

use std::time::Duration;

use projector_testkit::Mode;
use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Replica, Site};
use rustix::process::Signal;

use crate::support::*;

/// An end that waits for nothing.
const AT_ONCE: Duration = Duration::from_secs(3);

fn ends_in_time(site: &Site, replica: &Replica<'_>, state: &str) {
    replica.terminate();
    let took = until(site, "it ends", || replica.ended().is_some());
    eprintln!("{state}: ended after {took:?}");
    assert_eq!(replica.exit_code(), 0, "{state}: {}", replica.log());
    assert!(took <= AT_ONCE, "{state}: {took:?}");
}

fn nothing_is_left(site: &Site) {
    assert_eq!(site.remains().1, 0, "a lock outlived its process");
    site.eventually("no session is left", || {
        (site.remains() == (0, 0)).then_some(())
    });
}

#[test]
fn as_leader_as_standby_and_while_a_term_is_claimed() {
    let site = site();
    let mut generator = Generator::new(201);
    let (leader, standby) = (site.leader("leads"), site.replica("stands-by"));
    standby.stands_by_eventually();
    site.append(&generator.lines(40), 20);
    site.wait();
    ends_in_time(&site, &standby, "follower");
    ends_in_time(&site, &leader, "leader");
    nothing_is_left(&site);
    let mut blocker = site.model_session();
    blocker.run("begin; lock table projector.leadership in share mode");
    let claiming = site.replica("claims");
    until(&site, "it claims", || claiming.role() == "claiming");
    ends_in_time(&site, &claiming, "claiming");
    blocker.run("rollback");
    nothing_is_left(&site);
}

#[test]
fn before_the_server_is_there_and_after_it_has_gone() {
    let site = Site::own_server(programs(), Databases::One, QUICK);
    let leader = site.leader("leads");
    site.server().stop(Mode::Immediate).expect("it stops");
    let early = site.replica("early");
    early.logs("cannot start yet");
    ends_in_time(&site, &early, "waiting for the server");
    until(&site, "it leads no more", || leader.role() == "follower");
    ends_in_time(&site, &leader, "without a server");
    site.server().start_again().expect("it starts");
    nothing_is_left(&site);
}

#[test]
fn a_batch_that_does_not_end_is_waited_for_until_a_second_signal() {
    for second in [Signal::TERM, Signal::INT] {
        let site = site();
        let mut generator = Generator::new(202);
        let leader = site.leader("a");
        site.append(&generator.lines(40), 20);
        site.all_is_right_at_the_head();
        let mut blocker = site.model_session();
        blocker.run("begin; lock table order_g1.orders in share mode");
        site.append(&generator.lines(40), 40);
        a_batch_waits(&site, "a");
        leader.terminate();
        leader.logs("told to end");
        assert!(leader.ended().is_none(), "it waits for its batch");
        leader.signal(second);
        let took = until(&site, "it ends at once", || leader.ended().is_some());
        assert!(took <= AT_ONCE, "{took:?}");
        assert_eq!(leader.exit_code(), 1, "{}", leader.log());
        assert!(leader.log().contains("second signal"), "{}", leader.log());
        blocker.run("rollback");
        site.eventually("nothing is left", || {
            (site.remains() == (0, 0)).then_some(())
        });
        let next = site.leader("b");
        ends_well(&site, &mut generator, &[&next]);
    }
}

#[test]
fn a_batch_that_cannot_end_is_given_up_in_time_and_the_lock_is_given_back() {
    // `drain_timeout` of a site, and what the server adds.
    let bound = Duration::from_secs(5) + AT_ONCE;
    let site = site();
    let mut generator = Generator::new(203);
    let leader = site.leader("a");
    site.append(&generator.lines(40), 20);
    site.all_is_right_at_the_head();
    let mut blocker = site.model_session();
    blocker.run("begin; lock table order_g1.orders in share mode");
    site.append(&generator.lines(40), 40);
    a_batch_waits(&site, "a");
    leader.terminate();
    let took = until(&site, "it ends", || leader.ended().is_some());
    assert!(took <= bound, "ended after {took:?}");
    assert_eq!(site.remains().1, 0, "a lock outlived its process");
    blocker.run("rollback");
    let next = site.leader("b");
    ends_well(&site, &mut generator, &[&next]);
}
