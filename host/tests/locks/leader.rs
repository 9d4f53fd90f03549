//! `leader show` and `leader resign` against a replica.

use std::process::{Command, Stdio};
use std::sync::Arc;

use projector_host::advisory_lock::Key;
use projector_host::database::identifier::Identifier;
use projector_host::database::session::Database;
use projector_host::leadership::clock::BootClock;
use projector_host::leadership::role::Timing;
use projector_host::leadership::{Handle, Load, Options, Role, spawn};
use projector_host::telemetry::metrics::LeaderMetrics;
use projector_testkit::TestDatabase;
use tokio_util::sync::CancellationToken;

use crate::support::*;

const CONTROL_SQL: &str = include_str!("../../../migrations/read_model/0001_control.sql");

fn replica(test: &TestDatabase, node: &str, shutdown: &CancellationToken) -> Handle {
    let database = |name| Database::new(name, test.url().to_owned().into(), "default", node);
    let options = Options {
        group: "default".to_owned(),
        node: node.to_owned(),
        host: format!("host-of-{node}"),
        key: Key::Single(0x5049_434F_4351_5253),
        projection: None,
        load: Load::default(),
        lock_database: database("event store"),
        read_model: database("read model"),
        control_schema: Identifier::new("projector").expect("fine"),
        timing: Timing::default(),
        denied_limit: PATIENCE,
        metrics: LeaderMetrics::default(),
    };
    let (handle, _thread) =
        spawn(options, shutdown.clone(), Arc::new(BootClock)).expect("the options are fine");
    let (mut role, word) = (handle.role(), handle.clone());
    tokio::spawn(async move {
        while role.changed().await.is_ok() {
            if let Role::Draining { term, .. } = *role.borrow_and_update() {
                word.drained(term);
            }
        }
    });
    handle
}

fn leader(test: &TestDatabase, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_projector-host"));
    command
        .args(["--config", "/dev/null", "leader"])
        .args(arguments)
        .env("DATABASE_URL", test.url())
        .env("ES_DATABASE_URL", test.url())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

async fn run(command: Command) -> std::process::Output {
    tokio::task::spawn_blocking(|| finished(command))
        .await
        .expect("no panic")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_is_shown_and_hands_over_when_asked() {
    let test = fresh();
    test.psql(&format!(
        "CREATE SCHEMA projector; {}",
        CONTROL_SQL.replace("{control}", "projector")
    ))
    .expect("created");
    let output = run(leader(&test, &["show", "-o", "json"])).await;
    assert_eq!(
        text(&output.stdout),
        r#"{"leader":null}"#,
        "{}",
        text(&output.stderr)
    );
    let output = run(leader(&test, &["resign"])).await;
    assert_eq!(output.status.code(), Some(75));

    let shutdown = CancellationToken::new();
    let first = replica(&test, "first", &shutdown);
    let leads = async |handle: &Handle| {
        let mut role = handle.role();
        let leading = role.wait_for(|role| role.leadership().is_some());
        let leading = tokio::time::timeout(PATIENCE, leading)
            .await
            .expect("in time");
        leading
            .expect("it runs")
            .leadership()
            .cloned()
            .expect("it leads")
    };
    let old = leads(&first).await;
    let second = replica(&test, "second", &shutdown);
    let output = run(leader(&test, &["show", "-o", "json"])).await;
    let shown: serde_json::Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    let shown = &shown["leader"];
    assert_eq!(shown["node"], "first");
    assert_eq!(shown["host"], "host-of-first");
    assert_eq!(shown["backend_pid"], old.backend_pid);
    assert_eq!(shown["group"], "default");
    assert_eq!(shown["term"], old.term.0);
    assert!(
        shown["since"]
            .as_str()
            .is_some_and(|since| since.ends_with('Z'))
    );

    let output = run(leader(&test, &["resign"])).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer = text(&output.stdout);
    assert!(answer.contains("node second leads"), "{answer}");
    assert!(leads(&second).await.term > old.term);
    let audit = test.psql("SELECT action, detail->>'node' FROM projector.audit");
    assert_eq!(audit.expect("it answers"), "resign|first");

    shutdown.cancel();
    first.stopped().await;
    second.stopped().await;
    assert_eq!(held(&test), "0");
}
