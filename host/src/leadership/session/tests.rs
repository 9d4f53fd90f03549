//! What only the owner of the connection can do to the lock.

use projector_testkit::test_database;
use sqlx::Executor as _;

use super::*;

fn site(url: &str) -> Site {
    Site {
        database: Database::new("event store", url.to_owned().into(), "test", "a"),
        key: Key::Single(-7),
        local_lease: Duration::from_secs(4),
        server_lease: Duration::from_secs(6),
    }
}

async fn held(url: &str) -> Held {
    let session = Session::open(&site(url)).await.expect("it opens");
    match session.try_lock().await.expect("it answers") {
        Attempt::Won(held) => held,
        Attempt::Denied(_) => panic!("it is free"),
    }
}

#[tokio::test]
async fn a_lock_that_went_away_under_its_session_is_found_by_the_deep_check_and_by_unlocking() {
    let test = test_database().expect("a server is installed");
    let mut lock = held(test.url()).await;
    lock.beat(None, true).await.expect("it is held");
    let gone = "SELECT pg_advisory_unlock_all()";
    let connection = &mut lock.session.connection;
    connection.execute(gone).await.expect("it answers");
    lock.beat(None, false)
        .await
        .expect("the session lives, and nothing else is asked");
    assert!(matches!(lock.beat(None, true).await, Err(Error::LockGone)));
    assert!(matches!(lock.release().await, Err(Error::LockGone)));
}

#[tokio::test]
async fn another_backend_or_another_server_is_not_the_one_that_won_the_lock() {
    let test = test_database().expect("a server is installed");
    let mut lock = held(test.url()).await;
    lock.session.facts.backend_pid += 1;
    assert!(matches!(
        lock.beat(None, false).await,
        Err(Error::SessionChanged(_))
    ));
    lock.session.facts.backend_pid -= 1;
    lock.session.facts.postmaster_start.push('x');
    assert!(matches!(
        lock.beat(None, false).await,
        Err(Error::SessionChanged(_))
    ));
}

#[tokio::test]
async fn asking_for_the_resignation_leaves_no_lock_behind() {
    let test = test_database().expect("a server is installed");
    let mut lock = held(test.url()).await;
    let term_id = Uuid::new_v4();
    for _ in 0..3 {
        let beat = lock.beat(Some(term_id), false).await.expect("it lives");
        assert!(!beat.resign_requested);
    }
    let count = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = \
                 (SELECT oid FROM pg_database WHERE datname = current_database())";
    assert_eq!(test.psql(count).expect("it answers"), "1");
}
