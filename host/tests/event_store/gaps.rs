//! Positions that are drawn in one order and committed in another, or never.

use projector_host::event_store::event::Position;
use projector_host::event_store::{GapProof, Held};

use super::support::*;

fn only_writer(held: Option<Held>) -> projector_host::event_store::Writer {
    let mut writers = held.expect("something is held").waiting_for;
    assert_eq!(writers.len(), 1, "{writers:?}");
    writers.remove(0)
}

#[tokio::test]
async fn a_lower_position_that_commits_later_is_waited_for_and_its_writer_is_named() {
    let store = Store::create().await;
    let reader = store.reader();
    let mut slow = store.writer("importer").await;
    let mut quick = store.writer("shop").await;
    slow.run("BEGIN").await;
    assert_eq!(slow.one("a").await, Position(1));
    assert_eq!(quick.one("b").await, Position(2));
    let mark = reader.held_by(1, &[Some(slow.pid)]).await;
    assert_eq!(mark.settled_upto, Position(0));
    let writer = only_writer(mark.held);
    assert_eq!(writer.application_name, "importer");
    assert_eq!(writer.user, "postgres");
    assert!(writer.since.is_some());
    // However long it stays open, and whatever else comes.
    for _ in 0..3 {
        let head = quick.one("b").await;
        reader.still_at(0, head).await;
    }
    slow.run("COMMIT").await;
    let mark = reader.settled(Position(5)).await;
    assert_eq!((mark.held, mark.skipped), (None, 0));
    assert_eq!(reader.positions(Position(5)).await, [1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_transaction_with_the_lower_id_may_take_the_higher_position() {
    let store = Store::create().await;
    let reader = store.reader();
    let mut first = store.writer("first").await;
    let mut second = store.writer("second").await;
    first.run("BEGIN; SELECT pg_current_xact_id()").await;
    second.run("BEGIN").await;
    assert_eq!(second.one("s").await, Position(1));
    assert_eq!(first.one("t").await, Position(2));
    first.run("COMMIT").await;
    reader.held_by(1, &[Some(second.pid)]).await;
    second.run("COMMIT").await;
    reader.settled(Position(2)).await;
    assert_eq!(reader.positions(Position(2)).await, [1, 2]);
}

#[tokio::test]
async fn several_slow_transactions_with_several_events_are_all_waited_for() {
    let store = Store::create().await;
    let reader = store.reader();
    let mut slow = Vec::new();
    for at in 0..3 {
        let mut writer = store.writer("slow").await;
        writer.run("BEGIN").await;
        writer.append(&format!("s{at}"), "Happened", 2).await;
        slow.push(writer);
    }
    let mut quick = store.writer("quick").await;
    for (at, writer) in slow.iter_mut().enumerate() {
        writer.append(&format!("s{at}"), "Happened", 1).await;
        quick.one("q").await;
    }
    let pids: Vec<_> = slow.iter().map(|writer| Some(writer.pid)).collect();
    reader.held_by(1, &pids).await;
    slow[2].run("COMMIT").await;
    slow[0].run("COMMIT").await;
    reader.held_by(3, &pids[1..2]).await;
    assert_eq!(reader.positions(Position(2)).await, [1, 2]);
    slow[1].run("ROLLBACK").await;
    let mark = reader.settled(Position(12)).await;
    assert_eq!(
        reader.positions(Position(12)).await,
        [1, 2, 5, 6, 7, 8, 10, 11, 12]
    );
    assert_eq!(mark.skipped, 3, "each hole is counted once");
}

#[tokio::test]
async fn a_hole_is_passed_when_no_writer_from_before_is_left_though_others_go_on() {
    let store = Store::create().await;
    let reader = store.reader();
    let (mut failing, mut old) = (store.writer("failing").await, store.writer("old").await);
    failing.run("BEGIN").await;
    failing.one("a").await;
    old.run("BEGIN").await;
    old.one("b").await;
    let mut quick = store.writer("quick").await;
    quick.one("c").await;
    reader.held_by(1, &[Some(failing.pid), Some(old.pid)]).await;
    failing.run("ROLLBACK").await;
    reader.held_by(1, &[Some(old.pid)]).await;
    // A writer that comes after the gap was seen, and stays, holds nothing up below its own position.
    let mut new = store.writer("new").await;
    new.run("BEGIN").await;
    new.one("d").await;
    old.run("COMMIT").await;
    let mark = reader.settled(Position(3)).await;
    assert_eq!(mark.skipped, 1);
    assert_eq!(reader.positions(Position(3)).await, [2, 3]);
    assert_eq!(quick.one("c").await, Position(5));
    reader.held_by(4, &[Some(new.pid)]).await;
}

#[tokio::test]
async fn a_hole_directly_above_what_is_remembered_is_held_but_an_older_one_is_not() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    writer.run("BEGIN; SELECT event_store.append('x', NULL, '[{\"type\":\"T\",\"data\":1}]'); ROLLBACK").await;
    assert_eq!(writer.append("a", "Happened", 4).await, Position(5));
    let mut slow = store.writer("slow").await;
    slow.run("BEGIN").await;
    slow.one("b").await;
    assert_eq!(writer.one("a").await, Position(7));
    let reader = Reader::start(options(store.url()), Position(5));
    reader.held_by(6, &[Some(slow.pid)]).await;
    assert_eq!(
        reader.positions(Position(5)).await,
        [2, 3, 4, 5],
        "the old hole waits for nobody"
    );
    slow.run("COMMIT").await;
    reader.settled(Position(7)).await;
    assert_eq!(reader.positions(Position(7)).await, [2, 3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn sessions_that_never_write_an_event_hold_nothing_up() {
    let store = Store::create().await;
    let mut writer = store.writer("writer").await;
    writer.run("CREATE TABLE elsewhere (n int)").await;
    let (mut idle, mut dump) = (store.writer("idle").await, store.writer("dump").await);
    idle.run("BEGIN; INSERT INTO elsewhere VALUES (1)").await;
    dump.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT * FROM event_store.events")
        .await;
    let mut prepared = store.writer("prepared").await;
    prepared
        .run("BEGIN; INSERT INTO elsewhere VALUES (2); PREPARE TRANSACTION 'unrelated'")
        .await;
    let reader = store.reader();
    writer.run("BEGIN").await;
    writer.one("a").await;
    writer.run("ROLLBACK").await;
    let last = writer.one("a").await;
    reader.settled(last).await;
    assert_eq!(reader.positions(last).await, [2]);
    prepared.run("ROLLBACK PREPARED 'unrelated'").await;
}

#[tokio::test]
async fn a_prepared_transaction_is_waited_for() {
    let store = Store::create().await;
    let reader = store.reader();
    let (mut slow, mut quick) = (store.writer("slow").await, store.writer("quick").await);
    let silent = "BEGIN; SET LOCAL projector.notify = 'off'";
    slow.run(silent).await;
    slow.one("a").await;
    quick.one("b").await;
    reader.held_by(1, &[Some(slow.pid)]).await;
    // While it is already waited for, and then without any session.
    slow.run("PREPARE TRANSACTION 'held'").await;
    reader.held_by(1, &[None]).await;
    drop(slow);
    let head = quick.one("b").await;
    reader.still_at(0, head).await;
    // Others that are prepared later do not matter.
    quick.run(silent).await;
    quick.one("c").await;
    quick.run("PREPARE TRANSACTION 'later'").await;
    let head = quick.one("b").await;
    reader.still_at(0, head).await;
    quick.run("COMMIT PREPARED 'held'").await;
    reader.settled(Position(3)).await;
    assert_eq!(reader.positions(Position(3)).await, [1, 2, 3]);
    reader.held_by(4, &[None]).await;
    quick.run("ROLLBACK PREPARED 'later'").await;
    reader.settled(head).await;
    assert_eq!(reader.positions(head).await, [1, 2, 3, 5]);
}

#[tokio::test]
async fn numbers_of_a_rolled_back_savepoint_hold_nothing_up_though_the_transaction_goes_on() {
    let store = Store::create().await;
    let reader = store.reader();
    let (mut open, mut quick) = (store.writer("open").await, store.writer("quick").await);
    open.run("BEGIN; SAVEPOINT here").await;
    open.one("a").await;
    quick.one("b").await;
    reader.held_by(1, &[Some(open.pid)]).await;
    open.run("ROLLBACK TO SAVEPOINT here").await;
    reader.settled(Position(2)).await;
    assert_eq!(reader.positions(Position(2)).await, [2]);
    // And it may write again, later.
    open.one("a").await;
    open.run("COMMIT").await;
    reader.settled(Position(3)).await;
    assert_eq!(reader.positions(Position(3)).await, [2, 3]);
}

#[tokio::test]
async fn copy_is_a_writer_too() {
    let store = Store::create().await;
    let reader = store.reader();
    let (mut slow, mut quick) = (store.writer("slow").await, store.writer("quick").await);
    slow.run("BEGIN").await;
    let mut copy = slow
        .connection
        .copy_in_raw("COPY event_store.events (stream, version, type, data) FROM STDIN")
        .await
        .expect("COPY begins");
    let rows: &[u8] = b"a\t1\tT\t{}\na\t2\tT\t{}\n";
    copy.send(rows).await.expect("rows are sent");
    copy.finish().await.expect("COPY ends");
    quick.one("b").await;
    reader.held_by(1, &[Some(slow.pid)]).await;
    slow.run("COMMIT").await;
    reader.settled(Position(3)).await;
    assert_eq!(reader.positions(Position(3)).await, [1, 2, 3]);
}

/// A number that is drawn by a statement of its own: the transaction holds no lock on the table yet.
#[tokio::test]
async fn with_the_stricter_proof_a_number_may_be_drawn_before_the_insert() {
    let store = Store::create().await;
    let strict = projector_host::event_store::Options {
        gap_proof: GapProof::AllTransactions,
        ..options(store.url())
    };
    let reader = Reader::start(strict, Position(0));
    let (mut slow, mut quick) = (store.writer("slow").await, store.writer("quick").await);
    slow.run("BEGIN").await;
    let drawn = slow
        .number("SELECT nextval(pg_get_serial_sequence('event_store.events', 'position'))")
        .await;
    assert_eq!(drawn, 1);
    quick.one("b").await;
    reader.held_by(1, &[Some(slow.pid)]).await;
    slow.run("INSERT INTO event_store.events (position, stream, version, type, data) OVERRIDING SYSTEM VALUE VALUES (1, 'a', 1, 'T', '{}')").await;
    slow.run("COMMIT").await;
    reader.settled(Position(2)).await;
    assert_eq!(reader.positions(Position(2)).await, [1, 2]);
    // Prepared transactions count as well.
    slow.run("BEGIN; SET LOCAL projector.notify = 'off'").await;
    slow.one("a").await;
    slow.run("PREPARE TRANSACTION 'strict'").await;
    quick.one("b").await;
    reader.held_by(3, &[None]).await;
    slow.run("COMMIT PREPARED 'strict'").await;
    reader.settled(Position(4)).await;
    assert_eq!(reader.positions(Position(4)).await, [1, 2, 3, 4]);
}

#[tokio::test]
async fn far_behind_the_head_is_proven_once_and_nobody_new_is_waited_for() {
    let store = Store::create().await;
    let (mut writer, mut old, mut new) = (
        store.writer("writer").await,
        store.writer("old").await,
        store.writer("new").await,
    );
    writer.run("BEGIN").await;
    writer.one("rolled-back").await;
    writer.run("ROLLBACK").await;
    for _ in 0..6 {
        writer.append("many", "Happened", 2_000).await;
    }
    old.run("BEGIN").await;
    let hole = old.one("old").await;
    let last = writer.append("many", "Happened", 10).await;
    let reader = store.reader();
    reader.held_by(1, &[Some(old.pid)]).await;
    new.run("BEGIN").await;
    new.one("new").await;
    old.run("COMMIT").await;
    let mark = reader.settled(last).await;
    assert_eq!(mark.settled_upto, last);
    let expected: Vec<i64> = (2..=last.0).collect();
    assert!(expected.contains(&hole.0));
    assert_eq!(reader.positions(last).await, expected);
    new.run("COMMIT").await;
    // One commit that is far more than a look: as far, and then near again.
    let end = writer.append("many", "Happened", 12_000).await;
    reader.settled(end).await;
    let tip = writer.one("many").await;
    let mark = reader.settled(tip).await;
    assert_eq!((mark.head, mark.proven), (tip, true));
    assert_eq!(reader.positions(tip).await, (2..=tip.0).collect::<Vec<_>>());
}

#[tokio::test]
async fn the_next_gap_has_a_proof_of_its_own_when_the_first_was_filled() {
    let store = Store::create().await;
    let reader = store.reader();
    let (mut open, mut first) = (store.writer("open").await, store.writer("first").await);
    let (mut second, mut quick) = (store.writer("second").await, store.writer("quick").await);
    // Might have drawn a number, for all that can be seen.
    open.run("BEGIN; LOCK TABLE event_store.events IN ROW EXCLUSIVE MODE")
        .await;
    first.run("BEGIN").await;
    first.one("a").await;
    quick.one("q").await;
    reader.held_by(1, &[Some(open.pid), Some(first.pid)]).await;
    first.run("COMMIT").await;
    let mark = reader.settled(Position(2)).await;
    assert_eq!(mark.held, None, "nothing is missing");
    second.run("BEGIN").await;
    second.one("b").await;
    quick.one("q").await;
    reader.held_by(3, &[Some(open.pid), Some(second.pid)]).await;
    second.run("ROLLBACK").await;
    reader.held_by(3, &[Some(open.pid)]).await;
    open.run("ROLLBACK").await;
    reader.settled(Position(4)).await;
    assert_eq!(reader.positions(Position(4)).await, [1, 2, 4]);
}

/// A database that was copied has the same table under the same number.
#[tokio::test]
async fn writers_of_another_database_hold_nothing_up() {
    let store = Store::create().await;
    let begun = std::time::Instant::now();
    // The session that migrated may still be on its way out, and then a copy is refused.
    let copy = loop {
        match store.database.copy() {
            Ok(copy) => break copy,
            Err(error) => assert!(begun.elapsed() < PATIENCE, "{error}"),
        }
    };
    let mut elsewhere = Writer::connect(copy.url(), "elsewhere").await;
    elsewhere.run("BEGIN").await;
    elsewhere.one("a").await;
    let mut writer = store.writer("writer").await;
    writer.run("BEGIN").await;
    writer.one("a").await;
    writer.run("ROLLBACK").await;
    let last = writer.one("a").await;
    let reader = store.reader();
    reader.settled(last).await;
    assert_eq!(reader.positions(last).await, [2]);
}
