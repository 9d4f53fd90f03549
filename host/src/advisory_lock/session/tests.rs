//! What only the owner of the connection can do to a lock: nothing outside this module reaches it.

use projector_testkit::test_database;

use super::*;

#[tokio::test]
async fn a_lock_that_went_away_under_its_session_is_reported_when_it_is_given_back() {
    let test = test_database().expect("a server is installed");
    let database = Database::new("lock", test.url().to_owned().into(), "test", "a");
    let key = Key::Single(5);
    let lock = acquire(&database, key, Duration::ZERO, Leases::default()).await;
    let mut lock = lock.expect("it is free");
    // What a pooler does between two clients.
    let (connection, _, _) = lock.parts();
    sqlx::query("SELECT pg_advisory_unlock_all()")
        .execute(connection)
        .await
        .expect("it answers");
    match lock.release().await {
        Err(error @ Error::NotHeld { .. }) => {
            assert_eq!(error.code().map(|code| code.0), Some(410));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_bound_on_statements_is_back_after_a_wait() {
    let test = test_database().expect("a server is installed");
    let database = Database::new("lock", test.url().to_owned().into(), "test", "a");
    let wait = Duration::from_secs(20);
    let lock = acquire(&database, Key::Single(6), wait, Leases::default()).await;
    let mut lock = lock.expect("it is free");
    let (connection, _, _) = lock.parts();
    let setting = |name: &'static str| {
        sqlx::query_scalar::<_, String>("SELECT current_setting($1)").bind(name)
    };
    let statement = setting("statement_timeout")
        .fetch_one(&mut *connection)
        .await;
    assert_eq!(statement.expect("it answers"), "10s");
    // Neither keep-alives nor the user time-out may free the lock before the lease.
    let idle = setting("idle_session_timeout")
        .fetch_one(&mut *connection)
        .await;
    assert_eq!(idle.expect("it answers"), "30s");
    let user = setting("tcp_user_timeout")
        .fetch_one(&mut *connection)
        .await;
    assert_eq!(user.expect("it answers"), "30000", "milliseconds");
}
