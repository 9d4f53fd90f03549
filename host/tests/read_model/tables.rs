//! Tables and views of a first generation, and names that belong to somebody else.

use sqlx::Executor as _;

use super::support::{DIGEST, Site, manifest};

#[tokio::test]
async fn a_second_start_finds_what_the_first_one_made() {
    let mut site = Site::new().await;
    let manifest = manifest("order-lines", "things");
    let first = site.ensure(&manifest).await.expect("made");
    assert_eq!(
        (
            first.schema.as_str(),
            first.key.generation,
            first.sha256.as_str()
        ),
        ("order_lines_g1", 1, DIGEST)
    );
    assert_eq!(site.ensure(&manifest).await.expect("found"), first);
    let indexes = site
        .test
        .psql("SELECT count(*) FROM pg_indexes WHERE schemaname = 'order_lines_g1'")
        .expect("asked");
    assert_eq!(indexes.trim(), "3", "the key and two more");
}

#[tokio::test]
async fn taken_names_are_refused_by_name_and_nothing_is_left_behind() {
    let mut site = Site::new().await;
    site.ensure(&manifest("first", "things"))
        .await
        .expect("made");
    let check = |error: String, expected: &[&str]| {
        for part in expected {
            assert!(error.contains(part), "{error:?} should say {part:?}");
        }
    };
    let error = site
        .ensure(&manifest("second", "things"))
        .await
        .expect_err("the table is taken");
    check(
        error.to_string(),
        &["\"second\"", "\"things\"", "\"first\""],
    );
    site.connection
        .execute("CREATE TABLE read_model.mine (a int)")
        .await
        .expect("made");
    let error = site
        .ensure(&manifest("second", "mine"))
        .await
        .expect_err("the view's name is taken");
    check(
        error.to_string(),
        &["read_model.mine", "not this host's view"],
    );
    site.connection
        .execute("CREATE SCHEMA second_g1")
        .await
        .expect("made");
    let error = site
        .ensure(&manifest("second", "others"))
        .await
        .expect_err("the schema is taken");
    check(error.to_string(), &["second_g1", "not this host's"]);
    let left = site
        .test
        .psql("SELECT count(*) FROM projector.generations WHERE projection = 'second'")
        .expect("asked");
    assert_eq!(left.trim(), "0");
}

#[tokio::test]
async fn projections_that_start_together_do_not_meet() {
    let mut sites = vec![Site::new().await];
    for _ in 0..3 {
        let first = &sites[0];
        let connection = first
            .database
            .connect(&projector_host::database::session::Purpose::Write)
            .await
            .expect("connected");
        let (checkpoints, database) = (first.checkpoints.clone(), first.database.clone());
        // Only the first one owns the database; the others borrow it.
        let test = projector_testkit::test_database().expect("a database");
        sites.push(Site {
            test,
            database,
            connection,
            checkpoints,
        });
    }
    let mut starting = tokio::task::JoinSet::new();
    let mut owner = None;
    for (at, mut site) in sites.into_iter().enumerate() {
        if at == 0 {
            owner = Some(site.test);
            site.test = projector_testkit::test_database().expect("a database");
        }
        starting.spawn(async move {
            let made = site
                .ensure(&manifest(&format!("p{at}"), &format!("t{at}")))
                .await;
            made.map_err(|error| error.to_string())
        });
    }
    while let Some(made) = starting.join_next().await {
        made.expect("no panic").expect("made");
    }
    drop(owner);
}
