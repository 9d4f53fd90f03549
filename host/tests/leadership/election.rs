//! Who leads, who stands by, and what each of them says.

use projector_host::advisory_lock::key::Key;
use projector_host::error::{Code, Exit};
use projector_host::leadership::role::Cause;
use projector_host::leadership::session::resign_key;
use projector_host::leadership::{Role, current_leader};
use projector_testkit::test_database;

use crate::support::*;

fn fresh() -> projector_testkit::TestDatabase {
    let database = test_database().expect("a server is installed");
    database
        .psql(&control_sql("projector"))
        .expect("the control tables are created");
    database
}

#[tokio::test]
async fn exactly_one_replica_leads_and_the_others_name_it() {
    let database = fresh();
    let replicas: Vec<_> = ["a", "b", "c"]
        .iter()
        .map(|node| Replica::start(options(database.url(), "default", node)))
        .collect();
    let first = first_leader(&replicas).await;
    let leadership = replicas[first].leads().await;
    assert!(leadership.lease.is_valid());
    let node = ["a", "b", "c"][first];
    for (at, replica) in replicas.iter().enumerate() {
        if at == first {
            continue;
        }
        assert!(!replica.leads_now());
        let denied = replica
            .denied("the standby names the leader", |denied| {
                denied.holder.as_ref().is_some_and(|h| h.since.is_some())
            })
            .await;
        let holder = denied.holder.expect("checked above");
        assert_eq!(holder.node.as_deref(), Some(node));
        assert_eq!(holder.host, Some(format!("host-of-{node}")));
        assert_eq!(holder.backend_pid, leadership.backend_pid);
        assert_eq!(holder.since, Some(leadership.since));
        assert!(denied.reason.contains(node), "{}", denied.reason);
        let overdue = replica.denied("it is overdue", |denied| denied.overdue);
        assert_eq!(overdue.await.refusal, None);
    }

    let mut connection = connect(&crate::support::database(database.url(), "default", "x")).await;
    let mut read_model = connect(&crate::support::database(database.url(), "default", "x")).await;
    let leader = current_leader(&mut connection, &mut read_model, KEY, &control())
        .await
        .expect("the database answers")
        .expect("somebody leads");
    assert_eq!((leader.node.as_str(), leader.term), (node, leadership.term));
    assert_eq!(leader.backend_pid, leadership.backend_pid);

    for replica in replicas {
        replica.stop().await;
    }
    let leader = current_leader(&mut connection, &mut read_model, KEY, &control()).await;
    assert_eq!(leader.expect("the database answers"), None);
}

#[tokio::test]
async fn a_clean_shutdown_unlocks_marks_the_term_and_hands_over_to_a_higher_term() {
    let database = fresh();
    let first = Replica::start(options(database.url(), "default", "first"));
    let old = first.leads().await;
    let second = Replica::start(options(database.url(), "default", "second"));
    second
        .denied("the second stands by", |denied| denied.holder.is_some())
        .await;
    let stopping = std::time::Instant::now();
    first.stop().await;
    let new = second.leads().await;
    let took = stopping.elapsed();
    assert!(took.as_secs_f64() < 1.0, "a hand-over took {took:?}");
    assert!(new.term > old.term && new.term_id != old.term_id);
    assert!(!old.lease.is_valid(), "the lease ends with the leadership");
    second.stop().await;
    let row = database
        .psql("SELECT node, term, released_at IS NOT NULL FROM projector.leadership")
        .expect("the row is there");
    assert_eq!(row, format!("second|{}|t", new.term));
    let locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = \
                 (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(database.psql(locks).expect("it answers"), "0");
    let sessions = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'projector/default/%' \
                    AND datname = current_database()";
    eventually("no session is left", async || {
        database.psql(sessions).expect("it answers") == "0"
    })
    .await;
}

#[tokio::test]
async fn a_resigned_leader_does_not_win_again_at_once() {
    let database = fresh();
    let first = Replica::start(options(database.url(), "default", "first"));
    let old = first.leads().await;
    let second = Replica::start(options(database.url(), "default", "second"));
    second
        .denied("the second stands by", |denied| denied.holder.is_some())
        .await;
    first.handle.resign("the event store cannot be reached");
    let new = second.leads().await;
    assert!(new.term > old.term);
    first
        .denied("the first stands by", |denied| denied.holder.is_some())
        .await;
    second.stop().await;
    first.leads_after(new.term).await;
    first.stop().await;
}

#[tokio::test]
async fn a_person_asks_the_leader_to_resign_from_anywhere() {
    let database = fresh();
    let leader = Replica::start(options(database.url(), "default", "leader"));
    let old = leader.leads().await;
    let mut asking = connect(&crate::support::database(database.url(), "default", "x")).await;
    let key = resign_key(KEY, old.term_id).arguments();
    let ask = format!("SELECT pg_advisory_lock({key})");
    sqlx::query(sqlx::AssertSqlSafe(ask))
        .execute(&mut asking)
        .await
        .expect("the key is free");
    leader
        .denied("it resigned", |denied| denied.reason.contains("resign"))
        .await;
    let new = leader.leads_after(old.term).await;
    assert!(
        new.lease.is_valid(),
        "the request was for the old term only"
    );
    leader.stop().await;
}

#[tokio::test]
async fn work_that_does_not_end_delays_the_release_only_until_the_drain_timeout() {
    let database = fresh();
    let mut slow = options(database.url(), "default", "slow");
    slow.timing.drain_timeout = std::time::Duration::from_millis(1_500);
    let slow = Replica::start_with_endless_work(slow);
    slow.leads().await;
    let stopping = std::time::Instant::now();
    slow.shutdown.cancel();
    assert_eq!(slow.drains().await, Cause::Shutdown);
    slow.stop().await;
    let took = stopping.elapsed().as_secs_f64();
    assert!((1.5..5.0).contains(&took), "stopping took {took} s");
    let row = database.psql("SELECT released_at IS NOT NULL FROM projector.leadership");
    assert_eq!(row.expect("the row is there"), "t");
}

#[tokio::test]
async fn a_leader_whose_loops_hang_resigns() {
    let database = fresh();
    let mut hung = options(database.url(), "default", "hung");
    hung.timing.stall_limit = std::time::Duration::from_millis(1_000);
    hung.timing.drain_timeout = std::time::Duration::from_millis(200);
    let hung = Replica::start_with_endless_work(hung);
    let old = hung.leads().await;
    assert_eq!(hung.drains().await, Cause::Stalled);
    let healthy = Replica::start(options(database.url(), "default", "healthy"));
    assert!(healthy.leads().await.term > old.term);
    healthy.stop().await;
    hung.stop().await;
}

#[tokio::test]
async fn another_group_on_the_same_key_is_named_and_waits() {
    let database = fresh();
    database
        .psql(&control_sql("other"))
        .expect("a second control schema");
    let ours = Replica::start(options(database.url(), "ours", "a"));
    ours.leads().await;
    let mut theirs = options(database.url(), "theirs", "b");
    theirs.control_schema =
        projector_host::database::identifier::Identifier::new("other").expect("fine");
    let theirs = Replica::start(theirs);
    let denied = theirs
        .denied("it names the other group", |denied| denied.holder.is_some())
        .await;
    let holder = denied.holder.expect("checked above");
    assert_eq!(holder.group.as_deref(), Some("ours"));
    assert!(holder.is_foreign_to("theirs") && !holder.is_foreign_to("ours"));
    assert!(denied.reason.contains("group `ours`"), "{}", denied.reason);
    ours.stop().await;
    theirs.leads().await;
    theirs.stop().await;
}

#[tokio::test]
async fn one_control_schema_under_two_keys_is_refused_while_the_first_is_in_use() {
    let database = fresh();
    let first = Replica::start(options(database.url(), "default", "first"));
    let leadership = first.leads().await;
    let mut other = options(database.url(), "default", "second");
    other.key = Key::Single(4711);
    let second = Replica::start(other);
    let denied = second
        .denied("it is refused", |denied| denied.refusal.is_some())
        .await;
    let refusal = denied.refusal.expect("checked above");
    assert_eq!(
        (refusal.code, refusal.exit),
        (Code(403), Some(Exit::Config))
    );
    assert!(refusal.message.contains("4711") && refusal.message.contains("first"));
    assert!(leadership.lease.is_valid(), "the leader is not disturbed");
    let term = database.psql("SELECT max(term) FROM projector.leadership");
    assert_eq!(term.expect("it answers"), leadership.term.to_string());

    first.stop().await;
    assert!(
        second.leads().await.term > leadership.term,
        "the key was changed"
    );
    second.stop().await;
}

#[tokio::test]
async fn an_unmigrated_control_schema_is_refused_with_the_command_to_run() {
    let database = test_database().expect("a server is installed");
    let replica = Replica::start(options(database.url(), "default", "a"));
    let denied = replica
        .denied("it is refused", |denied| denied.refusal.is_some())
        .await;
    assert!(denied.reason.contains("migrate up"), "{}", denied.reason);
    database
        .psql(&control_sql("projector"))
        .expect("the control tables are created");
    replica.leads().await;
    replica.stop().await;
}

#[tokio::test]
async fn each_projection_can_have_a_leader_of_its_own() {
    let database = fresh();
    let start = |node: &str, projection: &str| {
        let mut options = options(database.url(), "default", node);
        options.projection = Some(projection.to_owned());
        Replica::start(options)
    };
    let orders = start("a", "order");
    let one = orders.leads().await;
    let schedules = start("b", "scheduling");
    let two = schedules.leads().await;
    let second_orders = start("b", "order");
    second_orders
        .denied("it names the leader", |denied| denied.holder.is_some())
        .await;
    assert!(matches!(*orders.handle.role().borrow(), Role::Leading(_)));
    assert!(two.term > one.term, "numbers rise over all rows");
    for replica in [orders, schedules, second_orders] {
        replica.stop().await;
    }
}
