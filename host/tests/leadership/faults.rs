//! Faults: killed sessions, restarts, standbys, a server that is gone.

use std::time::{Duration, Instant};

use projector_host::leadership::role::Cause;
use projector_host::leadership::session::Session;
use projector_host::leadership::{Error, Role};
use projector_testkit::{Mode, Server, ServerOptions, test_database};

use crate::support::*;

/// What a busy machine may add to a measured time.
const SLACK: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_killed_lock_session_ends_the_leadership_within_a_heartbeat_and_another_takes_over() {
    let database = test_database().expect("a server is installed");
    database.psql(&control_sql("projector")).expect("created");
    let first = Replica::start(options(database.url(), "default", "first"));
    let old = first.leads().await;
    let second = Replica::start(options(database.url(), "default", "second"));
    second
        .denied("the second stands by", |denied| denied.holder.is_some())
        .await;
    let killed = Instant::now();
    database
        .psql(&format!("SELECT pg_terminate_backend({})", old.backend_pid))
        .expect("it ends");
    old.lease.ended().await;
    let took = killed.elapsed();
    let bound = quick().heartbeat_interval + Duration::from_millis(200) + SLACK;
    assert!(took < bound, "noticed after {took:?}");
    assert!(!old.lease.is_valid());
    let replicas = [first, second];
    let next = first_leader(&replicas).await;
    let new = replicas[next].leads_after(old.term).await;
    assert!(new.lease.is_valid());
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn a_restart_of_the_server_leaves_one_leader_with_a_higher_term() {
    let server = Server::start(ServerOptions::default()).expect("a server is installed");
    server
        .psql("postgres", &control_sql("projector"))
        .expect("created");
    let url = server.url("postgres");
    let replicas = ["a", "b", "c"].map(|node| Replica::start(options(&url, "default", node)));
    let mut newest = replicas[first_leader(&replicas).await].leads().await;
    for mode in [Mode::Fast, Mode::Immediate, Mode::Fast] {
        server.restart(mode).expect("it restarts");
        newest.lease.ended().await;
        let term = newest.term;
        let waiting = replicas.iter().map(|r| Box::pin(r.leads_after(term)));
        (newest, _, _) = futures_util::future::select_all(waiting).await;
        let leaders = replicas
            .iter()
            .filter(|replica| replica.leads_now())
            .count();
        assert_eq!(leaders, 1);
        let held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted";
        assert_eq!(server.psql("postgres", held).expect("it answers"), "1");
    }
    for replica in replicas {
        replica.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_is_gone_for_longer_than_the_lease_is_waited_for() {
    let server = Server::start(ServerOptions::default()).expect("a server is installed");
    server
        .psql("postgres", &control_sql("projector"))
        .expect("created");
    let replica = Replica::start(options(&server.url("postgres"), "default", "a"));
    let old = replica.leads().await;
    server.stop(Mode::Immediate).expect("it stops");
    let denied = replica
        .denied("it says why", |denied| {
            denied.reason.contains("cannot connect")
        })
        .await;
    assert!(!old.lease.is_valid());
    assert_eq!(
        denied.refusal, None,
        "an outage is no fault of the configuration"
    );
    server.start_again().expect("it starts");
    replica.leads_after(old.term).await;
    replica.stop().await;
}

#[tokio::test]
async fn nobody_leads_on_a_standby_until_it_is_promoted() {
    let server = Server::start(ServerOptions::default()).expect("a server is installed");
    server
        .psql("postgres", &control_sql("projector"))
        .expect("created");
    let standby = server.basebackup().expect("a standby");
    let on_primary = Replica::start(options(&server.url("postgres"), "default", "primary"));
    on_primary.leads().await;
    let on_standby = Replica::start(options(&standby.url("postgres"), "default", "standby"));
    let denied = on_standby
        .denied("it is refused", |denied| denied.refusal.is_some())
        .await;
    assert!(denied.reason.contains("standby"), "{}", denied.reason);
    assert_eq!(
        denied.refusal.map(|r| r.exit),
        Some(None),
        "it may pass by itself"
    );
    on_primary.stop().await;
    server.stop(Mode::Fast).expect("it stops");
    standby.promote().expect("it is promoted");
    on_standby.leads().await;
    on_standby.stop().await;
}

#[tokio::test]
async fn a_read_only_role_may_not_lead_and_is_told_where_the_lock_can_live() {
    let database = test_database().expect("a server is installed");
    database.psql(&control_sql("projector")).expect("created");
    database
        .psql(&format!(
            "ALTER DATABASE {} SET default_transaction_read_only = on",
            database.name()
        ))
        .expect("changed");
    let site = site(database.url(), "a");
    match Session::open(&site).await {
        Err(Error::Refused(refusal)) => assert!(refusal.message.contains("read-only")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_term_that_somebody_else_claimed_ends_the_leadership() {
    let database = test_database().expect("a server is installed");
    database.psql(&control_sql("projector")).expect("created");
    let mut options = options(database.url(), "default", "a");
    options.timing.check_interval = Duration::from_millis(300);
    let replica = Replica::start_with_endless_work(options);
    let old = replica.leads().await;
    database
        .psql("UPDATE projector.leadership SET term = term + 5, term_id = gen_random_uuid()")
        .expect("changed");
    assert_eq!(replica.drains().await, Cause::TermLost);
    replica.handle.drained(old.term);
    let new = replica.leads_after(old.term).await;
    assert_eq!(new.term.0, old.term.0 + 6);
    assert!(matches!(*replica.handle.role().borrow(), Role::Leading(_)));
    replica.stop().await;
}
