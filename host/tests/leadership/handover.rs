//! A leader that leaves tells the standbys: they take over at once, and not at their next interval.

use std::time::{Duration, Instant};

use projector_host::advisory_lock::key::Key;
use projector_host::leadership::Options;
use projector_host::leadership::session::handover_channel;
use projector_testkit::{TestDatabase, test_database};

use crate::support::*;

/// So rarely do the standbys of these tests try by themselves.
const INTERVAL: Duration = Duration::from_secs(8);

/// What a hand-over may take on a busy machine: far less than any interval.
const HANDOVER_MAX: Duration = Duration::from_secs(1);

fn fresh() -> TestDatabase {
    let database = test_database().expect("a server is installed");
    database.psql(&control_sql("projector")).expect("created");
    database
}

fn rarely(database: &TestDatabase, node: &str) -> Options {
    let mut options = options(database.url(), "default", node);
    options.timing.retry_interval = INTERVAL;
    options.timing.server_lease = INTERVAL * 3;
    options
}

/// Sessions of a node that listen, as the server sees them.
fn listening(database: &TestDatabase, node: &str) -> String {
    let sql = format!(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND application_name = 'projector/default/{node}/listen' AND state = 'idle' AND query LIKE '%LISTEN%'"
    );
    database.psql(&sql).expect("it answers")
}

async fn listens(database: &TestDatabase, node: &str, sessions: &str) {
    eventually(
        &format!("{node} has {sessions} listening sessions"),
        async || listening(database, node) == sessions,
    )
    .await;
}

#[tokio::test]
async fn shutdown_and_resignation_hand_over_at_once() {
    let database = fresh();
    let mut leader = Replica::start(rarely(&database, "first"));
    let mut old = leader.leads().await;
    for node in ["second", "third"] {
        let standby = Replica::start(rarely(&database, node));
        listens(&database, node, "1").await;
        let begun = Instant::now();
        let left = if node == "second" {
            leader.handle.resign("a test");
            Some(leader)
        } else {
            leader.stop().await;
            None
        };
        let new = standby.leads().await;
        let took = begun.elapsed();
        assert!(took < HANDOVER_MAX, "{node} leads after {took:?}");
        assert!(new.term > old.term);
        listens(&database, node, "0").await;
        if let Some(left) = left {
            left.denied("it stays away", |denied| denied.reason.contains("resign"))
                .await;
            left.stop().await;
        }
        (leader, old) = (standby, new);
    }
    leader.stop().await;
}

#[tokio::test]
async fn a_listening_session_that_was_lost_is_replaced_and_hears_the_next_hand_over() {
    let database = fresh();
    let leader = Replica::start(rarely(&database, "leader"));
    leader.leads().await;
    let options = rarely(&database, "standby");
    let reconnects = options.metrics.reconnects.clone();
    let standby = Replica::start(options);
    listens(&database, "standby", "1").await;
    for lost in 1..=2 {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                   WHERE application_name = 'projector/default/standby/listen' AND datname = current_database()";
        assert_eq!(database.psql(end).expect("it answers"), "1");
        eventually("it listens again", async || reconnects.get() == lost).await;
    }
    listens(&database, "standby", "1").await;
    let begun = Instant::now();
    leader.stop().await;
    standby.leads().await;
    let took = begun.elapsed();
    assert!(took < HANDOVER_MAX, "it leads after {took:?}");
    standby.stop().await;
}

#[tokio::test]
async fn a_leader_has_no_session_for_hand_overs_and_nothing_is_left_of_a_standbys() {
    let database = fresh();
    let leader = Replica::start(rarely(&database, "leader"));
    leader.leads().await;
    let standby = Replica::start(rarely(&database, "standby"));
    listens(&database, "standby", "1").await;
    assert_eq!(listening(&database, "leader"), "0");
    let other = Key::Single(4711);
    assert_ne!(handover_channel(KEY), handover_channel(other));
    assert!(handover_channel(Key::Pair(-1, -1)).len() < 63);
    for replica in [leader, standby] {
        replica.stop().await;
    }
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'projector/%' AND datname = current_database()";
    eventually("no session is left", async || {
        database.psql(sessions).expect("it answers") == "0"
    })
    .await;
}
