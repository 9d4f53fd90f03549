//! Stores that somebody edits while they are read: what came later than its place, what went away, what is hidden.

use projector_host::event_store::event::{Position, Subscription};
use projector_host::event_store::{Error, Feed, Service, SourceState};

use super::support::*;

/// What owners do with the append-only trigger out of the way.
async fn edit(writer: &mut Writer, sql: &str) {
    writer
        .run(&format!(
            "BEGIN; ALTER TABLE event_store.events DISABLE TRIGGER events_append_only; {sql};
             ALTER TABLE event_store.events ENABLE TRIGGER events_append_only; COMMIT"
        ))
        .await;
}

/// Positions that were given to nobody, so that somebody can come late.
async fn leave_a_hole(writer: &mut Writer, positions: usize) {
    for _ in 0..positions {
        writer
            .run("BEGIN; SELECT event_store.append('gone', NULL, '[{\"type\":\"T\",\"data\":1}]'); ROLLBACK")
            .await;
    }
}

fn insert(position: i64, version: i64) -> String {
    format!(
        "INSERT INTO event_store.events (position, stream, version, type, data) OVERRIDING SYSTEM VALUE
         VALUES ({position}, 'late', {version}, 'Happened', '{{}}')"
    )
}

/// Waits until a projection that stands here is told that it missed something.
async fn misses(feed: &Feed, after: Position) -> Error {
    let subscription = Subscription::default();
    let next = feed.next(after, &subscription, LIMITS);
    tokio::time::timeout(PATIENCE, next)
        .await
        .expect("it is told")
        .expect_err("it missed something")
}

#[tokio::test]
async fn an_event_that_comes_later_than_its_place_stops_those_that_have_passed_it() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    writer.append("a", "Happened", 3).await;
    leave_a_hole(&mut writer, 2).await;
    let last = writer.append("a", "Happened", 3).await;
    let reader = store.reader();
    reader.settled(last).await;
    // The first look at the file's end has been made by the time of the second one.
    reader.watched_twice(&mut writer).await;
    writer.run(&insert(5, 1)).await;
    let error = misses(&reader.feed.for_one(), last).await;
    assert!(
        matches!(&error, Error::Late { positions } if positions == "5"),
        "{error}"
    );
    misses(&reader.feed.for_one(), Position(6)).await;
    // Who has not passed it reads it.
    let batch = reader
        .feed
        .next(Position(3), &Subscription::default(), LIMITS)
        .await
        .expect("nothing is missed");
    let positions: Vec<i64> = batch.events.iter().map(|event| event.position.0).collect();
    assert_eq!(positions, [5, 6, 7, 8]);
    // And goes on behind it, as whoever begins only now.
    let beginner = reader.feed.for_one();
    let from = read(
        &beginner,
        Position(0),
        last,
        &Subscription::default(),
        LIMITS,
    )
    .await;
    assert_eq!(super::support::positions(&from), [1, 2, 3, 5, 6, 7, 8]);
    // One projection goes on as somebody allowed; another one is still told.
    let one = reader.feed.for_one();
    one.tolerate();
    let next = writer.one("a").await;
    let batch = one
        .next(Position(8), &Subscription::default(), LIMITS)
        .await
        .expect("it goes on");
    assert_eq!(batch.upto, next);
    misses(&reader.feed.for_one(), Position(8)).await;
    // What is found later does not bring back what was put up with.
    reader.watched_twice(&mut writer).await;
    writer.run(&insert(4, 2)).await;
    let error = misses(&one, next).await;
    assert!(
        matches!(&error, Error::Late { positions } if positions == "4"),
        "{error}"
    );
}

#[tokio::test]
async fn every_row_that_was_there_in_time_is_no_late_one() {
    let store = Store::create().await;
    let reader = store.reader();
    let mut writers = Vec::new();
    for n in 0..4 {
        let mut writer = store.writer("writer").await;
        writers.push(tokio::spawn(async move {
            for round in 0..60 {
                writer.run("BEGIN").await;
                writer.append(&format!("s{n}"), "Happened", 7).await;
                let end = if round % 5 == n { "ROLLBACK" } else { "COMMIT" };
                writer.run(end).await;
            }
        }));
    }
    for writer in writers {
        writer.await.expect("it writes");
    }
    let mut writer = store.writer("writer").await;
    let head = Position(
        writer
            .number("SELECT max(position) FROM event_store.events")
            .await,
    );
    reader.settled(head).await;
    // A table that is written anew has every row in another place.
    writer.run("VACUUM FULL event_store.events").await;
    reader.watched_twice(&mut writer).await;
    let mark = reader
        .until("it reads on", |mark| mark.source == SourceState::Ok)
        .await;
    assert_eq!(mark.late.times, 0, "{:?}", mark.late);
}

#[tokio::test]
async fn a_store_that_is_replaced_while_it_is_read_ends_the_reader() {
    for replacement in [
        // The last event is gone, and others have taken its place and more.
        "DELETE FROM event_store.events WHERE position > 2; ALTER SEQUENCE event_store.events_position_seq RESTART 3;
         SELECT event_store.append('b', NULL, '[{\"type\":\"T\",\"data\":1},{\"type\":\"T\",\"data\":1},{\"type\":\"T\",\"data\":1}]')",
        // The store ends before what was read.
        "DELETE FROM event_store.events WHERE position > 2",
        "TRUNCATE event_store.events",
    ] {
        let store = Store::create().await;
        let mut writer = store.writer("writer").await;
        writer.append("a", "Happened", 4).await;
        let reader = store.reader();
        reader.settled(Position(4)).await;
        edit(&mut writer, replacement).await;
        let ended = tokio::time::timeout(PATIENCE, reader.ended).await;
        let error = ended.expect("it ends").expect("no panic").expect_err("refused");
        assert!(
            matches!(&error, Error::OtherStore(why) if why.contains("position 4")),
            "{replacement}: {error}"
        );
    }
}

#[tokio::test]
async fn a_projection_that_is_behind_does_not_read_on_in_another_store() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    writer.append("a", "Happened", 4).await;
    let (service, feed) = Service::new(
        projector_host::event_store::Options {
            poll_interval: NEVER,
            ..options(store.url())
        },
        Position(0),
    );
    let reader = Reader::run(service, feed);
    reader.settled(Position(4)).await;
    let mark = reader
        .until("it knows an event", |mark| mark.anchor.is_some())
        .await;
    assert_eq!(mark.anchor.map(|anchor| anchor.position), Some(Position(4)));
    // Far behind what is kept in memory, so that the table is read.
    edit(
        &mut writer,
        "UPDATE event_store.events SET id = gen_random_uuid()",
    )
    .await;
    let batch = reader
        .feed
        .next(Position(-1), &Subscription::default(), LIMITS)
        .await;
    let error = batch.expect_err("the mark means nothing there");
    assert!(matches!(error, Error::OtherStore(_)), "{error}");
}

#[tokio::test]
async fn what_may_hide_events_is_refused_by_name_at_the_start() {
    for (change, why) in [
        ("ALTER TABLE event_store.events ENABLE ROW LEVEL SECURITY", "row-level security"),
        (
            "ALTER TABLE event_store.events ENABLE ROW LEVEL SECURITY;
             CREATE POLICY visible ON event_store.events USING (stream LIKE 'a%')",
            "row-level security",
        ),
        (
            "REVOKE SELECT ON event_store.events FROM {role};
             GRANT SELECT (position, id, stream, version, type, schema_version, data, metadata, recorded_at)
             ON event_store.events TO {role}",
            "GRANT SELECT",
        ),
        (
            "CREATE RULE elsewhere AS ON INSERT TO event_store.events DO INSTEAD NOTHING",
            "rules",
        ),
        (
            "CREATE TABLE event_store.more () INHERITS (event_store.events)",
            "inherit",
        ),
        (
            "ALTER TABLE event_store.events RENAME TO all_events;
             CREATE VIEW event_store.events AS SELECT * FROM event_store.all_events;
             GRANT SELECT ON event_store.events TO {role}",
            "no table",
        ),
        (
            "SELECT setval('event_store.events_position_seq', 1);
             GRANT SELECT ON SEQUENCE event_store.events_position_seq TO {role}",
            "setval",
        ),
    ] {
        let store = Store::create().await;
        let mut writer = store.writer("owner").await;
        writer.append("a", "Happened", 3).await;
        let role = Role::create(&store, &mut writer).await;
        writer.run(&change.replace("{role}", role.name())).await;
        let reader = Reader::start(options(role.url()), Position(0));
        let ended = tokio::time::timeout(PATIENCE, reader.ended).await;
        let error = ended.expect("it ends").expect("no panic").expect_err("refused");
        assert!(error.to_string().contains(why), "{change}: {error}");
        role.drop(&mut writer).await;
    }
}

#[tokio::test]
async fn what_hides_events_while_they_are_read_stops_the_reading() {
    let store = Store::create().await;
    let mut writer = store.writer("owner").await;
    writer.append("a", "Happened", 3).await;
    let role = Role::create(&store, &mut writer).await;
    let reader = Reader::start(options(role.url()), Position(0));
    reader.settled(Position(3)).await;
    writer
        .run(
            "ALTER TABLE event_store.events ENABLE ROW LEVEL SECURITY;
              CREATE POLICY visible ON event_store.events USING (stream = 'a')",
        )
        .await;
    writer.one("b").await;
    let ended = tokio::time::timeout(PATIENCE, reader.ended).await;
    let error = ended
        .expect("it ends")
        .expect("no panic")
        .expect_err("refused");
    assert!(matches!(error, Error::Hidden { .. }), "{error}");
    assert_eq!(reader.feed.mark().borrow().settled_upto, Position(3));
    role.drop(&mut writer).await;
}

#[tokio::test]
async fn a_sequence_that_is_set_back_stops_the_reading_until_it_is_set_right() {
    let store = Store::create().await;
    let mut writer = store.writer("owner").await;
    writer.append("a", "Happened", 5).await;
    let reader = store.reader();
    reader.settled(Position(5)).await;
    writer
        .run("SELECT setval('event_store.events_position_seq', 2)")
        .await;
    let ended = tokio::time::timeout(PATIENCE, reader.ended).await;
    let error = ended
        .expect("it ends")
        .expect("no panic")
        .expect_err("refused");
    let text = error.to_string();
    let remedy = text.split('`').nth(1).expect("a statement").to_owned();
    assert!(
        text.contains("PH0302") && remedy.contains("setval"),
        "{text}"
    );
    writer.run(&remedy).await;
    // Told where to begin, and nothing drawn yet.
    writer
        .run("ALTER TABLE event_store.events ALTER COLUMN position RESTART WITH 6")
        .await;
    let again = store.reader();
    let next = writer.one("a").await;
    assert_eq!(next, Position(6));
    again.settled(next).await;
}
