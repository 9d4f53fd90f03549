//! Migrations: many runners, foreign states, rights, and the texts and exit codes of the command.

use projector_host::commands::migrate::{Action, Place, run};
use projector_host::database::identifier::Identifier;
use projector_host::database::migrate::{self, Error, LOCK_CLASS, Part, Target};
use projector_host::error::Exit;
use tokio::task::JoinSet;

use super::support::{Store, append, database, eventually, execute, identifier, refusal, schema};

fn places(store: &Store) -> Vec<Place> {
    let place = |target| Place {
        database: store.database.clone(),
        target,
    };
    vec![
        place(Target::event_store(schema())),
        place(Target::read_model(identifier("projector"))),
    ]
}

/// Standard output and, when it failed, exit code and text.
async fn command(store: &Store, action: Action, json: bool) -> (String, Option<(Exit, String)>) {
    let mut out = Vec::new();
    let done = run(&action, &places(store), json, &mut out).await;
    let text = String::from_utf8(out).expect("answers are text");
    (text, done.err().map(|f| (f.exit, f.to_string())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_eight_runners_each_migration_is_applied_by_one() {
    let store = Store::empty();
    let mut runners = JoinSet::new();
    for _ in 0..8 {
        let places = places(&store);
        runners.spawn(async move {
            let mut applied = 0;
            for place in places {
                let done = migrate::up(&place.database, &place.target).await;
                applied += done.map_err(|error| error.to_string())?.len();
            }
            Ok::<_, String>(applied)
        });
    }
    let results: Result<Vec<usize>, String> = runners.join_all().await.into_iter().collect();
    let all = Part::EventStore.migrations().len() + Part::ReadModel.migrations().len();
    assert_eq!(results.map(|counts| counts.into_iter().sum()), Ok(all));
    let mut session = store.session().await;
    for place in places(&store) {
        migrate::check(&mut session, &place.target)
            .await
            .expect("all is applied");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_waits_for_the_one_that_is_at_it() {
    let store = Store::empty();
    let mut other = store.session().await;
    let hold =
        format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK_CLASS}, hashtext('shop_events'))");
    execute(&mut other, &hold).await.expect("a lock");
    let (database, target) = (store.database.clone(), Target::event_store(schema()));
    let waiting = tokio::spawn(async move { migrate::up(&database, &target).await });
    eventually("the runner tries the lock", || async {
        store.psql(
            "select count(*) from pg_stat_activity where pid <> pg_backend_pid() \
               and datname = current_database() \
               and (query like 'SELECT pg_try_advisory_xact_lock%' or query = 'ROLLBACK')",
        ) != "0"
    })
    .await;
    assert!(!waiting.is_finished());
    assert_eq!(
        store.psql("select to_regnamespace('shop_events') is null"),
        "t"
    );
    execute(&mut other, "COMMIT").await.expect("a commit");
    let done = waiting.await.expect("it ends").expect("it is its turn");
    assert_eq!(done.len(), 1);
}

#[tokio::test]
async fn the_command_tells_what_is_pending_applies_it_and_finds_nothing_to_do_then() {
    let store = Store::empty();
    let (text, failed) = command(&store, Action::Status { check: false }, false).await;
    assert!(
        text.contains("event store, schema shop_events\n  0001 events       pending\n"),
        "{text}"
    );
    assert_eq!(failed, None);
    let (_, failed) = command(&store, Action::Status { check: true }, false).await;
    let (exit, message) = failed.expect("something is pending");
    let applied = |part: Part, title: &str| -> Vec<String> {
        let all = part.migrations().iter();
        all.map(|one| format!("{title}: applied {:04} {}\n", one.version, one.name))
            .collect()
    };
    let mut lines = applied(Part::EventStore, "event store, schema shop_events");
    lines.extend(applied(Part::ReadModel, "read model, schema projector"));
    let pending = lines.len();
    assert_eq!(
        (exit, message.as_str()),
        (
            Exit::Failed,
            format!("PH0202: {pending} to apply; run `projector-host migrate up`").as_str()
        )
    );

    let (text, failed) = command(&store, Action::Up, false).await;
    assert_eq!(failed, None);
    assert_eq!(text, lines.concat());
    let (text, _) = command(&store, Action::Up, false).await;
    assert_eq!(
        text,
        "event store, schema shop_events: up to date\nread model, schema projector: up to date\n"
    );
    let (text, failed) = command(&store, Action::Status { check: true }, true).await;
    assert_eq!(failed, None);
    let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(json["migrations"][0]["applied"][0]["name"], "events");
    assert_eq!(json["migrations"][1]["pending"], serde_json::json!([]));
}

#[tokio::test]
async fn unmigrated_newer_changed_and_read_only_are_told_apart_and_up_changes_nothing_then() {
    let store = Store::empty();
    let target = Target::event_store(schema());
    let mut session = store.session().await;
    let error = migrate::check(&mut session, &target)
        .await
        .expect_err("it is empty");
    assert_eq!((error.exit(), error.code().0), (Exit::Config, 202));
    assert!(
        error
            .to_string()
            .contains("run `projector-host migrate up`"),
        "{error}"
    );

    execute(&mut session, "SET default_transaction_read_only = on")
        .await
        .expect("a setting");
    migrate::up(&store.database, &target)
        .await
        .expect("the other session may write");
    migrate::check(&mut session, &target)
        .await
        .expect("the host only reads an event store");
    let model = Target::read_model(Identifier::new("elsewhere").expect("a good name"));
    migrate::up(&store.database, &model)
        .await
        .expect("the other session may write");
    let error = migrate::check(&mut session, &model)
        .await
        .expect_err("it is read-only");
    assert_eq!((error.exit(), error.code().0), (Exit::Config, 205));
    execute(&mut session, "SET default_transaction_read_only = off")
        .await
        .expect("a setting");

    store.psql("update shop_events.projector_migrations set checksum = 'x'");
    for (code, change) in [
        (204, "select 1"),
        (
            203,
            "insert into shop_events.projector_migrations (part, version, name, checksum) values ('event_store', 9999, 'later', 'y')",
        ),
    ] {
        store.psql(change);
        let error = migrate::check(&mut session, &target)
            .await
            .expect_err("it does not fit");
        assert_eq!(
            (error.exit(), error.code().0),
            (Exit::Config, code),
            "{error}"
        );
        // The other part is not migrated before the misfit is noticed.
        let (_, failed) = command(&store, Action::Up, false).await;
        assert_eq!(failed.map(|(exit, _)| exit), Some(Exit::Config));
        assert_eq!(
            store.psql("select to_regnamespace('projector') is null"),
            "t"
        );
        let (_, failed) = command(&store, Action::Status { check: false }, false).await;
        assert_eq!(failed.map(|(exit, _)| exit), Some(Exit::Config));
    }
}

#[tokio::test]
async fn a_read_only_database_is_not_migrated() {
    let store = Store::empty();
    let name = store.test.name().to_owned();
    store.psql(&format!(
        "alter database \"{name}\" set default_transaction_read_only = on"
    ));
    let error = migrate::up(&store.database, &Target::event_store(schema())).await;
    assert!(matches!(error, Err(Error::ReadOnly { .. })), "{error:?}");
}

#[tokio::test]
async fn a_schema_that_is_there_needs_no_right_to_create_schemas_and_both_parts_may_share_it() {
    let store = Store::empty();
    let role = format!("owner_{}", store.test.name());
    store.psql(&format!(
        "create role \"{role}\" login; create schema shared authorization \"{role}\""
    ));
    let name = store.test.name();
    store.psql(&format!("alter database \"{name}\" set role = \"{role}\""));
    for target in [
        Target::event_store(identifier("shared")),
        Target::read_model(identifier("shared")),
    ] {
        let done = migrate::up(&store.database, &target).await;
        let all = target.part.migrations().len();
        assert_eq!(done.expect("the schema is its own").len(), all);
    }
    let denied = migrate::up(&store.database, &Target::event_store(schema())).await;
    let error = denied.expect_err("the role may not create schemas");
    assert_eq!(
        (error.exit(), error.code().0),
        (Exit::Config, 208),
        "{error}"
    );
    store.psql(&format!("set role none; alter database \"{name}\" reset role; drop owned by \"{role}\"; drop role \"{role}\""));
}

#[tokio::test]
async fn the_printed_sql_does_what_up_does() {
    let store = Store::empty();
    let (text, failed) = command(&store, Action::Sql { part: None }, false).await;
    assert_eq!(failed, None);
    store.psql(&text);
    let mut session = store.session().await;
    for place in places(&store) {
        migrate::check(&mut session, &place.target)
            .await
            .expect("all is applied");
    }
}

#[tokio::test]
async fn a_database_that_cannot_be_reached_or_is_missing_is_unavailable() {
    let store = Store::empty();
    let missing = store
        .test
        .url()
        .replace(store.test.name(), "no_such_database");
    for url in ["postgres://127.0.0.1:1/x", missing.as_str()] {
        let error = migrate::up(&database(url), &Target::event_store(schema())).await;
        let error = error.expect_err("there is no database");
        assert_eq!(
            (error.exit(), error.code().0),
            (Exit::Unavailable, 201),
            "{error}"
        );
    }
}

#[tokio::test]
async fn where_not_everybody_may_call_functions_migrate_says_so_and_append_names_what_is_missing() {
    let store = Store::empty();
    let role = format!("appender_{}", store.test.name());
    store.psql("alter default privileges revoke execute on functions from public");
    let (text, failed) = command(&store, Action::Up, false).await;
    assert_eq!(failed, None);
    assert!(
        text.contains("GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA \"shop_events\" TO"),
        "{text}"
    );
    store.psql("alter default privileges grant execute on functions to public");
    store.psql(&format!(
        "create role \"{role}\" login; grant usage on schema shop_events to \"{role}\"; \
         grant insert, select on shop_events.events to \"{role}\""
    ));
    let mut session = store.session().await;
    let name = format!("SET ROLE \"{role}\"");
    execute(&mut session, &name).await.expect("a superuser may");
    let (state, message) =
        refusal(append(&mut session, "a", None, r#"[{"type":"T","data":1}]"#).await);
    assert_eq!(state, "42501", "{message}");
    store.psql(&format!(
        "grant execute on all functions in schema shop_events to \"{role}\""
    ));
    let done = append(&mut session, "a", None, r#"[{"type":"T","data":1}]"#).await;
    assert_eq!(done.expect("that is all that was missing").2, 1);
    execute(&mut session, "RESET ROLE").await.expect("it may");
    store.psql(&format!("drop owned by \"{role}\"; drop role \"{role}\""));
}
