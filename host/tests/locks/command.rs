//! `locks key` and `locks list` as a script sees them.

use std::process::{Command, Stdio};

use crate::support::*;

#[test]
fn a_key_needs_no_configuration_and_is_printed_alone() {
    let key = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_projector-host"));
        command.args(["locks", "key"]).args(arguments);
        let output = finished(command);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(key(&["nightly-invoices"]), "-2656678946205210572");
    assert_eq!(
        key(&["nightly-report", "--namespace", "billing"]),
        "1229024805155964307"
    );
    let json: serde_json::Value =
        serde_json::from_str(&key(&["nightly-invoices", "-o", "json"])).expect("JSON");
    assert_eq!(json["key"].as_i64(), Some(-2656678946205210572));
    assert_eq!(json["key_text"], "-2656678946205210572");
    assert_eq!(json["slot_class"], -618556270);
}

#[test]
fn the_list_is_a_table_for_people_and_json_for_scripts() {
    let test = fresh();
    let mark = Mark::new();
    let touch = format!("echo up > {}; exec sleep 300", mark.path("up").display());
    let holder = Background::start(locks(&test, &["run", "report", "--", "sh", "-c", &touch]));
    eventually("it holds", || mark.read("up").is_some());
    let output = finished(locks(&test, &["list"]));
    let table = text(&output.stdout);
    assert!(table.starts_with("KEY"), "{table}");
    let output = finished(locks(&test, &["list", "-o", "json"]));
    let answer: serde_json::Value = serde_json::from_str(&text(&output.stdout)).expect("JSON");
    let all = answer["locks"].as_array().expect("a list");
    assert_eq!(all.len(), 1, "{answer}");
    let key = all[0]["key"].as_str().expect("text");
    assert!(table.contains(key), "{table}");
    assert_eq!(all[0]["granted"], true);
    assert_eq!(
        all[0]["idle_and_holding"], false,
        "it proves its lock every second"
    );
    assert_eq!(answer["hidden"], 0);
    drop(holder);
}

#[test]
fn a_reader_that_goes_away_is_no_failure_and_a_missing_database_is_69() {
    let test = fresh();
    let mut command = locks(&test, &["list", "-o", "json"]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    command.stdout(writer).stderr(Stdio::piped());
    let output = finished(command);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));

    let mut command = locks(&test, &["list"]);
    command.env(
        "LOCK_URL",
        test.url().replace(test.name(), "no_such_database"),
    );
    assert_eq!(finished(command).status.code(), Some(69));
    let mut command = locks(&test, &["list"]);
    command.env_remove("LOCK_URL");
    assert_eq!(finished(command).status.code(), Some(2));
}

#[test]
fn a_role_that_may_not_see_details_is_told_what_is_hidden() {
    let test = fresh();
    let role = format!("onlooker_{}", test.name());
    test.psql(&format!("CREATE ROLE {role} LOGIN"))
        .expect("created");
    let mark = Mark::new();
    let touch = format!("echo up > {}; exec sleep 300", mark.path("up").display());
    let holder = Background::start(locks(&test, &["run", "report", "--", "sh", "-c", &touch]));
    eventually("it holds", || mark.read("up").is_some());
    let (_, place) = test.url().split_once('@').expect("it names a user");
    let url = format!("postgres://{role}@{place}");
    let list = |arguments: &[&str]| {
        let mut command = locks(&test, arguments);
        command.env("LOCK_URL", &url);
        let output = finished(command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (table, notes) = list(&["list"]);
    assert!(
        table.contains("(hidden)") && table.contains("projector/locks/"),
        "{table}"
    );
    assert!(notes.contains("pg_monitor"), "{notes}");
    let (json, _) = list(&["list", "-o", "json"]);
    let answer: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(answer["hidden"], 1, "{answer}");
    drop(holder);
    test.psql(&format!("DROP ROLE {role}")).expect("dropped");
}
