//! Outages: the reader survives them, and what was proven before stays proven.

use std::time::Duration;

use projector_host::event_store::event::Position;
use projector_host::event_store::{Options, SourceState};
use projector_testkit::{Installation, Mode, Server, ServerOptions};

use super::support::*;

const DATABASE: &str = "store";

async fn server() -> Server {
    let installation =
        Installation::find_with("pg_basebackup").expect("pg_basebackup is installed");
    let server =
        Server::start(ServerOptions::default().installation(installation)).expect("a server");
    server.create_database(DATABASE).expect("a database");
    migrate(&server.url(DATABASE)).await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_of_the_server_loses_nothing_and_a_prepared_transaction_outlives_it() {
    let server = server().await;
    let url = server.url(DATABASE);
    let reader = Reader::start(
        Options {
            notify: true,
            ..options(&url)
        },
        Position(0),
    );
    let mut writer = Writer::connect(&url, "writer").await;
    writer.one("a").await;
    writer
        .run("BEGIN; SET LOCAL projector.notify = 'off'")
        .await;
    assert_eq!(writer.one("b").await, Position(2));
    writer.run("PREPARE TRANSACTION 'over the restart'").await;
    writer.one("a").await;
    reader.held_by(2, &[None]).await;

    server.stop(Mode::Immediate).expect("it stops");
    let mark = reader
        .until("it cannot be read", |mark| {
            matches!(mark.source, SourceState::Failing { .. })
        })
        .await;
    assert_eq!(mark.settled_upto, Position(1));
    server.start_again().expect("it starts");

    let mark = reader.held_by(2, &[None]).await;
    assert_eq!(
        (mark.source, mark.settled_upto),
        (SourceState::Ok, Position(1))
    );
    let mut writer = Writer::connect(&url, "writer").await;
    writer.run("COMMIT PREPARED 'over the restart'").await;
    // After a crash the server skips numbers that it had reserved: a hole that nobody fills.
    let last = writer.one("a").await;
    reader.settled(last).await;
    assert_eq!(reader.positions(last).await, [1, 2, 3, last.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_standby_is_no_source_and_its_promotion_is_another_timeline() {
    let server = server().await;
    let mut writer = Writer::connect(&server.url(DATABASE), "writer").await;
    let last = writer.append("a", "Happened", 3).await;
    let standby = server.basebackup().expect("a standby");
    let url = standby.url(DATABASE);
    let reader = Reader::start(options(&url), last);
    reader
        .until("it refuses the standby", |mark| {
            matches!(&mark.source, SourceState::Failing { error, .. } if error.contains("standby"))
        })
        .await;
    // Its feed does not read there either, although everything asked for is settled.
    let feed = reader.feed.clone();
    let wanted = Default::default();
    let reading = feed.next(Position(0), &wanted, LIMITS);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), reading)
            .await
            .is_err()
    );
    standby.promote().expect("it is promoted");
    reader
        .until("the new primary is read", |mark| {
            mark.source == SourceState::Ok && mark.proven
        })
        .await;
    assert_eq!(reader.positions(last).await, [1, 2, 3]);
}
