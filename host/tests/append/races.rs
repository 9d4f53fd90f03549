//! Many appenders at once: no random failure, no hole, no event twice.

use std::sync::Arc;

use sqlx::postgres::PgConnection;
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use super::support::{Store, append, execute, refusal};

const WRITERS: usize = 8;
const ROUNDS: usize = 40;

async fn together<T, F>(store: &Store, work: impl Fn(usize, PgConnection) -> F) -> Vec<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let barrier = Arc::new(Barrier::new(WRITERS));
    let mut tasks = JoinSet::new();
    for writer in 0..WRITERS {
        let barrier = Arc::clone(&barrier);
        let job = work(writer, store.session().await);
        tasks.spawn(async move {
            barrier.wait().await;
            job.await
        });
    }
    tasks.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn appenders_of_one_stream_that_expect_nothing_all_succeed_without_holes() {
    let store = Store::new().await;
    let results = together(&store, |_, mut session| async move {
        for round in 0..ROUNDS {
            let events = r#"[{"type":"T","data":1},{"type":"T","data":2}]"#;
            append(&mut session, "a", None, events)
                .await
                .map_err(|error| format!("round {round}: {error}"))?;
        }
        Ok::<_, String>(())
    })
    .await;
    assert_eq!(results, vec![Ok(()); WRITERS]);
    assert_eq!(store.broken_streams(), "0");
    assert_eq!(
        store.psql("select max(version), count(*) from shop_events.events"),
        format!("{0}|{0}", WRITERS * ROUNDS * 2)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_appenders_that_expect_the_same_version_one_wins() {
    let store = Store::new().await;
    let results = together(&store, |_, mut session| async move {
        append(&mut session, "a", Some(0), r#"[{"type":"T","data":1}]"#)
            .await
            .map_err(|error| error.sqlstate().unwrap_or_default().to_owned())
    })
    .await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let lost = results
        .iter()
        .filter(|result| **result == Err("40001".to_owned()));
    assert_eq!(lost.count(), WRITERS - 1);
    assert_eq!(store.versions(), "a|1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_event_that_everybody_sends_stands_once() {
    let store = Store::new().await;
    let events = r#"[{"type":"T","data":1,"id":"9ad91b6c-34b0-4fc3-8bbb-0d6d1d32e000"}]"#;
    let results = together(&store, |_, mut session| async move {
        append(&mut session, "a", Some(0), events)
            .await
            .map_err(|error| error.to_string())
    })
    .await;
    assert_eq!(results, vec![Ok((1, 1, 1)); WRITERS]);
    assert_eq!(store.versions(), "a|1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn batches_over_the_same_streams_in_any_order_neither_deadlock_nor_leave_holes() {
    let store = Store::new().await;
    let results = together(&store, |writer, mut session| async move {
        for round in 0..ROUNDS {
            let mut streams: Vec<usize> = (0..10).collect();
            streams.rotate_left((writer + round) % 10);
            if writer % 2 == 0 {
                streams.reverse();
            }
            let lines: Vec<String> = streams
                .iter()
                .map(|stream| format!(r#"{{"stream":"s{stream}","type":"T","data":1}}"#))
                .collect();
            let sql = format!(
                "SELECT * FROM shop_events.append_batch('[{}]')",
                lines.join(",")
            );
            execute(&mut session, &sql)
                .await
                .map_err(|error| error.to_string())?;
        }
        Ok::<_, String>(())
    })
    .await;
    assert_eq!(results, vec![Ok(()); WRITERS]);
    assert_eq!(store.broken_streams(), "0");
    assert_eq!(
        store.psql("select count(*) from shop_events.events"),
        (WRITERS * ROUNDS * 10).to_string()
    );
}

#[tokio::test]
async fn an_old_snapshot_is_told_to_try_again_and_not_that_a_key_is_double() {
    let store = Store::new().await;
    let (mut old, mut new) = (store.session().await, store.session().await);
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM shop_events.events";
    execute(&mut old, begin)
        .await
        .expect("a transaction begins");
    let one = r#"[{"type":"T","data":1}]"#;
    append(&mut new, "a", None, one)
        .await
        .expect("nobody is in the way");
    assert_eq!(refusal(append(&mut old, "a", None, one).await).0, "40001");
}
