//! A generation that gets another plugin: it goes on or begins anew, in one transaction of the leader.

use projector_host::plugin::Folder;
use projector_host::read_model::components;
use projector_host::read_model::folders::{self, Word};
use projector_host::read_model::schema::{self, Filler};
use sqlx::Executor as _;

use super::support::{DIGEST, Site, manifest, name};

const NEXT: &str = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff";

const INDEXES: &str = "SELECT string_agg(regexp_replace(indexdef, '.* USING btree ', ''), ' ' ORDER BY indexname) \
                       FROM pg_indexes WHERE schemaname = 'mirror_g1'";

#[tokio::test]
async fn a_plugin_that_goes_on_is_recorded_with_its_file_and_its_indexes() {
    let mut site = Site::new().await;
    let mut manifest = manifest("mirror", "things");
    let first = site.ensure(&manifest).await.expect("made");
    let psql = |site: &Site, sql: &str| site.test.psql(sql).expect("asked").trim().to_owned();
    psql(&site, "CREATE INDEX theirs ON mirror_g1.things (data)");
    manifest.version = "2.0.0".to_owned();
    manifest.tables[0].indexes = vec![vec![8], vec![7, 0]];
    let filler = Filler {
        manifest: &manifest,
        sha256: NEXT,
        bytes: b"next",
    };
    let next = schema::go_on(
        &mut site.connection,
        &site.checkpoints,
        &first,
        filler,
        "test",
    )
    .await
    .expect("goes on");
    assert_eq!(next.former, [DIGEST]);
    assert_eq!(
        psql(&site, INDEXES),
        "(data) (day) (at, merchant) (merchant, number)",
        "theirs stays, one went, one came, one stayed"
    );
    let found = schema::live(&mut site.connection, &name("projector"), "mirror").await;
    assert_eq!(found.expect("asked").as_ref(), Some(&next));
    let kept = components::get(&mut site.connection, &name("projector"), NEXT).await;
    assert_eq!(
        kept.expect("asked"),
        None,
        "bytes of another digest are nobody's file"
    );
    // And back: what was replaced last stands last.
    let filler = Filler {
        sha256: DIGEST,
        ..filler
    };
    let back = schema::go_on(
        &mut site.connection,
        &site.checkpoints,
        &next,
        filler,
        "test",
    )
    .await;
    assert_eq!(back.expect("goes on").former, [NEXT]);
}

#[tokio::test]
async fn a_stale_leader_changes_no_plugin_and_empties_nothing() {
    let mut site = Site::new().await;
    let manifest = manifest("mirror", "things");
    let first = site.ensure(&manifest).await.expect("made");
    let row =
        "INSERT INTO mirror_g1.things (merchant, number, label) VALUES (gen_random_uuid(), 1, '')";
    site.connection.execute(row).await.expect("a row");
    let claim =
        "UPDATE projector.leadership SET term = 2; UPDATE projector.checkpoints SET term = 2";
    site.test.psql(claim).expect("claimed");
    let filler = Filler {
        manifest: &manifest,
        sha256: NEXT,
        bytes: b"next",
    };
    let (checkpoints, readers) = (&site.checkpoints, name("read_model"));
    let goes = schema::go_on(&mut site.connection, checkpoints, &first, filler, "test").await;
    assert_eq!(goes.expect_err("fenced").to_string(), "the term is over");
    let anew = schema::begin_anew(
        &mut site.connection,
        checkpoints,
        &readers,
        &first,
        filler,
        "test",
    )
    .await;
    assert_eq!(anew.expect_err("fenced").to_string(), "the term is over");
    let told = "SELECT (SELECT count(*) FROM mirror_g1.things), (SELECT count(*) FROM projector.audit), \
                (SELECT sha256 FROM projector.generations)";
    assert_eq!(
        site.test.psql(told).expect("asked").trim(),
        format!("1|0|{DIGEST}")
    );
}

fn word(node: &str, dir: &str, projections: serde_json::Value) -> Word {
    Word {
        folder: Folder {
            host: "h".to_owned(),
            dir: dir.to_owned(),
        },
        node: node.to_owned(),
        projections,
        refused: serde_json::json!([]),
    }
}

async fn tell(site: &mut Site, word: &Word) {
    let told = folders::tell(&mut site.connection, &name("projector"), word).await;
    told.expect("told");
}

async fn nodes(site: &mut Site) -> Vec<String> {
    let listed = folders::list(&mut site.connection, &name("projector")).await;
    let words = listed.expect("asked").into_iter();
    words.map(|word| word.node).collect()
}

#[tokio::test]
async fn every_replica_speaks_for_itself_and_words_of_crashed_ones_go() {
    let mut site = Site::new().await;
    let has = serde_json::json!({ "mirror": DIGEST });
    let one = word("one", "/shared", has.clone());
    tell(&mut site, &one).await;
    tell(&mut site, &word("two", "/shared", serde_json::json!({}))).await;
    tell(&mut site, &word("far", "/far", has)).await;
    tell(&mut site, &one).await;
    assert_eq!(nodes(&mut site).await, ["far", "one", "two"]);
    let own = word("three", "/own", serde_json::json!({}));
    let control = name("projector");
    let forgotten = word("far", "/far", serde_json::json!({}));
    folders::forget(&mut site.connection, &control, &forgotten.folder, "far")
        .await
        .expect("forgotten");
    let holder = folders::holder(&mut site.connection, &control, "mirror", &own.folder).await;
    assert_eq!(holder.expect("asked").as_deref(), Some("one on h"));
    // Whoever runs tells each hour; where another one speaks for the same folder, a silent word goes soon.
    let age = |node: &str, hours: u32| {
        format!(
            "UPDATE projector.folders SET seen_at = seen_at - interval '{hours} hours' WHERE node = '{node}'"
        )
    };
    tell(&mut site, &own).await;
    for (node, hours) in [("two", 4), ("three", 4)] {
        site.test.psql(&age(node, hours)).expect("aged");
    }
    tell(&mut site, &one).await;
    assert_eq!(nodes(&mut site).await, ["one", "three"]);
    site.test.psql(&age("three", 21)).expect("aged");
    tell(&mut site, &one).await;
    let rows = "SELECT string_agg(node, ' ') FROM projector.folders";
    assert_eq!(site.test.psql(rows).expect("asked").trim(), "one");
}
