//! SIGTERM in every state: the process ends in time, ends well, and leaves nothing behind.

use std::time::{Duration, Instant};

use projector_testkit::Mode;
use projector_testkit::domain::Generator;
use projector_testkit::site::{Databases, QUICK, Replica, Site};

use crate::support::programs;

/// Twice the drain time-out of these sites; less than anybody's patience.
const END_MAX: Duration = Duration::from_secs(10);

fn ends(replica: &Replica<'_>, what: &str) {
    let begun = Instant::now();
    replica.terminate();
    let code = replica.exit_code();
    let took = begun.elapsed();
    assert_eq!(code, 0, "{what}: {}", replica.log());
    assert!(took <= END_MAX, "{what}: it took {took:?}");
}

fn nothing_is_left(site: &Site) {
    site.eventually("no session and no lock is left", || {
        (site.remains() == (0, 0)).then_some(())
    });
}

#[test]
fn as_it_starts_as_a_standby_as_a_leader_and_while_it_claims() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    let starting = site.replica("starting");
    starting.address();
    ends(&starting, "as it starts");

    let leader = site.leader("leader");
    let standby = site.replica("standby");
    standby.stands_by_eventually();
    ends(&standby, "as a standby");
    assert!(leader.leads(), "nobody else is disturbed");

    let heir = site.replica("heir");
    heir.stands_by_eventually();
    // Nobody can claim a term as long as this is open.
    let mut blocker = site.model_session();
    blocker.run("begin");
    blocker.run("lock table projector.leadership in access exclusive mode");
    leader.kill();
    site.eventually("the heir claims", || {
        (heir.role() == "claiming").then_some(())
    });
    ends(&heir, "while it claims");
    drop(blocker);
    nothing_is_left(&site);

    let last = site.leader("last");
    ends(&last, "as a leader");
    nothing_is_left(&site);
}

#[test]
fn several_at_once_while_they_elect_a_leader() {
    let site = Site::shared(programs(), Databases::Two, QUICK);
    for events in [0, 20, 40] {
        let replicas = ["a", "b", "c"].map(|node| site.replica(node));
        for replica in &replicas {
            replica.ready_eventually();
        }
        // In different moments of the election, without waiting for its end.
        site.append(&Generator::new(37).lines(events), 10);
        for replica in &replicas {
            replica.terminate();
        }
        for replica in &replicas {
            assert_eq!(replica.exit_code(), 0, "{}", replica.log());
        }
        nothing_is_left(&site);
    }
}

#[test]
fn a_second_signal_ends_a_drain_at_once() {
    let site = Site::shared(programs(), Databases::One, QUICK);
    let leader = site.leader("a");
    site.all_is_right_at_the_head();
    let mut blocker = site.model_session();
    blocker.run("begin");
    blocker.run("lock table order_g1.orders in share mode");
    site.append(&Generator::new(37).lines(40), 40);
    site.eventually("a batch waits", || {
        let waiting = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' \
                       and application_name like '%/a/write' and datname = current_database()";
        (site.model(waiting) == "1").then_some(())
    });
    leader.terminate();
    leader.logs("told to end");
    let begun = Instant::now();
    leader.terminate();
    assert_eq!(leader.exit_code(), 1, "{}", leader.log());
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
    assert!(leader.log().contains("second signal"));
    blocker.run("rollback");
    let heir = site.leader("b");
    site.all_is_right_at_the_head();
    heir.stop();
}

#[test]
fn during_an_outage_as_a_leader_as_a_standby_and_at_the_gate() {
    let site = Site::own_server(programs(), Databases::Two, QUICK);
    let leader = site.leader("leader");
    let standby = site.replica("standby");
    standby.stands_by_eventually();
    site.server().stop(Mode::Immediate).expect("it runs");
    ends(&leader, "as a leader in an outage");
    ends(&standby, "as a standby in an outage");
    let waiting = site.replica("waiting");
    site.eventually("it waits at the gate", || {
        let (_, body) = waiting.get("/readyz")?;
        body.contains("waiting_for").then_some(())
    });
    ends(&waiting, "at the gate");
    site.server().start_again().expect("it starts");
    nothing_is_left(&site);
}
