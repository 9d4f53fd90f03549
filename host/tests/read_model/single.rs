//! A small batch as one statement: the fence comes first, and all of it is committed or nothing.

use std::time::{Duration, Instant};

use projector_host::guest::bindings::{Change, Value, Write};
use projector_host::read_model::check::Shapes;
use projector_host::read_model::fold::Known;
use sqlx::Executor as _;

use super::support::{Site, cell, key, manifest, step, text, write};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// A row of each of the ways in which a row can be written.
fn one_of_each() -> (Vec<Write>, Vec<(i64, bool)>) {
    let label = |label| vec![cell("label", text(label))];
    let writes = vec![
        write(0, 1, Change::Put(label("put"))),
        write(0, 2, Change::Merge(label("merged"))),
        write(0, 3, Change::Patch(label("patched"))),
        write(0, 4, Change::Remove),
        write(0, 5, Change::Insert(label("new"))),
        write(0, 6, Change::Merge(label("known to be there"))),
        write(0, 7, Change::Merge(label("known to be absent"))),
    ];
    (writes, vec![(6, true), (7, false)])
}

fn known(shapes: &Shapes, rows: &[(i64, bool)]) -> Known {
    let mut known = Known::default();
    for &(number, present) in rows {
        let (table, key) = key(shapes, number);
        known.insert(table, key, present);
    }
    known
}

/// Commits writes after these look-ups; none when they are left to a transaction.
async fn commit(
    site: &mut Site,
    shapes: &Shapes,
    (from, to): (i64, i64),
    writes: Vec<Write>,
    found: &[(i64, bool)],
) -> Option<Result<bool, String>> {
    let known = known(shapes, found);
    site.at_once(shapes, "mirror_g1", &step(from, to), writes, &known)
        .await
}

/// A table with rows 1, 3, 4 and 6.
async fn site() -> (Site, Shapes) {
    let mut site = Site::new().await;
    let manifest = manifest("mirror", "things");
    site.ensure(&manifest).await.expect("tables");
    let shapes = Shapes::new(&manifest.tables).expect("good defaults");
    let rows =
        [1, 3, 4, 6].map(|number| write(0, number, Change::Put(vec![cell("label", text("old"))])));
    let done = commit(&mut site, &shapes, (0, 10), rows.to_vec(), &[]).await;
    assert_eq!(done, Some(Ok(true)));
    (site, shapes)
}

fn labels(site: &Site) -> String {
    site.test
        .psql(
            "SELECT string_agg(number || ' ' || label, ', ' ORDER BY number) FROM mirror_g1.things",
        )
        .expect("rows")
}

fn checkpoint(site: &Site) -> String {
    site.test
        .psql("SELECT position FROM projector.checkpoints")
        .expect("a checkpoint")
}

const OLD: &str = "1 old, 3 old, 4 old, 6 old";

#[tokio::test]
async fn every_kind_of_write_is_done_with_the_checkpoint() {
    let (mut site, shapes) = site().await;
    let (writes, found) = one_of_each();
    let done = commit(&mut site, &shapes, (10, 20), writes, &found).await;
    assert_eq!(done, Some(Ok(true)));
    assert_eq!(
        labels(&site),
        "1 put, 2 merged, 3 patched, 5 new, 6 known to be there, 7 known to be absent"
    );
    assert_eq!(checkpoint(&site), "20");
}

#[tokio::test]
async fn nothing_is_done_where_the_checkpoint_does_not_stand() {
    let (mut site, shapes) = site().await;
    let (writes, found) = one_of_each();
    let elsewhere = commit(&mut site, &shapes, (9, 20), writes.clone(), &found).await;
    assert_eq!(elsewhere, Some(Ok(false)));
    site.connection
        .execute("UPDATE projector.checkpoints SET term = 2")
        .await
        .expect("claimed");
    let stale = commit(&mut site, &shapes, (10, 20), writes, &found).await;
    assert_eq!(stale, Some(Ok(false)));
    assert_eq!(
        (labels(&site).as_str(), checkpoint(&site).as_str()),
        (OLD, "10")
    );
}

#[tokio::test]
async fn a_leader_that_is_replaced_while_its_statement_waits_does_nothing() {
    let (mut site, shapes) = site().await;
    assert!(
        !behind(
            &mut site,
            &shapes,
            "UPDATE projector.checkpoints SET term = 2"
        )
        .await
    );
    assert_eq!(
        (labels(&site).as_str(), checkpoint(&site).as_str()),
        (OLD, "10")
    );
}

/// As a retried letter does that neither moves the checkpoint nor is a command.
#[tokio::test]
async fn rows_that_change_while_the_statement_waits_are_not_passed_over() {
    let (mut site, shapes) = site().await;
    let touched = "UPDATE projector.checkpoints SET updated_at = clock_timestamp(); \
                   UPDATE mirror_g1.things SET label = 'theirs' WHERE number = 1";
    assert!(!behind(&mut site, &shapes, touched).await);
    let theirs = OLD.replacen("old", "theirs", 1);
    assert_eq!(
        (labels(&site).as_str(), checkpoint(&site).as_str()),
        (theirs.as_str(), "10")
    );
}

/// Whether a small batch is committed whose statement had to wait until this was committed.
async fn behind(site: &mut Site, shapes: &Shapes, first: &str) -> bool {
    let (writes, found) = one_of_each();
    let known = known(shapes, &found);
    let purpose = projector_host::database::session::Purpose::Write;
    let mut other = site.database.connect(&purpose).await.expect("connected");
    let begin = format!("BEGIN; {first}");
    other
        .execute(sqlx::AssertSqlSafe(begin))
        .await
        .expect("begun");
    let single = site
        .single(shapes, "mirror_g1", &step(10, 20), writes, &known)
        .expect("a small batch");
    let statement = single.commit(&mut site.connection);
    let end = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let begun = Instant::now();
        while site.test.psql(waiting).expect("asked") != "1" {
            assert!(begun.elapsed() < PATIENCE, "the statement does not wait");
            tokio::task::yield_now().await;
        }
        other.execute("COMMIT").await.expect("committed");
    };
    let (stood, ()) = tokio::join!(statement, end);
    stood.expect("answered")
}

#[tokio::test]
async fn rows_that_are_not_as_they_were_looked_up_undo_all_of_it() {
    let (mut site, shapes) = site().await;
    let (writes, _) = one_of_each();
    for wrong in [(1, false), (2, true), (6, false)] {
        let done = commit(&mut site, &shapes, (10, 20), writes.clone(), &[wrong]).await;
        let Some(Err(_)) = done else {
            panic!("{wrong:?}: {done:?}");
        };
        assert_eq!(
            (labels(&site).as_str(), checkpoint(&site).as_str()),
            (OLD, "10")
        );
    }
}

#[tokio::test]
async fn a_write_that_the_database_refuses_undoes_all_of_it() {
    let (mut site, shapes) = site().await;
    site.connection
        .execute("ALTER TABLE mirror_g1.things ADD CHECK (label <> 'merged')")
        .await
        .expect("altered");
    let (writes, found) = one_of_each();
    let done = commit(&mut site, &shapes, (10, 20), writes, &found).await;
    assert!(matches!(done, Some(Err(_))), "{done:?}");
    assert_eq!(
        (labels(&site).as_str(), checkpoint(&site).as_str()),
        (OLD, "10")
    );
}

#[tokio::test]
async fn what_depends_on_its_order_or_is_large_is_left_to_a_transaction() {
    let (mut site, shapes) = site().await;
    let put = |number| write(0, number, Change::Put(vec![cell("label", text("l"))]));
    let remove = write(0, 1, Change::RemoveWhere(vec![cell("done", Value::Null)]));
    let large = (100..109).map(put).collect();
    for writes in [vec![remove.clone()], vec![remove, put(1)], large] {
        let done = commit(&mut site, &shapes, (10, 20), writes, &[]).await;
        assert_eq!(done, None);
    }
    assert_eq!(labels(&site), OLD);
}
