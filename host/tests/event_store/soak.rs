//! Many writers with delays, rollbacks, savepoints and prepared transactions against two projections.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use projector_host::event_store::Options;
use projector_host::event_store::event::{Batch, Position, Subscription};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use sqlx::Row as _;

use super::support::*;

const WRITERS: u64 = 16;
const EVENTS: u64 = 50_000;
const STREAMS: u32 = 24;

/// Appends until enough events are committed by all.
async fn write(url: String, seed: u64, committed: Arc<AtomicU64>) {
    let mut random = StdRng::seed_from_u64(seed);
    let mut writer = Writer::connect(&url, "soak").await;
    let mut turn = 0;
    while committed.load(Ordering::Relaxed) < EVENTS {
        turn += 1;
        let two_phases = random.random_ratio(1, 40);
        writer.run("BEGIN").await;
        if two_phases {
            writer.run("SET LOCAL projector.notify = 'off'").await;
        }
        let mut count = 0;
        // Streams in order, so that no two transactions wait for each other in a circle.
        let mut stream = random.random_range(0..STREAMS / 2);
        for _ in 0..random.random_range(1..=3) {
            let savepoint = random.random_ratio(1, 10);
            if savepoint {
                writer.run("SAVEPOINT here").await;
            }
            let events = random.random_range(1..=8);
            let name = ["Even", "Odd"][events % 2];
            writer.append(&format!("s-{stream}"), name, events).await;
            if savepoint && random.random_ratio(1, 2) {
                writer.run("ROLLBACK TO SAVEPOINT here").await;
            } else {
                count += events as u64;
            }
            stream += random.random_range(1..=STREAMS / 6);
            if random.random_ratio(1, 3) {
                // A transaction that takes its time: what this test is about, not a wait for something.
                tokio::time::sleep(Duration::from_micros(random.random_range(0..4_000))).await;
            }
        }
        let commit = !random.random_ratio(1, 10);
        if two_phases {
            let name = format!("soak {seed} {turn}");
            writer.run(&format!("PREPARE TRANSACTION '{name}'")).await;
            tokio::time::sleep(Duration::from_micros(random.random_range(0..4_000))).await;
            let end = if commit { "COMMIT" } else { "ROLLBACK" };
            writer.run(&format!("{end} PREPARED '{name}'")).await;
        } else {
            writer.run(if commit { "COMMIT" } else { "ROLLBACK" }).await;
        }
        if commit {
            committed.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// Reads with services that end now and then, each beginning at what the last one had proven.
async fn project(
    url: String,
    wanted: Subscription,
    done: tokio::sync::watch::Receiver<Option<Position>>,
) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    let (mut at, mut settled) = (Position(0), Position(0));
    loop {
        let reader = Reader::start(
            Options {
                notify: true,
                ..options(&url)
            },
            settled,
        );
        for _ in 0..200 {
            if done.borrow().is_some_and(|last| at >= last) {
                return batches;
            }
            let next = reader.feed.next(at, &wanted, LIMITS);
            // At the end there may be nothing to come.
            let Ok(batch) = tokio::time::timeout(Duration::from_millis(500), next).await else {
                continue;
            };
            let batch = batch.expect("a batch");
            assert!(batch.after == at && batch.upto > at);
            at = batch.upto;
            batches.push(batch);
        }
        settled = reader.feed.mark().borrow().settled_upto;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_comes_once_in_order_and_streams_have_no_holes() {
    let store = Store::create().await;
    let url = store.url().to_owned();
    let (end, done) = tokio::sync::watch::channel(None);
    let all = tokio::spawn(project(url.clone(), Subscription::default(), done.clone()));
    let odd = tokio::spawn(project(url.clone(), types(&["Odd"]), done));
    let committed = Arc::new(AtomicU64::new(0));
    let mut writers = tokio::task::JoinSet::new();
    for seed in 0..WRITERS {
        writers.spawn(write(url.clone(), seed, Arc::clone(&committed)));
    }
    while let Some(ended) = writers.join_next().await {
        ended.expect("no writer fails");
    }
    let mut writer = store.writer("check").await;
    let rows = sqlx::query("SELECT position, type FROM event_store.events ORDER BY position")
        .fetch_all(&mut writer.connection)
        .await
        .expect("all positions");
    let expected: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    let expected_odd: Vec<i64> = rows
        .iter()
        .filter(|row| row.get::<&str, _>(1) == "Odd")
        .map(|row| row.get(0))
        .collect();
    assert!(expected.len() as u64 >= EVENTS);
    assert!(
        expected
            .last()
            .is_some_and(|last| *last > expected.len() as i64),
        "there are holes"
    );
    end.send_replace(expected.last().copied().map(Position));

    let all = all.await.expect("no panic");
    assert_eq!(positions(&all), expected);
    let mut versions: HashMap<&str, i64> = HashMap::new();
    for event in all.iter().flat_map(|batch| &batch.events) {
        let version = versions.entry(&event.stream).or_default();
        *version += 1;
        assert_eq!(event.version, *version, "of {}", event.stream);
    }
    assert_eq!(positions(&odd.await.expect("no panic")), expected_odd);
}
