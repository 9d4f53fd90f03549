//! A network that goes silent: no FIN, no RST, nothing arrives.

use std::time::{Duration, Instant};

use projector_host::leadership::role::Cause;
use projector_testkit::proxy::{Link, Proxy, Silence};
use projector_testkit::test_database;

use crate::support::*;

#[tokio::test]
async fn a_leader_that_is_cut_off_stops_by_itself_before_another_can_win() {
    let database = test_database().expect("a server is installed");
    database.psql(&control_sql("projector")).expect("created");
    let proxy = Proxy::before(database.url(), 1);
    let mut cut_off = options(database.url(), "default", "cut-off");
    cut_off.lock_database = crate::support::database(proxy.url(), "default", "cut-off");
    let cut_off = Replica::start(cut_off);
    let old = cut_off.leads().await;
    let other = Replica::start(options(database.url(), "default", "other"));
    other
        .denied("the other stands by", |denied| denied.holder.is_some())
        .await;

    proxy.link(Link::default().silent(Silence::Both));
    let cut_at = Instant::now();
    let cause = cut_off.drains();
    let ended = old.lease.ended();
    let (cause, ()) = tokio::join!(cause, ended);
    assert_eq!(cause, Cause::LeaseRanOut);
    let stopped = cut_at.elapsed();
    let bound = quick().local_lease + Duration::from_millis(500);
    assert!(stopped < bound, "stopped after {stopped:?}");
    assert!(!other.leads_now(), "the server still keeps the lock then");
    let new = other.leads().await;
    let took = cut_at.elapsed();
    assert!(new.term > old.term && !old.lease.is_valid());
    let bound = quick().server_lease + quick().retry_interval + Duration::from_secs(1);
    assert!(took < bound, "taken over after {took:?}");

    proxy.heal();
    cut_off
        .denied("it is back as a follower", |denied| denied.holder.is_some())
        .await;
    assert!(new.lease.is_valid());
    cut_off.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn workers_that_are_busy_for_longer_than_the_lease_do_not_disturb_the_heartbeat() {
    let database = test_database().expect("a server is installed");
    database.psql(&control_sql("projector")).expect("created");
    let replica = Replica::start(options(database.url(), "default", "busy"));
    let leadership = replica.leads().await;
    // The only thread of this runtime computes and does not give way.
    let started = Instant::now();
    let mut longest = Duration::ZERO;
    while started.elapsed() < quick().local_lease * 3 {
        assert!(
            leadership.lease.is_valid(),
            "lost after {:?}",
            started.elapsed()
        );
        longest = longest.max(leadership.lease.remaining());
    }
    assert!(longest <= quick().local_lease);
    assert_eq!(replica.leads().await.term, leadership.term);
    replica.stop().await;
}
