//! What the function `append` does and refuses, one caller at a time.

use super::support::{Store, append, execute, refusal};

const ID_1: &str = "9ad91b6c-34b0-4fc3-8bbb-0d6d1d32e001";
const ID_2: &str = "9ad91b6c-34b0-4fc3-8bbb-0d6d1d32e002";

fn with_ids(ids: &[&str]) -> String {
    let events: Vec<String> = ids
        .iter()
        .map(|id| format!(r#"{{"type":"T","data":1,"id":"{id}"}}"#))
        .collect();
    format!("[{}]", events.join(","))
}

#[tokio::test]
async fn versions_count_per_stream_and_a_wrong_expectation_is_refused_with_both_versions() {
    let store = Store::new().await;
    let mut session = store.session().await;
    let two =
        r#"[{"type":"T","data":1},{"type":"T","data":2,"schema_version":3,"metadata":{"a":1}}]"#;
    let first = append(&mut session, "a", Some(0), two).await;
    assert_eq!(first.expect("a new stream"), (1, 2, 2));
    let other = append(&mut session, "b", None, two).await;
    assert_eq!(other.expect("any version"), (3, 4, 2));
    let next = append(&mut session, "a", Some(2), r#"[{"type":"T","data":3}]"#).await;
    assert_eq!(next.expect("the right version"), (5, 5, 3));

    let (sqlstate, text) = refusal(append(&mut session, "a", Some(2), two).await);
    assert_eq!(sqlstate, "40001");
    assert!(
        text.contains(r#"the stream "a" is at version 3, not at the expected version 2"#),
        "{text}"
    );
    assert_eq!(
        refusal(append(&mut session, "a", Some(0), two).await).0,
        "40001"
    );
    assert_eq!(store.versions(), "a|1,2,3\nb|1,2");
    assert_eq!(
        store.psql("select data, schema_version, metadata from shop_events.events where position in (1, 2) order by position"),
        "1|1|{}\n2|3|{\"a\": 1}"
    );
}

#[tokio::test]
async fn the_same_events_again_give_the_first_positions_and_a_mixture_is_refused() {
    let store = Store::new().await;
    let mut session = store.session().await;
    let both = with_ids(&[ID_1, ID_2]);
    let first = append(&mut session, "a", Some(0), &both)
        .await
        .expect("new");
    append(&mut session, "a", Some(2), r#"[{"type":"T","data":1}]"#)
        .await
        .expect("new");
    let again = append(&mut session, "a", Some(0), &both)
        .await
        .expect("known");
    assert_eq!((first, again), ((1, 2, 2), (1, 2, 2)));

    let new = "9ad91b6c-34b0-4fc3-8bbb-0d6d1d32e003";
    let (sqlstate, text) = refusal(append(&mut session, "a", None, &with_ids(&[ID_2, new])).await);
    assert_eq!(sqlstate, "23505");
    assert!(
        text.contains(r#"1 of the 2 events already stand in the stream "a""#),
        "{text}"
    );
    let (sqlstate, text) = refusal(append(&mut session, "b", None, &with_ids(&[ID_1])).await);
    assert_eq!(sqlstate, "23505");
    assert!(
        text.contains(ID_1) && text.contains(r#"the stream "a""#),
        "{text}"
    );
    let (sqlstate, _) = refusal(append(&mut session, "b", None, &with_ids(&[new, new])).await);
    assert_eq!(sqlstate, "22023");
    assert_eq!(store.versions(), "a|1,2,3");
}

#[tokio::test]
async fn wrong_events_are_told_with_their_place_and_nothing_is_written() {
    let store = Store::new().await;
    let mut session = store.session().await;
    for (events, expected) in [
        ("[]", "empty array"),
        ("{}", "no JSON array"),
        ("[1]", "event 1: is no JSON object"),
        (
            r#"[{"type":"T","data":1},{"data":1}]"#,
            r#"event 2: has no text in "type""#,
        ),
        (
            r#"[{"type":"","data":1}]"#,
            r#"event 1: has a "type" that is empty"#,
        ),
        (r#"[{"type":"T"}]"#, r#"event 1: has no "data""#),
        (
            r#"[{"type":"T","dat":1}]"#,
            r#"event 1: has the unknown key "dat""#,
        ),
        (
            r#"[{"type":"T","data":1,"metadata":[]}]"#,
            r#""metadata" that is no JSON object"#,
        ),
        (
            r#"[{"type":"T","data":1,"id":"x"}]"#,
            r#""id" that is no UUID"#,
        ),
        (
            r#"[{"type":"T","data":1,"id":7}]"#,
            r#""id" that is no UUID"#,
        ),
        (
            r#"[{"type":"T","data":1,"schema_version":0}]"#,
            r#"a "schema_version" that is no whole number"#,
        ),
        (
            r#"[{"type":"T","data":1,"schema_version":1.5}]"#,
            r#"a "schema_version" that is no whole number"#,
        ),
        (
            r#"[{"type":"T","data":1,"schema_version":"1"}]"#,
            r#"a "schema_version" that is no number"#,
        ),
        (
            r#"[{"type":"T","data":1,"stream":"b"}]"#,
            "are arguments of append",
        ),
    ] {
        let (sqlstate, text) = refusal(append(&mut session, "a", None, events).await);
        assert_eq!(sqlstate, "22023", "{events}: {text}");
        assert!(text.contains(expected), "{events}: {text}");
    }
    let one = r#"[{"type":"T","data":1}]"#;
    assert_eq!(
        refusal(append(&mut session, "", None, one).await).0,
        "22023"
    );
    assert_eq!(
        refusal(append(&mut session, "a", Some(-1), one).await).0,
        "22023"
    );
    assert_eq!(store.versions(), "");
}

#[tokio::test]
async fn the_table_is_append_only() {
    let store = Store::new().await;
    let mut session = store.session().await;
    append(&mut session, "a", None, r#"[{"type":"T","data":1}]"#)
        .await
        .expect("new");
    for change in [
        "UPDATE shop_events.events SET data = '2'",
        "UPDATE shop_events.events SET data = '2' WHERE false",
        "DELETE FROM shop_events.events",
        "TRUNCATE shop_events.events",
    ] {
        let (sqlstate, text) = refusal(execute(&mut session, change).await);
        assert_eq!(sqlstate, "55000", "{change}");
        assert!(text.contains("events are append only"), "{text}");
    }
    assert_eq!(store.psql("select data from shop_events.events"), "1");
}

#[tokio::test]
async fn a_role_with_insert_and_select_can_append_and_nothing_else() {
    let store = Store::new().await;
    let mut session = store.session().await;
    let role = format!("writer_{}", store.test.name());
    let role = format!("\"{role}\"");
    execute(
        &mut session,
        &format!(
            "CREATE ROLE {role}; GRANT USAGE ON SCHEMA shop_events TO {role}; \
             GRANT INSERT, SELECT ON shop_events.events TO {role}; SET ROLE {role}"
        ),
    )
    .await
    .expect("a superuser may");
    let done = append(&mut session, "a", Some(0), r#"[{"type":"T","data":1}]"#).await;
    assert_eq!(done.expect("rights suffice"), (1, 1, 1));
    let batch = execute(
        &mut session,
        r#"SELECT * FROM shop_events.append_batch('[{"stream":"a","type":"T","data":1}]')"#,
    );
    batch.await.expect("rights suffice");
    let update = execute(&mut session, "DELETE FROM shop_events.events").await;
    assert_eq!(refusal(update).0, "42501");
    execute(
        &mut session,
        &format!("RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}"),
    )
    .await
    .expect("a superuser may");
}

#[tokio::test]
async fn a_foreign_search_path_changes_nothing() {
    let store = Store::new().await;
    let mut session = store.session().await;
    let trap = "CREATE SCHEMA trap; \
        CREATE FUNCTION trap.jsonb_array_length(jsonb) RETURNS integer LANGUAGE sql AS 'SELECT 0'; \
        CREATE FUNCTION trap.jsonb_typeof(jsonb) RETURNS text LANGUAGE sql AS $$SELECT 'trapped'$$; \
        SET search_path = trap, pg_catalog";
    execute(&mut session, trap).await.expect("a superuser may");
    let done = append(&mut session, "a", Some(0), r#"[{"type":"T","data":1}]"#).await;
    assert_eq!(done.expect("the path of the functions is fixed"), (1, 1, 1));
}
