//! Stores that cannot be read without losing events, and stores that are not the known one.

use projector_host::event_store::event::{Position, Subscription};
use projector_host::event_store::layout::Layout;
use projector_host::event_store::{Error, Service, inspect, preflight};

use super::support::*;

/// Runs a service on a store that was changed; gives the error it ends with.
async fn refused(store: &Store, settled_upto: i64) -> Error {
    let (service, feed) = Service::new(options(store.url()), Position(settled_upto));
    let reader = Reader::run(service, feed);
    let ended = tokio::time::timeout(PATIENCE, reader.ended).await;
    ended
        .expect("it ends")
        .expect("no panic")
        .expect_err("it refuses")
}

#[tokio::test]
async fn numbers_that_are_drawn_ahead_are_refused_with_the_remedy() {
    for (change, why, remedy) in [
        ("CACHE 20", "CACHE 20", "CACHE 1"),
        ("INCREMENT 2", "INCREMENT 2", "INCREMENT 1"),
        ("CYCLE", "CYCLE", "NO CYCLE"),
    ] {
        let store = Store::create().await;
        let mut writer = store.writer("owner").await;
        writer
            .run(&format!(
                "ALTER SEQUENCE event_store.events_position_seq {change}"
            ))
            .await;
        let error = refused(&store, 0).await.to_string();
        let command = format!("ALTER SEQUENCE event_store.events_position_seq {remedy}");
        assert!(error.contains(why) && error.contains(&command), "{error}");
        writer.run(&command).await;
        let last = writer.one("a").await;
        store.reader().settled(last).await;
    }
}

#[tokio::test]
async fn a_table_that_is_missing_or_draws_no_numbers_is_refused() {
    let store = Store::create().await;
    let mut writer = store.writer("owner").await;
    writer
        .run("ALTER TABLE event_store.events ALTER COLUMN position DROP IDENTITY")
        .await;
    let error = refused(&store, 0).await;
    assert!(
        matches!(&error, Error::UnsafeSequence { remedy, .. } if remedy.contains("GENERATED")),
        "{error}"
    );
    writer.run("DROP TABLE event_store.events CASCADE").await;
    let error = refused(&store, 0).await;
    assert!(matches!(error, Error::NoTable(_)), "{error}");
}

#[tokio::test]
async fn a_store_that_went_back_is_refused() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    writer.append("a", "Happened", 3).await;
    let error = refused(&store, 4).await;
    assert!(matches!(error, Error::OtherStore(_)), "{error}");
}

#[tokio::test]
async fn another_store_than_the_expected_one_is_refused_by_the_service_and_by_the_feed() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    let last = writer.append("a", "Happened", 3).await;
    let layout = Layout::Projector { schema: schema() };
    let here = preflight::identify(&mut writer.connection, &layout)
        .await
        .expect("it is a store");
    let mut other = here.clone();
    other.timeline = "0000000F".to_owned();

    let (service, feed) = Service::new(options(store.url()), last);
    let reader = Reader::run(service.expecting(other), feed);
    let feed = reader.feed.clone();
    let error = feed
        .next(Position(0), &Subscription::default(), LIMITS)
        .await
        .expect_err("what is settled there is not settled here");
    assert!(matches!(error, Error::OtherStore(_)), "{error}");
    let ended = reader.ended.await.expect("no panic");
    assert!(matches!(ended, Err(Error::OtherStore(_))), "{ended:?}");

    let (service, feed) = Service::new(options(store.url()), last);
    let reader = Reader::run(service.expecting(here), feed);
    assert_eq!(reader.positions(last).await, [1, 2, 3]);
}

#[tokio::test]
async fn a_role_that_may_only_read_the_table_is_enough() {
    let store = Store::create().await;
    let mut writer = store.writer("importer").await;
    let role = Role::create(&store, &mut writer).await;
    let reader = Reader::start(options(role.url()), Position(0));
    let mut slow = store.writer("slow").await;
    slow.run("BEGIN").await;
    slow.one("a").await;
    writer.one("b").await;
    // It sees another role's writer, by name.
    let mark = reader.held_by(1, &[Some(slow.pid)]).await;
    let held = mark.held.expect("something is held");
    assert_eq!(held.waiting_for[0].application_name, "slow");
    slow.run("COMMIT").await;
    reader.settled(Position(2)).await;
    assert_eq!(reader.positions(Position(2)).await, [1, 2]);
    drop(reader);
    role.drop(&mut writer).await;
}

#[tokio::test]
async fn lag_is_what_the_stores_clock_says() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    writer
        .run(
            "INSERT INTO event_store.events (stream, version, type, data, recorded_at)
             SELECT 'a', i, 'T', '{}', clock_timestamp() + make_interval(secs => 100 * i - 300)
             FROM generate_series(1, 4) AS i",
        )
        .await;
    let layout = Layout::Projector { schema: schema() };
    let checkpoints = [0, 1, 2, 3, 4].map(Position);
    let head = inspect::head(&mut writer.connection, &layout)
        .await
        .expect("the head");
    assert_eq!(head, Position(4));
    let lags = inspect::lag_seconds(&mut writer.connection, &layout, &checkpoints)
        .await
        .expect("the lags");
    let expected = [200.0, 100.0, 0.0, 0.0, 0.0];
    for (lag, expected) in lags.iter().flatten().zip(expected) {
        assert!(
            *lag >= expected && *lag < expected + PATIENCE.as_secs_f64(),
            "{lags:?}"
        );
    }
    assert_eq!(lags[3..], [None, Some(0.0)], "the future and the end");
}

#[tokio::test]
async fn no_time_in_a_store_breaks_the_question_for_the_lag() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    let odd = ["infinity", "-infinity", "4713-01-01 BC", "294276-12-31"];
    for (version, time) in odd.iter().enumerate() {
        writer
            .run(&format!(
                "INSERT INTO event_store.events (stream, version, type, data, recorded_at)
                 VALUES ('a', {}, 'T', '{{}}', '{time}')",
                version + 1
            ))
            .await;
    }
    let layout = Layout::Projector { schema: schema() };
    let checkpoints = [0, 1, 2, 3, 4].map(Position);
    let lags = inspect::lag_seconds(&mut writer.connection, &layout, &checkpoints)
        .await
        .expect("the lags");
    assert_eq!(lags[..2], [None, None], "infinite times say no age");
    assert!(lags[2].is_some_and(|lag| lag > 1e11), "{lags:?}");
    assert_eq!(lags[3..], [None, Some(0.0)], "the future and the end");
}
