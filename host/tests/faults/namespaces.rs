//! Partitions in the kernel's own network: a replica in a network namespace, and a wrong neighbour entry that makes
//! packets vanish without a sign, in both directions or in one.

use std::time::{Duration, Instant};

use projector_testkit::ServerOptions;
use projector_testkit::domain::Generator;
use projector_testkit::namespace::{Lost, Namespace};
use projector_testkit::site::{Databases, QUICK, Site};
use projector_testkit::skip::skipped;

use crate::support::*;

fn a_leader_in_a_namespace_is_cut_off(number: u8, lost: Lost, in_a_batch: bool) {
    let Some(namespace) = Namespace::make(number) else {
        return skipped(
            &format!("a partition in the kernel, packets lost {lost:?}, in a batch {in_a_batch}"),
            "network namespaces need root and `ip`",
        );
    };
    let options = ServerOptions::default()
        .setting(
            "listen_addresses",
            format!("127.0.0.1,{}", namespace.here()),
        )
        .trust(namespace.network());
    let site = Site::own_server_with(programs(), Databases::One, QUICK, options);
    let mut generator = Generator::new(171);
    let far = namespace.replica(&site, "far");
    far.leads_eventually();
    site.begun();
    let near = site.replica("near");
    near.stands_by_eventually();
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    let mut blocker = site.model_session();
    if in_a_batch {
        blocker.run("begin; lock table order_g1.orders in share mode");
        site.append(&generator.lines(60), 60);
        a_batch_waits(&site, "far");
    } else {
        // Otherwise the cut would hit data in flight, which is the other case.
        until(&site, "the far replica is idle", || {
            site.store("select count(*) from pg_stat_activity where application_name like '%/far/%' and state <> 'idle'") == "0"
        });
    }

    let cut = Instant::now();
    namespace.cut(lost);
    far.logs("leadership ends");
    let stopped = cut.elapsed();
    blocker.run("rollback");
    near.leads_eventually();
    let took = cut.elapsed();
    eprintln!("{lost:?}, in a batch {in_a_batch}: stopped {stopped:?}, taken over {took:?}");
    assert!(stopped <= LOCAL_LEASE + SLACK, "stopped after {stopped:?}");
    let blocked = Duration::from_secs(if in_a_batch { 3 } else { 0 });
    let bound = SERVER_LEASE + RETRY_INTERVAL + blocked + SLACK;
    assert!(took <= bound, "taken over after {took:?}");
    site.append(&generator.lines(60), 20);
    site.all_is_right_at_the_head();
    namespace.heal();
    far.stands_by_eventually();
    assert!(near.leads(), "leadership stays where it went");
    ends_well(&site, &mut generator, &[&far, &near]);
}

#[test]
fn packets_vanish_both_ways_around_an_idle_leader() {
    a_leader_in_a_namespace_is_cut_off(1, Lost::Both, false);
}

#[test]
fn packets_vanish_both_ways_around_a_batch() {
    a_leader_in_a_namespace_is_cut_off(2, Lost::Both, true);
}

#[test]
fn packets_of_the_leader_vanish() {
    a_leader_in_a_namespace_is_cut_off(3, Lost::FromReplica, false);
}

#[test]
fn packets_to_the_leader_vanish() {
    a_leader_in_a_namespace_is_cut_off(4, Lost::ToReplica, false);
}
