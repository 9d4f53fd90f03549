//! The fence: who may move a checkpoint, and who may not.

use projector_host::event_store::event::{Anchor, Position};
use projector_host::read_model::checkpoint::{Checkpoints, Failure, Missed, Step};
use projector_host::read_model::control::Control;
use sqlx::Executor as _;

use super::support::{Site, fence, manifest, name};

fn step(from: i64, to: i64, revision: i64) -> Step {
    Step {
        from: Position(from),
        to: Position(to),
        last_event: Some(Anchor {
            position: Position(to),
            id: "id".to_owned(),
        }),
        revision,
    }
}

#[tokio::test]
async fn only_the_term_that_stands_in_the_row_moves_it_and_only_from_where_it_stands() {
    let mut site = Site::new().await;
    let key = site
        .ensure(&manifest("mirror", "things"))
        .await
        .expect("tables")
        .key;
    let (checkpoints, connection) = (site.checkpoints.clone(), &mut site.connection);
    assert!(
        checkpoints
            .advance(connection, &key, &step(0, 7, 0))
            .await
            .expect("asked")
    );
    assert!(
        !checkpoints
            .advance(connection, &key, &step(0, 7, 0))
            .await
            .expect("asked"),
        "twice"
    );
    assert_eq!(
        checkpoints.missed(connection, &key).await.expect("asked"),
        Missed::Changed
    );
    assert!(
        !checkpoints
            .advance(connection, &key, &step(7, 8, 1))
            .await
            .expect("asked"),
        "another revision"
    );
    // A new leader claims; the old one's position even matches.
    connection
        .execute(
            "UPDATE projector.leadership SET term = 2; UPDATE projector.checkpoints SET term = 2",
        )
        .await
        .expect("claimed");
    assert!(
        !checkpoints
            .advance(connection, &key, &step(7, 8, 0))
            .await
            .expect("asked"),
        "a stale term"
    );
    assert_eq!(
        checkpoints.missed(connection, &key).await.expect("asked"),
        Missed::Fenced
    );
    assert!(!checkpoints.hold_term(connection).await.expect("asked"));
    let newer = Checkpoints::new(name("projector"), fence(2));
    assert!(newer.hold_term(connection).await.expect("asked"));
    assert!(
        newer
            .advance(connection, &key, &step(7, 8, 0))
            .await
            .expect("asked")
    );
    let row = newer
        .load(connection, &key)
        .await
        .expect("asked")
        .expect("a row");
    assert_eq!(
        (row.position, row.last_event),
        (Position(8), step(7, 8, 0).last_event)
    );
}

#[tokio::test]
async fn a_stale_leader_creates_nothing() {
    let mut site = Site::new().await;
    site.connection
        .execute("UPDATE projector.leadership SET term = 2")
        .await
        .expect("claimed");
    let refused = site
        .ensure(&manifest("mirror", "things"))
        .await
        .expect_err("fenced");
    assert_eq!(refused.to_string(), "the term is over");
    assert_eq!(
        site.test
            .psql("SELECT count(*) FROM pg_namespace WHERE nspname = 'mirror_g1'")
            .expect("asked")
            .trim(),
        "0"
    );
}

#[tokio::test]
async fn pause_failure_and_resume_are_seen_by_a_batch_that_was_made_before() {
    let mut site = Site::new().await;
    let key = site
        .ensure(&manifest("mirror", "things"))
        .await
        .expect("tables")
        .key;
    let (checkpoints, connection) = (site.checkpoints.clone(), &mut site.connection);
    let control = Control::new(name("projector"));
    assert!(
        control
            .pause(connection, "mirror", Some("deploy"), "me")
            .await
            .expect("asked")
    );
    assert!(
        !control
            .pause(connection, "mirror", None, "me")
            .await
            .expect("asked"),
        "idempotent"
    );
    assert!(
        !checkpoints
            .advance(connection, &key, &step(0, 1, 0))
            .await
            .expect("asked")
    );
    assert!(
        control
            .resume(connection, "mirror", None, "me")
            .await
            .expect("asked")
    );
    assert!(
        !control
            .resume(connection, "mirror", None, "me")
            .await
            .expect("asked"),
        "idempotent"
    );
    assert!(
        !checkpoints
            .advance(connection, &key, &step(0, 1, 0))
            .await
            .expect("asked"),
        "made before the pause"
    );
    let revision = checkpoints
        .load(connection, &key)
        .await
        .expect("asked")
        .expect("a row")
        .revision;
    let failure = Failure {
        category: "rejected",
        position: Some(Position(1)),
        event_type: Some("T"),
        event_id: Some("id"),
        message: "no",
        ..Failure::default()
    };
    assert!(
        checkpoints
            .fail(connection, &key, revision, &failure)
            .await
            .expect("asked")
    );
    assert!(
        !checkpoints
            .advance(connection, &key, &step(0, 1, revision))
            .await
            .expect("asked"),
        "stopped"
    );
    let listed = control.list(connection).await.expect("listed");
    assert_eq!(listed[0].state, "stopped");
    assert_eq!(
        listed[0].failure.as_ref().map(|failure| failure.position),
        Some(Some(1))
    );
    assert!(
        control
            .resume(connection, "mirror", None, "me")
            .await
            .expect("asked")
    );
    assert!(
        checkpoints
            .advance(connection, &key, &step(0, 1, revision + 1))
            .await
            .expect("asked")
    );
    let audit = site
        .test
        .psql("SELECT action, detail FROM projector.audit ORDER BY id")
        .expect("asked");
    assert_eq!(audit.lines().count(), 3, "{audit}");
}
