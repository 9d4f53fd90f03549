//! Filters, progress without matches, and the bounds of a batch: near the head and far behind it alike.

use projector_host::database::session::Purpose;
use projector_host::event_store::event::{Position, Subscription};
use projector_host::event_store::{BatchLimits, Feed, Service};

use super::support::*;

/// Two feeds of one store: one whose reader read the rows itself, and one that only knows the mark, so that it
/// has to ask the database.
async fn near_and_far(store: &Store, last: Position) -> (Reader, Reader) {
    let near = store.reader();
    near.settled(last).await;
    let far = Reader::start(options(store.url()), last);
    far.settled(last).await;
    (near, far)
}

async fn check(
    feed: &Feed,
    last: Position,
    wanted: &Subscription,
    limits: BatchLimits,
    expected: &[i64],
) {
    let batches = read(feed, Position(0), last, wanted, limits).await;
    assert_eq!(positions(&batches), expected, "{wanted:?} {limits:?}");
    for batch in &batches {
        let bytes: usize = batch
            .events
            .iter()
            .map(|event| event.data.len() + event.metadata.len())
            .sum();
        assert!(
            batch.events.len() == 1 || bytes <= limits.bytes_max,
            "{bytes} bytes in {limits:?}"
        );
    }
    assert_eq!(batches.last().map(|batch| batch.upto), Some(last));
}

#[tokio::test]
async fn only_wanted_events_come_and_progress_is_what_was_scanned() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    for (stream, event_type) in [
        ("order-1", "Created"),
        ("order-2", "Paid"),
        ("o%der-3", "Paid"),
        ("orders", "Paid"),
        ("order_4", "Created"),
        ("visit-1", "Created"),
        ("order-1", "Nobody"),
    ] {
        writer.append(stream, event_type, 1).await;
    }
    let last = Position(7);
    let (near, far) = near_and_far(&store, last).await;
    let prefixes = |prefixes: &[&str]| prefixes.iter().map(|&prefix| prefix.to_owned()).collect();
    for (wanted, expected) in [
        (Subscription::default(), vec![1, 2, 3, 4, 5, 6, 7]),
        (types(&["Paid"]), vec![2, 3, 4]),
        (types(&["Paid", "Nobody"]), vec![2, 3, 4, 7]),
        (types(&["Unheard"]), vec![]),
        (
            Subscription {
                types: vec![],
                stream_prefixes: prefixes(&["order-"]),
            },
            vec![1, 2, 7],
        ),
        (
            Subscription {
                types: vec![],
                stream_prefixes: prefixes(&["o%"]),
            },
            vec![3],
        ),
        (
            Subscription {
                types: vec![],
                stream_prefixes: prefixes(&["order_"]),
            },
            vec![5],
        ),
        (
            Subscription {
                types: vec!["Created".to_owned()],
                stream_prefixes: prefixes(&["visit", "order-"]),
            },
            vec![1, 6],
        ),
    ] {
        for feed in [&near.feed, &far.feed] {
            check(feed, last, &wanted, LIMITS, &expected).await;
            for events_max in [1, 2, 3] {
                let limits = BatchLimits {
                    events_max,
                    ..LIMITS
                };
                check(feed, last, &wanted, limits, &expected).await;
            }
        }
    }
}

#[tokio::test]
async fn a_batch_keeps_its_bounds_and_one_event_always_passes() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    // Texts that compress well, texts that do not, and one that is larger than every bound.
    for (at, kilobytes) in [1, 3, 40, 1, 300, 1, 2, 60, 60, 5].iter().enumerate() {
        let text = if at % 2 == 0 {
            format!("repeat('x', {kilobytes} * 1024)")
        } else {
            format!(
                "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, {kilobytes} * 32) AS i)"
            )
        };
        let sql = format!(
            "SELECT event_store.append('s', NULL, jsonb_build_array(jsonb_build_object('type', 'T', 'data', {text})))"
        );
        writer.run(&sql).await;
    }
    let last = Position(10);
    let (near, far) = near_and_far(&store, last).await;
    let all: Vec<i64> = (1..=10).collect();
    for feed in [&near.feed, &far.feed] {
        for kilobytes in [0, 1, 2, 5, 45, 64, 128, 400] {
            for events_max in [1, 3, 100] {
                let limits = BatchLimits {
                    events_max,
                    bytes_max: kilobytes * 1024,
                };
                check(feed, last, &Subscription::default(), limits, &all).await;
            }
        }
        let limits = BatchLimits {
            events_max: 100,
            bytes_max: 128 * 1024,
        };
        let batches = read(feed, Position(0), last, &Subscription::default(), limits).await;
        let sizes: Vec<usize> = batches.iter().map(|batch| batch.events.len()).collect();
        assert_eq!(sizes, [4, 1, 5 - 1, 1], "as full as the bound allows");
    }
}

#[tokio::test]
async fn a_rare_type_is_found_without_reading_the_rest_and_nothing_is_kept_of_it() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    writer.run(
        "INSERT INTO event_store.events (stream, version, type, data)
         SELECT 'bulk', i, CASE WHEN i IN (7, 230000) THEN 'Rare' ELSE 'Common' END, '{}' FROM generate_series(1, 250000) AS i",
    ).await;
    let last = Position(250_000);
    let (service, feed) = Service::new(options(store.url()), Position(0));
    let reader = Reader::run(service, feed);
    reader.settled(last).await;
    let batches = read(&reader.feed, Position(0), last, &types(&["Rare"]), LIMITS).await;
    assert_eq!(positions(&batches), [7, 230_000]);
    assert_eq!(
        batches.len(),
        2,
        "bounded stretches, not one endless statement and not thousands"
    );
    // The same session of the feed goes on after it was killed.
    let name = application_name(store.url(), &Purpose::Read);
    let killed = writer
        .number(&format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = '{name}'"
        ))
        .await;
    assert_eq!(killed, 2, "one session of the service and one of the feed");
    let batches = read(
        &reader.feed,
        Position(0),
        last,
        &types(&["Nothing"]),
        LIMITS,
    )
    .await;
    assert!(positions(&batches).is_empty());
}

#[tokio::test]
async fn positions_that_were_jumped_over_are_not_walked_through() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    writer.append("order-1", "Created", 1).await;
    let far_away = (1_i64 << 53) + 7;
    let jump =
        format!("alter table event_store.events alter column position restart with {far_away}");
    store.database.psql(&jump).expect("it jumps");
    writer.append("order-1", "Paid", 2).await;
    let (near, far) = near_and_far(&store, Position(far_away + 1)).await;
    for feed in [&near.feed, &far.feed] {
        for (wanted, expected) in [
            (vec!["Created".to_owned()], vec![1]),
            (vec!["Paid".to_owned()], vec![far_away, far_away + 1]),
            (vec![], vec![1, far_away, far_away + 1]),
            (vec!["Nobody".to_owned()], vec![]),
        ] {
            let wanted = Subscription {
                types: wanted,
                stream_prefixes: vec![],
            };
            let reading = read(feed, Position(0), Position(far_away + 1), &wanted, LIMITS);
            // A walk would take years.
            let batches = tokio::time::timeout(PATIENCE, reading)
                .await
                .expect("no walk");
            assert_eq!(positions(&batches), expected, "{wanted:?}");
            assert!(
                batches.len() < 6,
                "{} batches for {wanted:?}",
                batches.len()
            );
        }
    }
}
