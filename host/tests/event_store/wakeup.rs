//! Notifications are a hint; polling never stops.

use std::time::{Duration, Instant};

use projector_host::database::session::Purpose;
use projector_host::event_store::event::{Position, Subscription};
use projector_host::event_store::{ListenerState, Options};

use super::support::*;

fn listening(url: &str, poll_interval: Duration) -> Options {
    Options {
        notify: true,
        poll_interval,
        ..options(url)
    }
}

#[tokio::test]
async fn a_notification_wakes_the_reader_at_once() {
    let store = Store::create().await;
    let reader = Reader::start(listening(store.url(), NEVER), Position(0));
    let mut writer = store.writer("writer").await;
    reader
        .until("it listens", |mark| {
            mark.listener == ListenerState::Listening && mark.proven
        })
        .await;
    for _ in 0..20 {
        let position = writer.one("a").await;
        reader.settled(position).await;
    }
}

#[tokio::test]
async fn without_the_trigger_or_with_it_silenced_polling_finds_everything() {
    let store = Store::create().await;
    let reader = Reader::start(
        listening(store.url(), Duration::from_millis(50)),
        Position(0),
    );
    let mut writer = store.writer("writer").await;
    reader
        .until("it listens", |mark| {
            mark.listener == ListenerState::Listening
        })
        .await;
    writer
        .run("BEGIN; SET LOCAL projector.notify = 'off'")
        .await;
    let silent = writer.one("a").await;
    writer.run("COMMIT").await;
    reader.settled(silent).await;
    writer
        .run("DROP TRIGGER events_wake ON event_store.events")
        .await;
    let last = writer.one("a").await;
    reader.settled(last).await;
}

#[tokio::test]
async fn a_killed_listener_is_replaced_and_what_came_meanwhile_is_found() {
    let store = Store::create().await;
    let reader = Reader::start(listening(store.url(), NEVER), Position(0));
    let mut writer = store.writer("writer").await;
    let name = application_name(store.url(), &Purpose::Listen);
    for _ in 0..3 {
        reader
            .until("it listens", |mark| {
                mark.listener == ListenerState::Listening
            })
            .await;
        let kill = format!(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE datname = current_database() AND application_name = '{name}'"
        );
        writer.until(&kill, 1).await;
        let missed = writer.one("a").await;
        reader.settled(missed).await;
    }
    reader
        .until("it listens again", |mark| {
            mark.listener == ListenerState::Listening
        })
        .await;
    let position = writer.one("a").await;
    reader.settled(position).await;
}

#[tokio::test]
async fn an_open_gap_is_looked_at_often_after_a_wake_up() {
    let store = Store::create().await;
    let reader = Reader::start(listening(store.url(), Duration::from_secs(5)), Position(0));
    let (mut slow, mut quick) = (store.writer("slow").await, store.writer("quick").await);
    reader
        .until("it listens", |mark| {
            mark.listener == ListenerState::Listening && mark.proven
        })
        .await;
    slow.run("BEGIN; SET LOCAL projector.notify = 'off'").await;
    slow.one("a").await;
    quick.one("b").await;
    reader.held_by(1, &[Some(slow.pid)]).await;
    let begun = Instant::now();
    slow.run("COMMIT").await;
    reader.settled(Position(2)).await;
    assert!(
        begun.elapsed() < Duration::from_secs(4),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn a_projection_that_waits_gets_the_event_as_soon_as_it_is_settled() {
    let store = Store::create().await;
    let reader = Reader::start(listening(store.url(), NEVER), Position(0));
    let mut writer = store.writer("writer").await;
    let feed = reader.feed.clone();
    let waiting = tokio::spawn(async move {
        // Cancelled and begun again, as a loop does.
        let nothing = Subscription::default();
        let cancelled =
            tokio::time::timeout(Duration::ZERO, feed.next(Position(0), &nothing, LIMITS)).await;
        assert!(cancelled.is_err());
        feed.next(Position(0), &nothing, LIMITS).await
    });
    reader
        .until("it listens", |mark| {
            mark.listener == ListenerState::Listening
        })
        .await;
    let position = writer.one("a").await;
    let batch = tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("in time")
        .expect("no panic")
        .expect("a batch");
    assert_eq!((batch.upto, batch.events.len()), (position, 1));
    assert_eq!(batch.events[0].data, r#"{"n": 1}"#);
    assert_eq!(batch.events[0].metadata, "{}");
    assert_eq!(
        (batch.events[0].stream.as_str(), batch.events[0].version),
        ("a", 1)
    );
}
