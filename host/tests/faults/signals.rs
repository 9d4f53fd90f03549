//! What is left at the moment of exit: no lock. (`host/tests/replica/endings.rs` has signals in every state.)

use std::time::Duration;

use projector_testkit::domain::Generator;
use rustix::process::Signal;

use crate::support::*;

/// An end that waits for nothing.
const AT_ONCE: Duration = Duration::from_secs(3);

#[test]
fn the_lock_is_given_back_before_the_process_ends() {
    let site = site();
    let mut generator = Generator::new(201);
    for signal in [Signal::TERM, Signal::INT] {
        let leader = site.leader("a");
        site.append(&generator.lines(40), 20);
        site.all_is_right_at_the_head();
        leader.signal(signal);
        let took = until(&site, "it ends", || leader.ended().is_some());
        assert_eq!(site.remains().1, 0, "the lock outlived its process");
        assert_eq!(leader.exit_code(), 0, "{}", leader.log());
        assert!(took <= AT_ONCE, "{took:?}");
    }
    let next = site.leader("b");
    ends_well(&site, &mut generator, &[&next]);
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
