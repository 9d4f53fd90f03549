//! The traps of `docs/locks.md`, run as they stand there: what goes wrong, and that the right form does not.

use projector_testkit::TestDatabase;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};

use crate::support::*;

/// A statement, and proof that the page shows it.
fn shown(sql: &str) -> AssertSqlSafe<String> {
    let page = include_str!("../../../docs/locks.md");
    assert!(
        page.contains(&format!("\n{sql};\n")),
        "docs/locks.md does not show: {sql}"
    );
    AssertSqlSafe(sql.to_owned())
}

async fn flag(connection: &mut PgConnection, sql: &str) -> bool {
    let asked = sqlx::query_scalar(shown(sql)).fetch_one(connection).await;
    asked.expect("it answers")
}

/// `(granted locks in this database, …)`, seen from outside.
fn count(test: &TestDatabase) -> i64 {
    held(test).parse().expect("a number")
}

#[tokio::test]
async fn a_second_try_on_the_same_session_stacks_and_a_plain_question_does_not() {
    let test = fresh();
    let (mut holder, mut other) = (connect(&test).await, connect(&test).await);
    let lock = "SELECT pg_try_advisory_lock(4711)";
    for _ in 0..10 {
        assert!(flag(&mut holder, lock).await);
    }
    assert_eq!(count(&test), 1, "one row hides ten");
    let unlock = "SELECT pg_advisory_unlock(4711)";
    holder.execute(unlock).await.expect("it answers");
    assert!(!flag(&mut other, lock).await, "nine are left");
    for _ in 0..9 {
        holder.execute(unlock).await.expect("it answers");
    }
    assert!(flag(&mut other, lock).await);
    for _ in 0..10 {
        let check = shown("SELECT pg_backend_pid(), pg_is_in_recovery()");
        sqlx::query(check)
            .fetch_one(&mut other)
            .await
            .expect("it answers");
    }
    other.execute(unlock).await.expect("it answers");
    assert_eq!(count(&test), 0, "one unlock is enough");
}

#[tokio::test]
async fn a_transaction_lock_outside_of_a_transaction_is_gone_at_once() {
    let test = fresh();
    let (mut one, mut two) = (connect(&test).await, connect(&test).await);
    let lock = "SELECT pg_try_advisory_xact_lock(4712)";
    assert!(
        flag(&mut one, lock).await && flag(&mut two, lock).await,
        "both win"
    );
    assert_eq!(count(&test), 0);
    let mut work = one.begin().await.expect("it begins");
    assert!(flag(&mut work, lock).await);
    assert!(!flag(&mut two, lock).await);
}

#[tokio::test]
async fn unlocking_from_another_session_says_false_and_nothing_else() {
    let test = fresh();
    let (mut holder, mut other) = (connect(&test).await, connect(&test).await);
    holder
        .execute("SELECT pg_advisory_lock(4713)")
        .await
        .expect("it is free");
    let unlock = "SELECT pg_advisory_unlock(4713)";
    assert!(!flag(&mut other, unlock).await, "false, and no error");
    assert_eq!(count(&test), 1);
    assert!(flag(&mut holder, unlock).await);
}

#[tokio::test]
async fn set_local_outside_of_a_transaction_has_no_effect() {
    let test = fresh();
    let mut connection = connect(&test).await;
    let setting = async |connection: &mut PgConnection| -> String {
        let asked = sqlx::query_scalar("SELECT current_setting('lock_timeout')");
        asked.fetch_one(connection).await.expect("it answers")
    };
    let before = setting(&mut connection).await;
    let local = "SET LOCAL lock_timeout = '5s'";
    connection
        .execute(shown(local))
        .await
        .expect("only a warning");
    assert_eq!(setting(&mut connection).await, before);
    let mut work = connection.begin().await.expect("it begins");
    work.execute(shown(local)).await.expect("it works");
    assert_eq!(setting(&mut work).await, "5s");
}

#[tokio::test]
async fn an_unsigned_key_is_no_key() {
    let test = fresh();
    let mut connection = connect(&test).await;
    let sql = shown("SELECT pg_try_advisory_lock(18446744073709551615)");
    let error = connection.execute(sql).await.expect_err("it is a numeric");
    let code = error
        .as_database_error()
        .and_then(|error| error.code())
        .expect("SQLSTATE");
    assert_eq!(code, "42883");
}

#[tokio::test]
async fn a_lock_in_where_locks_every_row_and_in_the_select_list_those_chosen() {
    let test = fresh();
    test.psql("CREATE TABLE public.jobs AS SELECT generate_series(1, 1000)::bigint AS id; ANALYZE public.jobs")
        .expect("created");
    let mut connection = connect(&test).await;
    // Sessions of the host look for no table in `public`.
    connection
        .execute("SET search_path = public")
        .await
        .expect("set");
    let wrong = "SELECT id FROM jobs WHERE pg_try_advisory_lock(id) ORDER BY random() LIMIT 5";
    let rows = sqlx::query(shown(wrong))
        .fetch_all(&mut connection)
        .await
        .expect("rows");
    assert_eq!((rows.len(), count(&test)), (5, 1_000));
    connection
        .execute("SELECT pg_advisory_unlock_all()")
        .await
        .expect("it answers");
    let right = "SELECT id, pg_try_advisory_lock(id) FROM (SELECT id FROM jobs ORDER BY random() LIMIT 5 OFFSET 0) chosen";
    let rows = sqlx::query(shown(right))
        .fetch_all(&mut connection)
        .await
        .expect("rows");
    assert_eq!((rows.len(), count(&test)), (5, 5));
}

#[tokio::test]
async fn rollback_gives_transaction_locks_back_and_no_session_locks() {
    let test = fresh();
    let mut connection = connect(&test).await;
    for sql in ["BEGIN", "SELECT pg_advisory_lock(1)", "ROLLBACK"] {
        connection.execute(sql).await.expect("it runs");
    }
    assert_eq!(count(&test), 1, "the session lock survives");
    connection
        .execute("SELECT pg_advisory_unlock(1)")
        .await
        .expect("it answers");
    for sql in [
        "BEGIN",
        "SAVEPOINT s",
        "SELECT pg_advisory_xact_lock(2)",
        "ROLLBACK TO SAVEPOINT s",
    ] {
        connection.execute(sql).await.expect("it runs");
    }
    assert_eq!(count(&test), 0, "the transaction lock does not");
    connection.execute("ROLLBACK").await.expect("it runs");
}

#[tokio::test]
async fn a_session_gets_its_own_slot_again() {
    let test = fresh();
    let mut connection = connect(&test).await;
    for _ in 0..2 {
        let again: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock(9, 0)")
            .fetch_one(&mut connection)
            .await
            .expect("it answers");
        assert!(again);
    }
    assert_eq!(count(&test), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blocking_wait_holds_a_snapshot_and_a_try_does_not() {
    let test = fresh();
    let (mut holder, mut waiter) = (connect(&test).await, connect(&test).await);
    holder
        .execute("SELECT pg_advisory_lock(3)")
        .await
        .expect("it is free");
    let waiting = tokio::spawn(async move { waiter.execute("SELECT pg_advisory_lock(3)").await });
    let snapshots = "SELECT count(*) FROM pg_stat_activity
                     WHERE datname = current_database() AND wait_event_type = 'Lock' AND backend_xmin IS NOT NULL";
    eventually("the waiter holds a snapshot", || {
        test.psql(snapshots).expect("it answers") == "1"
    });
    holder
        .execute("SELECT pg_advisory_unlock(3)")
        .await
        .expect("it was held");
    waiting.await.expect("no panic").expect("it got it");
    assert_eq!(test.psql(snapshots).expect("it answers"), "0");
}
