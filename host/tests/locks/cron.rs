//! `locks run` as a cron wrapper: many processes at once, some of them killed, clocks that differ.

use std::path::Path;

use projector_testkit::proxy::{Link, Proxy, Silence};
use projector_testkit::random::Random;
use projector_testkit::skip::{first_of, skipped};
use rustix::process::Signal;

use crate::support::*;

const FAKETIME: [&str; 2] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
];

/// A job that finds out whether another one runs beside it, and that takes its time to end when it is told to.
fn job(folder: &Path, point: usize) -> String {
    let folder = folder.display();
    format!(
        "cd {folder} || exit 9
         mkdir busy || {{ echo {point} >> overlaps; exit 8; }}
         trap 'sleep 0.2; rmdir busy; exit 143' TERM
         echo {point} >> runs
         for i in 1 2 3 4 5 6 7 8; do sleep 0.05; done
         rmdir busy"
    )
}

fn lines(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Processes whose command line names this folder.
fn processes(folder: &Path) -> usize {
    let folder = folder.to_string_lossy().into_owned();
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let names = |pid: &str| {
        let text = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&text).contains(&folder)
    };
    let pids = entries.filter_map(|entry| entry.file_name().into_string().ok());
    pids.filter(|pid| pid.parse::<u32>().is_ok() && *pid != own && names(pid))
        .count()
}

#[test]
fn many_processes_with_random_kills_never_overlap_and_run_once_for_a_point_in_time() {
    const SEED: u64 = 231;
    const POINTS: usize = 5;
    const HOSTS: u64 = 6;
    eprintln!("seed {SEED}");
    let test = fresh();
    let mark = Mark::new();
    let folder = mark.0.path();
    let mut random = Random::new(SEED);
    let mut killed = 0;
    for point in 0..POINTS {
        let at = format!("2026-03-01T0{point}:00:00Z");
        let script = job(folder, point);
        let start = || {
            let arguments = [
                "run",
                "--scheduled-at",
                &at,
                "--wait",
                "20s",
                "--grace",
                "5s",
                "job",
                "--",
                "sh",
                "-c",
                &script,
            ];
            let mut command = locks(&test, &arguments);
            // A killed one must not leave a pipe that nobody reads.
            command.stdout(std::process::Stdio::null());
            command.stderr(std::process::Stdio::null());
            Background::start(command)
        };
        let mut hosts: Vec<Background> = (0..HOSTS).map(|_| start()).collect();
        eventually("the job runs", || {
            lines(folder, "runs").contains(&point.to_string())
        });
        // One after the other, with the one that runs the job among them in most rounds.
        for _ in 0..HOSTS / 2 {
            let place = random.below(hosts.len() as u64) as usize;
            let mut victim = hosts.swap_remove(place);
            victim.signal(Signal::KILL);
            victim.code();
            killed += 1;
        }
        for mut host in hosts {
            let code = host.code();
            assert!(matches!(code, 0 | 75 | 143), "point {point}: {code}");
        }
        eventually("nothing is left", || {
            held(&test) == "0" && processes(folder) == 0
        });
    }
    assert!(killed >= 10);
    assert_eq!(lines(folder, "overlaps"), Vec::<String>::new());
    let mut runs = lines(folder, "runs");
    let all = runs.len();
    runs.dedup();
    assert_eq!((runs.len(), all), (POINTS, POINTS), "{runs:?}");
}

#[test]
fn a_killed_wrapper_keeps_its_lock_until_its_command_has_ended() {
    let test = fresh();
    let mark = Mark::new();
    let folder = mark.0.path();
    let script = job(folder, 0);
    let arguments = ["run", "--grace", "5s", "job", "--", "sh", "-c", &script];
    let mut first = Background::start(locks(&test, &arguments));
    eventually("the job runs", || !lines(folder, "runs").is_empty());
    first.signal(Signal::KILL);
    first.code();
    let next = ["run", "--wait", "20s", "job", "--", "sh", "-c", &script];
    let output = finished(locks(&test, &next));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert_eq!(lines(folder, "overlaps"), Vec::<String>::new());
    assert_eq!(lines(folder, "runs").len(), 2);
}

#[test]
fn a_silent_network_ends_the_command_before_anybody_else_can_start() {
    let test = fresh();
    let mark = Mark::new();
    let folder = mark.0.path();
    // It ignores SIGTERM, so that only the end of the grace ends it.
    let stubborn = format!(
        "cd {}; trap '' TERM; echo $$ > pid.tmp; mv pid.tmp pid; while :; do sleep 0.05; done",
        folder.display()
    );
    let proxy = Proxy::before(test.url(), 1);
    let arguments = ["run", "--grace", "2s", "job", "--", "sh", "-c", &stubborn];
    let mut command = locks(&test, &arguments);
    command.env("LOCK_URL", proxy.url());
    let mut running = Background::start(command);
    let job = eventually_some("the command runs", || mark.read("pid"));
    proxy.link(Link::default().silent(Silence::Both));
    let begun = std::time::Instant::now();
    while runs(&job) {
        assert_eq!(held(&test), "1", "the lock is free while the command runs");
        assert!(begun.elapsed() < PATIENCE, "the command runs on");
    }
    assert_eq!(running.code(), 75);
    let output = finished(locks(&test, &["run", "--wait", "20s", "job", "--", "true"]));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn whatever_of_the_wrapper_is_killed_the_command_does_not_outlive_it() {
    let test = fresh();
    for killed in ["run", "keeper", "supervisor", "all"] {
        let mark = Mark::new();
        let folder = mark.0.path();
        let script = format!(
            "cd {}; echo $$ > pid.tmp; mv pid.tmp pid; exec sleep 300",
            folder.display()
        );
        let arguments = ["run", "--grace", "1s", "job", "--", "sh", "-c", &script];
        let mut command = locks(&test, &arguments);
        command.stdout(std::process::Stdio::null());
        command.stderr(std::process::Stdio::null());
        let mut running = Background::start(command);
        let job = eventually_some("the command runs", || mark.read("pid"));
        let parent = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
            let rest = stat.rsplit(')').next().unwrap_or_default().to_owned();
            rest.split_whitespace().nth(1).expect("a parent").to_owned()
        };
        let supervisor = parent(&job);
        let keeper = parent(&supervisor);
        assert_eq!(parent(&keeper), running.pid().to_string());
        let own = running.pid().to_string();
        let victims = match killed {
            "run" => vec![&own],
            "keeper" => vec![&keeper],
            "supervisor" => vec![&supervisor],
            _ => vec![&own, &keeper, &supervisor],
        };
        for victim in victims {
            let pid = victim.parse().ok().and_then(rustix::process::Pid::from_raw);
            // It may have followed another one already.
            let _gone = rustix::process::kill_process(pid.expect("a pid"), Signal::KILL);
        }
        let code = running.code();
        assert_ne!(code, 0, "{killed}");
        eventually("the command is gone", || !runs(&job));
        eventually("the lock is free", || held(&test) == "0");
        eventually("nothing is left", || processes(folder) == 0);
    }
}

#[test]
fn a_host_whose_clock_is_hours_ahead_runs_nothing_twice() {
    let Some(library) = first_of(&FAKETIME) else {
        return skipped("cron under clock skew", "libfaketime is not installed");
    };
    let test = fresh();
    let mark = Mark::new();
    let log = mark.path("log");
    let script = format!("echo ran >> {}", log.display());
    let run = |rule: &[&str], skew: Option<&str>| {
        let arguments: Vec<&str> = ["run"]
            .iter()
            .chain(rule)
            .chain(&["job", "--", "sh", "-c", &script])
            .copied()
            .collect();
        let mut command = locks(&test, &arguments);
        if let Some(skew) = skew {
            command
                .env("LD_PRELOAD", &library)
                .env("FAKETIME", skew)
                .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
                .env("DONT_FAKE_MONOTONIC", "1");
        }
        let output = finished(command);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        std::fs::read_to_string(&log)
            .unwrap_or_default()
            .lines()
            .count()
    };
    let hourly = ["--once-per", "1h"];
    for skew in [None, Some("+3h"), Some("-3h"), None] {
        assert_eq!(run(&hourly, skew), 1, "{skew:?}");
    }
    let at = ["--scheduled-at", "2026-01-01T02:00:00Z"];
    for skew in [Some("-3h"), None, Some("+3h")] {
        assert_eq!(run(&at, skew), 2, "{skew:?}");
    }
}

#[test]
fn names_that_look_alike_and_points_in_time_have_runs_of_their_own() {
    let test = fresh();
    let runs = |arguments: &[&str]| {
        let all: Vec<&str> = ["run"]
            .iter()
            .chain(arguments)
            .chain(&["--", "echo", "ran"])
            .copied()
            .collect();
        let output = finished(locks(&test, &all));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).contains("ran")
    };
    let hourly = ["--once-per", "1h"];
    for name in [
        &["--namespace", "billing", "eu/report"][..],
        &["--namespace", "billing/eu", "report"],
        &["billing/eu/report"],
    ] {
        let arguments = [&hourly, name].concat();
        assert!(runs(&arguments), "{name:?} runs");
        assert!(!runs(&arguments), "{name:?} ran within the hour");
    }
    // What counts for a period is when a run began, not the time that it was for.
    assert!(runs(&["--scheduled-at", "2001-01-01T00:00:00Z", "past"]));
    assert!(!runs(&["--once-per", "1h", "past"]));
    assert!(runs(&["--scheduled-at", "2100-01-01T00:00:00Z", "future"]));
    test.psql("update projector_locks.runs set started_at = started_at - interval '2 hours' where job = 'future'")
        .expect("it is there");
    assert!(runs(&["--once-per", "1h", "future"]));
}

#[test]
fn rows_are_kept_for_as_long_as_they_decide_something() {
    let test = fresh();
    let run = |arguments: &[&str]| {
        let all: Vec<&str> = ["run"]
            .iter()
            .chain(arguments)
            .chain(&["--", "echo", "ran"])
            .copied()
            .collect();
        let output = finished(locks(&test, &all));
        let ran = text(&output.stdout).contains("ran");
        (
            output.status.code().unwrap_or(-1),
            ran,
            text(&output.stderr),
        )
    };
    let sql = |sql: &str| test.psql(sql).expect("it is there");
    let older = |days: u32| {
        sql(&format!(
            "update projector_locks.runs set started_at = started_at - interval '{days} days',
             scheduled_at = scheduled_at - interval '{days} days'"
        ));
    };
    let yearly = ["--once-per", "365d", "yearly"];
    assert!(run(&yearly).1);
    older(91);
    for _ in 0..2 {
        assert!(!run(&yearly).1, "it ran 91 days ago");
    }
    older(300);
    assert!(run(&yearly).1);
    assert!(!run(&yearly).1);

    // A point in time whose row was swept is not run again, and one ahead of its time is not forgotten.
    for at in [
        "2001-01-01T00:00:00Z",
        "2001-01-02T00:00:00Z",
        "2100-01-01T00:00:00Z",
    ] {
        assert!(run(&["--scheduled-at", at, "point"]).1, "{at}");
    }
    sql(
        "update projector_locks.runs set started_at = started_at - interval '100 days' where job = 'point'",
    );
    assert!(run(&["--scheduled-at", "2101-01-01T00:00:00Z", "point"]).1);
    assert_eq!(
        sql("select count(*) from projector_locks.runs where job = 'point'"),
        "3",
        "one of the old ones is swept"
    );
    let (code, ran, error) = run(&["--scheduled-at", "2001-01-01T00:00:00Z", "point"]);
    assert_eq!((code, ran), (2, false), "{error}");
    assert!(error.contains("not known any more"), "{error}");
    assert!(!run(&["--scheduled-at", "2100-01-01T00:00:00Z", "point"]).1);
}
