//! The server goes: restarts, and a longer time without it.

use std::time::{Duration, Instant};

use projector_testkit::Mode;
use projector_testkit::domain::Generator;
use projector_testkit::proxy::Proxy;
use projector_testkit::site::{Databases, QUICK, Replica, Site};

use crate::support::*;

#[test]
fn ten_restarts_of_the_server_under_load() {
    let site = Site::own_server(programs(), Databases::Two, QUICK);
    let replicas = [site.replica("a"), site.replica("b")];
    let mut generator = Generator::new(101);
    for round in 0..10 {
        let mode = [Mode::Fast, Mode::Immediate][round % 2];
        site.append(&generator.lines(60), 20);
        let changes = changes(&replicas);
        site.server().restart(mode).expect("the server comes back");
        until(&site, "a new term", || self::changes(&replicas) > changes);
        site.all_is_right_at_the_head();
        let leading: Vec<&Replica<'_>> = replicas.iter().filter(|one| one.leads()).collect();
        assert_eq!(leading.len(), 1, "round {round}, {mode:?}");
        until(&site, "its listener is back", || {
            leading[0].metric("projector_listening") == Some(1.0)
        });
        let locks = "select count(*) from pg_locks where locktype = 'advisory' and granted \
             and database = (select oid from pg_database where datname = current_database())";
        assert_eq!(site.store(locks), "1", "round {round}, {mode:?}");
    }
    ends_well(&site, &mut generator, &[&replicas[0], &replicas[1]]);
}

/// How often any of them began to lead.
fn changes(replicas: &[Replica<'_>]) -> u64 {
    let counts = replicas
        .iter()
        .filter_map(|replica| replica.metric("projector_leader_changes_total"));
    counts.sum::<f64>() as u64
}

#[test]
fn while_the_server_is_away_replicas_live_try_at_a_bounded_rate_and_recover() {
    const OUTAGE: Duration = Duration::from_secs(4);
    // Both sides of the limit: a busy spin makes thousands, a loop that has ended makes none.
    const ATTEMPTS: std::ops::RangeInclusive<u64> = 2..=60;
    let site = Site::own_server(programs(), Databases::One, QUICK);
    let mut generator = Generator::new(102);
    let proxy = Proxy::before(site.urls().0, 102);
    let leader = leads_behind(&site, &proxy, "a");
    let standby = behind(&site, &proxy, "b");
    standby.stands_by_eventually();
    // Busy when it happens.
    site.append(&generator.lines(200), 20);
    site.server().stop(Mode::Immediate).expect("it stops");
    until(&site, "it leads no more", || leader.role() == "follower");
    let (begun, before) = (Instant::now(), proxy.attempts());
    until(&site, "the outage is over", || {
        for replica in [&leader, &standby] {
            assert_eq!(replica.code("/livez"), 200, "{}", replica.node());
            assert_eq!(replica.code("/leaderz"), 503, "{}", replica.node());
        }
        begun.elapsed() >= OUTAGE
    });
    let attempts = proxy.attempts() - before;
    assert!(
        ATTEMPTS.contains(&attempts),
        "two replicas connected {attempts} times in {OUTAGE:?}"
    );
    site.server().start_again().expect("it starts");
    until(&site, "one leads again", || {
        leader.leads() || standby.leads()
    });
    ends_well(&site, &mut generator, &[&leader, &standby]);
}
