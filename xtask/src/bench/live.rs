//! `cargo xtask bench --live`: how soon an event's row can be seen, and what a host costs that has nothing to do.
//!
//! The server itself says when each transaction was committed, so nobody has to watch, and watching costs nothing.

use std::{path::Path, process::Stdio, thread, time::Duration};

use anyhow::{Context as _, Result, bail};
use projector_testkit::Installation;
use serde_json::{Value, json};

use crate::process;

use super::{
    arena::Arena,
    host::{Host, Of, Running},
};

/// Events a second, one transaction each.
const EVENTS_PER_SECOND: usize = 200;

/// How long an idle host is watched.
const IDLE: Duration = Duration::from_secs(20);

/// Measures both ways of being woken; prints and returns what came out.
pub fn run(installation: &Installation, program: &Path, seconds: usize) -> Result<Value> {
    let settings = [
        ("track_commit_timestamp", "on"),
        ("shared_preload_libraries", "pg_stat_statements"),
    ];
    let mut arena = Arena::start(installation.clone(), &settings)?;
    let mut all = Vec::new();
    println!(
        "{:<14} {:>19} {:>19} {:>19} {:>9} {:>7}",
        "", "commit p50, p99 ms", "row p50, p99 ms", "ratio p50, p99", "idle st/s", "CPU %"
    );
    for (name, notify) in [("notified", true), ("polling only", false)] {
        let measured = one(&mut arena, program, notify, EVENTS_PER_SECOND * seconds)?;
        println!(
            "{name:<14} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.1} {:>7.2}",
            measured.commit.0,
            measured.commit.1,
            measured.row.0,
            measured.row.1,
            measured.row.0 / measured.commit.0,
            measured.row.1 / measured.commit.1,
            measured.idle_statements,
            measured.idle_cpu,
        );
        all.push(json!({
            "wake": name,
            "events_per_second": EVENTS_PER_SECOND,
            "commit_ms": { "p50": measured.commit.0, "p99": measured.commit.1 },
            "row_ms": { "p50": measured.row.0, "p99": measured.row.1 },
            "idle_statements_per_second": measured.idle_statements,
            "idle_cpu_percent": measured.idle_cpu,
        }));
    }
    Ok(Value::Array(all))
}

struct Measured {
    commit: (f64, f64),
    row: (f64, f64),
    idle_statements: f64,
    idle_cpu: f64,
}

fn one(arena: &mut Arena, program: &Path, notify: bool, events: usize) -> Result<Measured> {
    let host = Host::together(arena, program.to_path_buf())?;
    host.configure(
        "change_logs = false",
        &format!("[event_store]\nnotify = {notify}\n"),
        0,
    )?;
    host.migrate()?;
    let psql = |sql: &str| arena.server.psql(&host.database, sql);
    psql(include_str!("sql/live.sql"))?;
    psql("create extension pg_stat_statements")?;
    let mut running = Running::start(&host)?;
    // One event first, so that the tables are there and everything has run once.
    psql("call live_append(1, '0'); truncate live_commits")?;
    process::run(
        host.command(&[
            "wait",
            "--until-caught-up",
            "--timeout",
            "60s",
            "order",
            "scheduling",
            "service-request",
        ])
        .stdout(Stdio::null()),
    )?;
    psql("select pg_stat_statements_reset()")?;
    let cpu = running.cpu_seconds();
    thread::sleep(IDLE);
    let cpu = running.cpu_seconds() - cpu;
    let statements: f64 = psql(
        "select coalesce(sum(calls), 0) from pg_stat_statements s join pg_database d on d.oid = s.dbid \
         where d.datname = current_database() and query not like '%pg_stat_statements%'",
    )?
    .parse()?;
    psql(&format!(
        "call live_append({events}, '{} ms')",
        1_000 / EVENTS_PER_SECOND
    ))?;
    process::run(
        host.command(&[
            "wait",
            "--until-caught-up",
            "--timeout",
            "60s",
            "order",
            "scheduling",
            "service-request",
        ])
        .stdout(Stdio::null()),
    )?;
    let times = psql(include_str!("sql/live_times.sql"))?;
    running.stop()?;
    arena.drop_database(&host.database)?;
    let figures: Vec<f64> = times
        .split('|')
        .map(|figure| {
            figure
                .parse()
                .with_context(|| format!("no figure: {times}"))
        })
        .collect::<Result<_>>()?;
    let [commit, commit_99, row, row_99, rows] = figures.as_slice() else {
        bail!("not the expected figures: {times}");
    };
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let expected = events as f64;
    if *rows < expected {
        bail!("only {rows} of {events} events have a row");
    }
    Ok(Measured {
        commit: (*commit, *commit_99),
        row: (*row, *row_99),
        idle_statements: statements / IDLE.as_secs_f64(),
        idle_cpu: 100.0 * cpu / IDLE.as_secs_f64(),
    })
}

impl Running {
    fn cpu_seconds(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).unwrap_or_default();
        super::host::cpu_seconds(&stat, Of::Itself).unwrap_or(0.0)
    }
}
