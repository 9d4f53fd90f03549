//! `locks run`: codes, waits, signals, losses, and nothing left behind.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::*;

/// A command that says that it runs, and its pid.
fn announced(mark: &Mark, then: &str) -> String {
    format!(
        "echo $$ > {0}.tmp; mv {0}.tmp {0}; {then}",
        mark.path("pid").display()
    )
}

fn pid(mark: &Mark) -> String {
    eventually_some("the command runs", || mark.read("pid"))
}

#[test]
fn the_exit_code_is_that_of_the_command_and_its_output_passes_through() {
    let test = fresh();
    for code in [0, 1, 3, 75, 255] {
        let script = format!("echo out; echo err >&2; exit {code}");
        let output = finished(locks(&test, &["run", "a", "--", "sh", "-c", &script]));
        assert_eq!(output.status.code(), Some(code));
        assert_eq!(
            (text(&output.stdout), text(&output.stderr)),
            ("out".into(), "err".into())
        );
    }
    let output = finished(locks(&test, &["run", "a", "--", "sh", "-c", "kill -9 $$"]));
    assert_eq!(output.status.code(), Some(137));
    let output = finished(locks(&test, &["run", "a", "--", "/no/such/program"]));
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).contains("/no/such/program"));
    assert_eq!(held(&test), "0");
}

#[test]
fn a_lock_that_is_held_elsewhere_is_75_at_once_and_after_the_wait() {
    let test = fresh();
    let mark = Mark::new();
    let script = announced(&mark, "exec sleep 300");
    let holder = Background::start(locks(&test, &["run", "a", "--", "sh", "-c", &script]));
    pid(&mark);
    let output = finished(locks(&test, &["run", "a", "--", "true"]));
    assert_eq!(output.status.code(), Some(75));
    let stderr = text(&output.stderr);
    assert!(
        stderr.contains("PH0406") && stderr.contains("the lock `a` ("),
        "{stderr}"
    );
    let started = Instant::now();
    let output = finished(locks(&test, &["run", "a", "--wait", "1s", "--", "true"]));
    assert_eq!(output.status.code(), Some(75));
    assert!(started.elapsed() >= Duration::from_secs(1));
    assert!(text(&output.stderr).contains("waited 1s"));
    let output = finished(locks(&test, &["run", "b", "--", "true"]));
    assert_eq!(
        output.status.code(),
        Some(0),
        "another name is another lock"
    );
    holder.signal(Signal::TERM);
    let output = finished(locks(&test, &["run", "a", "--wait", "20s", "--", "true"]));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn signals_reach_the_command_and_its_answer_is_the_exit_code() {
    let test = fresh();
    let mark = Mark::new();
    let script = announced(&mark, "trap 'exit 42' TERM; while :; do sleep 0.05; done");
    let mut running = Background::start(locks(&test, &["run", "a", "--", "sh", "-c", &script]));
    let command = pid(&mark);
    running.signal(Signal::TERM);
    assert_eq!(running.code(), 42);
    assert!(!runs(&command));
    assert_eq!(held(&test), "0");
}

#[test]
fn a_lost_session_ends_the_command_with_75_and_a_stubborn_one_is_killed() {
    let test = fresh();
    for (trap, least) in [("", 0.0), ("trap '' TERM;", 0.9)] {
        let mark = Mark::new();
        let script = announced(&mark, &format!("{trap} while :; do sleep 0.05; done"));
        let arguments = ["run", "a", "--grace", "1s", "--", "sh", "-c", &script];
        let mut running = Background::start(locks(&test, &arguments));
        let command = pid(&mark);
        let lost = Instant::now();
        test.psql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE application_name LIKE 'projector/locks/%/lock' AND datname = current_database()",
        )
        .expect("it ends");
        assert_eq!(running.code(), 75);
        let took = lost.elapsed().as_secs_f64();
        assert!((least..8.0).contains(&took), "ended after {took} s");
        eventually("the command is gone", || !runs(&command));
    }
}

#[test]
fn a_killed_wrapper_leaves_no_process_and_no_lock() {
    let test = fresh();
    let mark = Mark::new();
    let child = mark.path("child");
    let deeper = format!(
        "sh -c 'echo $$ > {0}.tmp; mv {0}.tmp {0}; trap \"\" TERM; while :; do sleep 0.05; done' & wait",
        child.display()
    );
    let script = announced(&mark, &deeper);
    let arguments = ["run", "a", "--grace", "500ms", "--", "sh", "-c", &script];
    let mut running = Background::start(locks(&test, &arguments));
    let (command, grandchild) = (
        pid(&mark),
        eventually_some("it runs", || mark.read("child")),
    );
    running.signal(Signal::KILL);
    running.code();
    eventually("the lock is free", || held(&test) == "0");
    eventually("the command is gone", || !runs(&command));
    eventually("what it started is gone", || !runs(&grandchild));
}

#[test]
fn what_a_command_leaves_in_the_background_does_not_run_on_without_the_lock() {
    let test = fresh();
    let mark = Mark::new();
    let script = format!(
        "sleep 300 & echo $! > {0}.tmp; mv {0}.tmp {0}; exit 4",
        mark.path("pid").display()
    );
    // The background process keeps the pipes open, so nothing may wait for their end.
    let mut command = locks(&test, &["run", "a", "--", "sh", "-c", &script]);
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut running = Background::start(command);
    assert_eq!(running.code(), 4);
    let left = pid(&mark);
    eventually("it is gone", || !runs(&left));
}

#[test]
fn of_many_hosts_that_start_at_once_exactly_one_runs() {
    let test = fresh();
    let mark = Mark::new();
    let log = mark.path("log");
    let script = format!("echo ran >> {}", log.display());
    let start = |extra: &[&str]| {
        let arguments: Vec<&str> = ["run"]
            .iter()
            .chain(extra)
            .chain(&["job", "--", "sh", "-c", &script])
            .copied()
            .collect();
        Background::start(locks(&test, &arguments))
    };
    let hosts: Vec<_> = (0..8)
        .map(|_| start(&["--once-per", "1h", "--wait", "30s"]))
        .collect();
    let codes: Vec<_> = hosts.into_iter().map(|mut host| host.code()).collect();
    assert_eq!(codes, [0; 8]);
    let ran = || {
        std::fs::read_to_string(&log)
            .expect("it ran")
            .lines()
            .count()
    };
    assert_eq!(ran(), 1);
    let at = ["--scheduled-at", "2026-01-01T02:00:00Z"];
    for _ in 0..3 {
        assert_eq!(start(&at).code(), 0);
    }
    assert_eq!(ran(), 2);
    assert_eq!(start(&["--scheduled-at", "2026-01-01T03:00:00Z"]).code(), 0);
    assert_eq!(ran(), 3);
}

#[test]
fn slots_let_so_many_run_and_no_more() {
    let test = fresh();
    let marks = [Mark::new(), Mark::new()];
    let mut running = Vec::new();
    for mark in &marks {
        let script = announced(mark, "exec sleep 300");
        let arguments = ["run", "--slots", "2", "a", "--", "sh", "-c", &script];
        running.push(Background::start(locks(&test, &arguments)));
        pid(mark);
    }
    let output = finished(locks(&test, &["run", "--slots", "2", "a", "--", "true"]));
    assert_eq!(output.status.code(), Some(75));
    assert!(
        text(&output.stderr).contains("2 others"),
        "{}",
        text(&output.stderr)
    );
    let output = finished(locks(&test, &["run", "--slots", "0", "a", "--", "true"]));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_unreachable_database_is_69_and_nothing_runs() {
    let test = fresh();
    let mark = Mark::new();
    let script = announced(&mark, "true");
    let mut command = locks(&test, &["run", "a", "--", "sh", "-c", &script]);
    command.env("LOCK_URL", "postgres://nobody@127.0.0.1:1/none");
    assert_eq!(finished(command).status.code(), Some(69));
    assert_eq!(mark.read("pid"), None);
}
