//! Claiming a term: the fence of every batch.

use std::time::Duration;

use projector_host::database::session::Purpose;
use projector_host::leadership::Error;
use projector_host::leadership::session::Session;
use projector_testkit::{TestDatabase, test_database};
use sqlx::{Connection as _, Executor as _};

use crate::support::*;

/// Control tables with one checkpoint at position 7.
fn with_checkpoint() -> TestDatabase {
    let database = test_database().expect("a server is installed");
    database
        .psql(&format!(
            "{}; INSERT INTO projector.generations VALUES ('order', 1, 'order_g1', true, 'x', '1', '{{}}');
             INSERT INTO projector.checkpoints (projection, generation, position) VALUES ('order', 1, 7)",
            control_sql("projector")
        ))
        .expect("the control tables are created");
    database
}

fn checkpoint(database: &TestDatabase) -> String {
    database
        .psql("SELECT term, term_id, position FROM projector.checkpoints")
        .expect("the row is there")
}

#[tokio::test]
async fn terms_rise_and_stand_in_every_checkpoint() {
    let database = with_checkpoint();
    let session = Session::open(&site(database.url(), "a"))
        .await
        .expect("it opens");
    let (claimant, watcher) = claimant(database.url(), "a", &session);
    for expected in 1..=3 {
        let claimed = claimant.claim(&watcher).await.expect("it is free");
        assert_eq!(claimed.term.0, expected);
        assert_eq!(
            checkpoint(&database),
            format!("{expected}|{}|7", claimed.term_id)
        );
    }
}

#[tokio::test]
async fn only_the_newest_term_can_be_checked_and_released() {
    let database = with_checkpoint();
    let session = Session::open(&site(database.url(), "a"))
        .await
        .expect("it opens");
    let (claimant, watcher) = claimant(database.url(), "a", &session);
    let old = claimant.claim(&watcher).await.expect("it is free");
    assert_eq!(claimant.check(&old).await.expect("it answers"), Some(true));
    let new = claimant.claim(&watcher).await.expect("it is free");
    assert_eq!(claimant.check(&old).await.expect("it answers"), Some(false));
    assert!(!claimant.release(&old).await.expect("it answers"));
    let mut forged = new.clone();
    forged.term_id = old.term_id;
    assert!(
        !claimant.release(&forged).await.expect("it answers"),
        "the number alone is not enough"
    );
    assert!(claimant.release(&new).await.expect("it answers"));
}

#[tokio::test]
async fn a_claim_waits_for_the_batch_under_way_and_then_no_old_batch_matches() {
    let database = with_checkpoint();
    let session = Session::open(&site(database.url(), "a"))
        .await
        .expect("it opens");
    let (claimant, watcher) = claimant(database.url(), "a", &session);
    let old = claimant.claim(&watcher).await.expect("it is free");
    let batch = "UPDATE projector.checkpoints SET position = position + 1
                 WHERE projection = 'order' AND term = $1 AND term_id = $2";
    let writer = crate::support::database(database.url(), "default", "old");
    let mut writer = writer.connect(&Purpose::Write).await.expect("it opens");
    let mut transaction = writer.begin().await.expect("it begins");
    let query = || sqlx::query(batch).bind(old.term.0).bind(old.term_id);
    query()
        .execute(&mut *transaction)
        .await
        .expect("the term stands");

    let claiming = tokio::spawn({
        let (claimant, watcher) = (claimant.clone(), watcher.clone());
        async move { claimant.claim(&watcher).await }
    });
    eventually("the claim waits", async || {
        let waiting = "SELECT count(*) FROM pg_stat_activity
                       WHERE datname = current_database() AND wait_event_type = 'Lock'";
        database.psql(waiting).expect("it answers") != "0"
    })
    .await;
    transaction.commit().await.expect("the batch was first");
    let new = claiming.await.expect("no panic").expect("it claims");
    assert_eq!(checkpoint(&database), format!("2|{}|8", new.term_id));
    let stale = query().execute(&mut writer).await.expect("it runs");
    assert_eq!(
        stale.rows_affected(),
        0,
        "a batch of the old term changes nothing"
    );
}

#[tokio::test]
async fn a_former_leader_that_was_stopped_inside_a_batch_is_ended() {
    let database = with_checkpoint();
    let session = Session::open(&site(database.url(), "a"))
        .await
        .expect("it opens");
    let (claimant, watcher) = claimant(database.url(), "a", &session);
    let old = crate::support::database(database.url(), "default", "stopped");
    let mut old = old.connect(&Purpose::Write).await.expect("it opens");
    old.execute("SET idle_in_transaction_session_timeout = 0; BEGIN; UPDATE projector.checkpoints SET position = 9")
        .await
        .expect("it holds the row");
    let started = std::time::Instant::now();
    claimant
        .claim(&watcher)
        .await
        .expect("it is claimed in the end");
    let took = started.elapsed();
    assert!(
        took >= Duration::from_secs(3),
        "first it waits in peace: {took:?}"
    );
    assert!(took < Duration::from_secs(7), "the claim took {took:?}");
    assert!(
        old.execute("COMMIT").await.is_err(),
        "the old batch is gone"
    );
    assert!(checkpoint(&database).ends_with("|7"));
}

#[tokio::test]
async fn a_stranger_that_blocks_the_claim_is_named_and_left_alone() {
    let database = with_checkpoint();
    let session = Session::open(&site(database.url(), "a"))
        .await
        .expect("it opens");
    let (claimant, watcher) = claimant(database.url(), "a", &session);
    let stranger = crate::support::database(database.url(), "other-group", "x");
    let mut stranger = stranger.connect(&Purpose::Admin).await.expect("it opens");
    stranger
        .execute("BEGIN; UPDATE projector.checkpoints SET position = 9")
        .await
        .expect("it holds the row");
    match claimant.claim(&watcher).await {
        Err(Error::ClaimBlocked { blockers, .. }) => {
            assert!(blockers.contains("other-group"), "{blockers}");
        }
        other => panic!("{other:?}"),
    }
    stranger.execute("ROLLBACK").await.expect("it still lives");
    claimant.claim(&watcher).await.expect("it is free now");
}
