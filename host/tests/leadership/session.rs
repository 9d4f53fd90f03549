//! The lock session by itself.

use projector_host::leadership::Error;
use projector_host::leadership::session::{Attempt, Session};
use projector_testkit::test_database;

use crate::support::*;

async fn won(url: &str, node: &str) -> projector_host::leadership::session::Held {
    let session = Session::open(&site(url, node)).await.expect("it opens");
    match session.try_lock().await.expect("it answers") {
        Attempt::Won(held) => held,
        Attempt::Denied(_) => panic!("the lock is free"),
    }
}

#[tokio::test]
async fn many_heartbeats_do_not_stack_the_lock() {
    let database = test_database().expect("a server is installed");
    let mut held = won(database.url(), "a").await;
    for round in 0..20 {
        held.beat(None, round % 5 == 0).await.expect("it lives");
    }
    let mut other = Session::open(&site(database.url(), "b"))
        .await
        .expect("it opens");
    held.release().await.expect("one unlock is enough");
    eventually("the next one wins", async || {
        let session = Session::open(&site(database.url(), "b"))
            .await
            .expect("it opens");
        matches!(session.try_lock().await, Ok(Attempt::Won(_)))
    })
    .await;
    assert_eq!(other.holder().await.expect("it answers"), None);
}

#[tokio::test]
async fn a_killed_session_gives_an_error_to_whatever_is_asked_of_it() {
    let database = test_database().expect("a server is installed");
    let mut beating = won(database.url(), "a").await;
    let kill = |pid: i32| {
        let sql = format!("SELECT pg_terminate_backend({pid})");
        database.psql(&sql).expect("it ends");
    };
    kill(beating.facts().backend_pid);
    assert!(beating.beat(None, false).await.is_err());
    let releasing = won(database.url(), "b").await;
    kill(releasing.facts().backend_pid);
    assert!(releasing.release().await.is_err());
}

#[tokio::test]
async fn dropping_the_session_frees_the_lock() {
    let database = test_database().expect("a server is installed");
    drop(won(database.url(), "a").await);
    eventually("the lock is free", async || {
        let session = Session::open(&site(database.url(), "b"))
            .await
            .expect("it opens");
        matches!(session.try_lock().await, Ok(Attempt::Won(_)))
    })
    .await;
}

#[tokio::test]
async fn a_session_that_stays_silent_is_ended_by_the_server() {
    let database = test_database().expect("a server is installed");
    let mut silent = won(database.url(), "silent").await;
    let mut waiting = Session::open(&site(database.url(), "b"))
        .await
        .expect("it opens");
    let frozen = std::time::Instant::now();
    eventually("the server frees the lock", async || {
        waiting.holder().await.expect("it answers").is_none()
    })
    .await;
    let took = frozen.elapsed();
    let lease = quick().server_lease;
    assert!(
        took < lease * 2,
        "freed after {took:?}, the lease is {lease:?}"
    );
    assert!(silent.beat(None, false).await.is_err(), "it notices");
}

#[tokio::test]
async fn a_wrong_password_or_a_missing_database_is_an_error_without_the_url() {
    let database = test_database().expect("a server is installed");
    let url = database.url().replace(database.name(), "no_such_database");
    let error = Session::open(&site(&url, "a"))
        .await
        .expect_err("it is missing");
    assert!(matches!(error, Error::Database(_)));
    let text = error.to_string();
    assert!(
        text.contains("no_such_database") && !text.contains("postgres://"),
        "{text}"
    );
}
