//! The library: transaction locks, session locks, slots, runs.

use std::time::{Duration, Instant};

use projector_host::advisory_lock::cron::{Decision, Runs, SCHEMA, When};
use projector_host::advisory_lock::session::{self, Leases, Session};
use projector_host::advisory_lock::slots::Slots;
use projector_host::advisory_lock::{Error, Key, transaction};
use projector_host::database::identifier::Identifier;
use projector_host::database::session::Database;
use projector_host::error::Exit;
use projector_testkit::proxy::{Link, Proxy, Silence};
use projector_testkit::{Mode, Server, ServerOptions};
use sqlx::{Connection as _, Executor as _};

use crate::support::*;

const KEY: Key = Key::Single(-42);

#[tokio::test]
async fn a_transaction_lock_ends_with_its_transaction_however_that_ends() {
    let test = fresh();
    let (mut one, mut two) = (connect(&test).await, connect(&test).await);
    for commit in [true, false] {
        let mut work = one.begin().await.expect("it begins");
        assert!(
            transaction::try_lock(&mut work, KEY)
                .await
                .expect("it answers")
        );
        let mut other = two.begin().await.expect("it begins");
        assert!(
            !transaction::try_lock(&mut other, KEY)
                .await
                .expect("it answers")
        );
        match commit {
            true => work.commit().await.expect("it commits"),
            false => work.rollback().await.expect("it rolls back"),
        }
        assert!(
            transaction::try_lock(&mut other, KEY)
                .await
                .expect("it answers")
        );
        other.commit().await.expect("it commits");
    }
    assert_eq!(held(&test), "0");
}

#[tokio::test]
async fn a_wait_that_was_in_vain_leaves_the_transaction_usable_and_its_settings_as_they_were() {
    let test = fresh();
    let (mut one, mut two) = (connect(&test).await, connect(&test).await);
    let mut holder = one.begin().await.expect("it begins");
    assert!(
        transaction::try_lock(&mut holder, KEY)
            .await
            .expect("it answers")
    );
    let mut work = two.begin().await.expect("it begins");
    work.execute("CREATE TEMP TABLE kept (x int)")
        .await
        .expect("it runs");
    work.execute("SET LOCAL lock_timeout = '7s'")
        .await
        .expect("it runs");
    let started = Instant::now();
    let limit = Duration::from_millis(300);
    match transaction::lock(&mut work, KEY, limit).await {
        Err(error @ Error::Held { .. }) => assert_eq!(error.to_failure().exit, Exit::TryAgain),
        other => panic!("{other:?}"),
    }
    assert!(started.elapsed() >= limit);
    holder.commit().await.expect("it commits");
    transaction::lock(&mut work, KEY, limit)
        .await
        .expect("it is free");
    let setting: String = sqlx::query_scalar("SELECT current_setting('lock_timeout')")
        .fetch_one(&mut *work)
        .await
        .expect("the transaction goes on");
    assert_eq!(setting, "7s");
    work.execute("INSERT INTO kept VALUES (1)")
        .await
        .expect("it goes on");
    work.commit().await.expect("it commits");
}

#[tokio::test]
async fn a_statement_timeout_is_not_taken_for_a_held_lock() {
    let test = fresh();
    let (mut one, mut two) = (connect(&test).await, connect(&test).await);
    let mut holder = one.begin().await.expect("it begins");
    assert!(
        transaction::try_lock(&mut holder, KEY)
            .await
            .expect("it answers")
    );
    let mut work = two.begin().await.expect("it begins");
    work.execute("SET LOCAL statement_timeout = '200ms'")
        .await
        .expect("it runs");
    match transaction::lock(&mut work, KEY, Duration::from_secs(5)).await {
        Err(Error::Database(error)) => assert_eq!(error.sqlstate(), Some("57014")),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_session_lock_is_exclusive_names_its_holder_and_is_free_after_release() {
    let test = fresh();
    let (a, b) = (database(&test, "a"), database(&test, "b"));
    let acquire = |database, wait| session::acquire(database, KEY, wait, Leases::default());
    let mut lock = acquire(&a, Duration::ZERO).await.expect("it is free");
    for _ in 0..10 {
        lock.check().await.expect("it lives");
    }
    let started = Instant::now();
    for wait in [Duration::ZERO, Duration::from_millis(300)] {
        match acquire(&b, wait).await {
            Err(Error::Held { holder, .. }) => {
                assert!(holder.contains("node `a`"), "{holder}");
                assert!(holder.contains(&lock.backend_pid().to_string()), "{holder}");
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(started.elapsed() >= Duration::from_millis(300));
    assert_eq!(held(&test), "1", "checks do not stack");
    lock.release().await.expect("it was held, once");
    acquire(&b, Duration::ZERO)
        .await
        .expect("it is free")
        .release()
        .await
        .expect("held");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_gets_the_lock_when_the_holder_is_dropped() {
    let test = fresh();
    let (a, b) = (database(&test, "a"), database(&test, "b"));
    let lock = session::acquire(&a, KEY, Duration::ZERO, Leases::default())
        .await
        .expect("free");
    let waiting =
        tokio::spawn(async move { session::acquire(&b, KEY, PATIENCE, Leases::default()).await });
    eventually("it waits", || waiting_for_locks(&test) == "1");
    drop(lock);
    let mut lock = waiting.await.expect("no panic").expect("it got it");
    lock.check().await.expect("it lives");
    lock.release().await.expect("it was held");
}

#[tokio::test]
async fn a_killed_session_is_lost() {
    let test = fresh();
    let a = database(&test, "a");
    let mut lock = session::acquire(&a, KEY, Duration::ZERO, Leases::default())
        .await
        .expect("free");
    test.psql(&format!(
        "SELECT pg_terminate_backend({})",
        lock.backend_pid()
    ))
    .expect("ended");
    match lock.check().await {
        Err(error @ Error::Lost { .. }) => assert_eq!(error.to_failure().exit, Exit::TryAgain),
        other => panic!("{other:?}"),
    }
    assert!(
        lock.release().await.is_err(),
        "there is nothing to give back"
    );
}

#[tokio::test]
async fn never_more_than_n_slots_are_held_and_a_process_does_not_get_its_own_again() {
    let test = fresh();
    let slots = Slots::new("", "import", 3).expect("three is fine");
    let database = database(&test, "a");
    let acquire = |wait| slots.acquire(&database, wait, Leases::default());
    let mut taken = Vec::new();
    for _ in 0..3 {
        taken.push(acquire(Duration::ZERO).await.expect("there is room"));
    }
    let mut numbers: Vec<_> = taken.iter().map(|slot| slot.number()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2]);
    match acquire(Duration::from_millis(300)).await {
        Err(Error::Held { holder, .. }) => assert!(holder.starts_with("3 others"), "{holder}"),
        other => panic!("{other:?}"),
    }
    // Another process knows nothing of our bookkeeping, and is refused by the server.
    let elsewhere = Slots::new("", "import", 3).expect("three is fine");
    let refused = elsewhere
        .acquire(&database, Duration::ZERO, Leases::default())
        .await;
    assert!(matches!(refused, Err(Error::Held { .. })), "{refused:?}");
    let freed = taken.pop().expect("three are taken");
    let number = freed.number();
    freed.release().await.expect("it was held");
    let again = acquire(PATIENCE).await.expect("there is room again");
    assert_eq!(again.number(), number);
}

#[tokio::test]
async fn after_the_limit_was_lowered_the_old_high_slots_count() {
    let test = fresh();
    let database = database(&test, "a");
    let wide = Slots::new("", "import", 4).expect("four is fine");
    let mut old = Vec::new();
    for _ in 0..4 {
        old.push(
            wide.acquire(&database, Duration::ZERO, Leases::default())
                .await
                .expect("room"),
        );
    }
    old.retain(|slot| slot.number() >= 2);
    eventually("the low slots are free", || held(&test) == "2");
    let narrow = Slots::new("", "import", 2).expect("two is fine");
    match narrow
        .acquire(&database, Duration::ZERO, Leases::default())
        .await
    {
        Err(Error::Held { holder, .. }) => assert_eq!(holder, "2 others"),
        other => panic!("{other:?}"),
    }
    drop(old);
    narrow
        .acquire(&database, PATIENCE, Leases::default())
        .await
        .expect("there is room");
}

#[tokio::test]
async fn many_processes_at_once_never_exceed_the_slots() {
    let test = fresh();
    let tasks = (0..12).map(|number| {
        let database = database(&test, &number.to_string());
        // Not shared: each stands for a process of its own.
        let slots = Slots::new("", "busy", 3).expect("three is fine");
        tokio::spawn(async move {
            let slot = slots.acquire(&database, PATIENCE, Leases::default()).await;
            slot.expect("a slot in time")
                .release()
                .await
                .expect("it was held");
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut most = 0;
    while !tasks.iter().all(tokio::task::JoinHandle::is_finished) {
        most = most.max(held(&test).parse().expect("a number"));
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for task in tasks {
        task.await.expect("no panic");
    }
    assert!((1..=3).contains(&most), "{most} at once");
}

#[tokio::test]
async fn a_point_in_time_is_run_for_once_even_after_the_lock_was_free_again() {
    let test = fresh();
    let database = database(&test, "a");
    let runs = Runs::new(Identifier::new(SCHEMA).expect("fine"));
    // Several hosts create the table at once.
    let preparing = (0..8).map(|_| runs.prepare(&database));
    for prepared in futures_util::future::join_all(preparing).await {
        prepared.expect("one creates it, the others find it");
    }
    let at = When::At("2026-01-01T02:00:00Z".parse().expect("a time"));
    let begin = async |when, by: &'static str| {
        let mut lock = session::acquire(&database, KEY, PATIENCE, Leases::default())
            .await
            .expect("it is free");
        let decision = runs
            .begin(&mut lock, "job", when, by)
            .await
            .expect("it answers");
        if let Decision::Run(id) = &decision {
            runs.finish(&mut lock, *id, 3).await.expect("it answers");
        }
        lock.release().await.expect("it was held");
        decision
    };
    assert!(matches!(begin(at, "a").await, Decision::Run(_)));
    match begin(at, "b").await {
        Decision::Done { by, .. } => assert_eq!(by, "a"),
        other => panic!("{other:?}"),
    }
    let later = When::At("2026-01-01T03:00:00Z".parse().expect("a time"));
    assert!(matches!(begin(later, "b").await, Decision::Run(_)));

    let hourly = When::OncePer(Duration::from_secs(3_600));
    assert!(
        matches!(begin(hourly, "a").await, Decision::Done { .. }),
        "a run has just begun, whatever time it was for"
    );
    let an_hour_goes_by = || {
        test.psql("UPDATE projector_locks.runs SET started_at = started_at - interval '59 min'")
            .expect("as clocks go")
    };
    an_hour_goes_by();
    assert!(matches!(begin(hourly, "a").await, Decision::Run(_)));
    assert!(matches!(begin(hourly, "b").await, Decision::Done { .. }));
    an_hour_goes_by();
    assert!(matches!(begin(hourly, "b").await, Decision::Run(_)));
    let codes = test.psql("SELECT DISTINCT exit_code FROM projector_locks.runs");
    assert_eq!(codes.expect("it answers"), "3");
}

#[tokio::test]
async fn a_full_lock_table_is_named_with_the_setting_that_bounds_it() {
    let options = ServerOptions::default()
        .setting("max_locks_per_transaction", "10")
        .setting("max_connections", "20")
        .setting("max_prepared_transactions", "0");
    let server = Server::start(options).expect("a server is installed");
    let url = server.url("postgres");
    let database = projector_host::database::session::Database::new("lock", url.into(), "t", "a");
    // Opened before the table is full: a new session would find no room either.
    let session = Session::open(&database, Leases::default())
        .await
        .expect("it opens");
    let mut hog = database
        .connect(&projector_host::database::session::Purpose::Admin)
        .await
        .expect("it opens");
    let filled = hog
        .execute(
            "DO $$ BEGIN FOR i IN 1..1000000 LOOP PERFORM pg_advisory_lock(7, i); END LOOP; END $$",
        )
        .await;
    assert!(filled.is_err(), "the table is bounded");
    match session.try_lock(KEY).await {
        Err(error @ Error::Exhausted(_)) => {
            let failure = error.to_failure();
            assert_eq!(failure.exit, Exit::TryAgain);
            assert!(
                failure.message.contains("max_locks_per_transaction"),
                "{failure}"
            );
        }
        other => panic!("{other:?}"),
    }
    // A command meets it while it connects.
    let mut command = locks(&fresh(), &["run", "a", "--", "true"]);
    command.env("LOCK_URL", server.url("postgres"));
    let output = tokio::task::spawn_blocking(|| finished(command));
    let output = output.await.expect("no panic");
    assert_eq!(output.status.code(), Some(75));
    let error = text(&output.stderr);
    assert!(
        error.contains("PH0408") && error.contains("max_locks_per_transaction"),
        "{error}"
    );
    server.stop(Mode::Immediate).expect("it stops");
}

#[tokio::test]
async fn a_network_that_goes_silent_during_a_wait_is_not_taken_for_a_held_lock() {
    let test = fresh();
    let near = database(&test, "near");
    let held = session::acquire(&near, KEY, Duration::ZERO, Leases::default()).await;
    let held = held.expect("it is free");
    let proxy = Proxy::before(test.url(), 1);
    let far = Database::new("lock", proxy.url().to_owned().into(), "test", "far");
    let session = Session::open(&far, Leases::default());
    let session = session.await.expect("it opens");
    proxy.link(Link::default().silent(Silence::ToClient));
    let wait = Duration::from_millis(200);
    // The first statement of the wait is not answered either.
    let leases = Leases::default();
    let begun = std::time::Instant::now();
    match session.lock(KEY, wait).await {
        Err(Error::Database(error)) => assert!(error.is_unavailable(), "{error}"),
        other => panic!("{other:?}"),
    }
    assert!(begun.elapsed() <= leases.local_lease + Duration::from_secs(8));
    held.release().await.expect("it was held");
}

#[tokio::test]
async fn locks_on_a_standby_are_refused() {
    let server = Server::start(ServerOptions::default()).expect("a server is installed");
    let standby = server.basebackup().expect("a standby");
    let url = standby.url("postgres");
    let database = projector_host::database::session::Database::new("lock", url.into(), "t", "a");
    match Session::open(&database, Leases::default()).await {
        Err(error @ Error::Refused(_)) => assert_eq!(error.code().map(|code| code.0), Some(402)),
        other => panic!("{other:?}"),
    }
    server.stop(Mode::Fast).expect("it stops");
    standby.promote().expect("it is promoted");
    let lock = session::acquire(&database, KEY, Duration::ZERO, Leases::default()).await;
    lock.expect("locks count now")
        .release()
        .await
        .expect("it was held");
}
