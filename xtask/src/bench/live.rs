//! `cargo xtask bench --live`: how soon an event's row can be seen, and what a host costs that has nothing to do.
//!
//! The server itself says when each transaction was committed, so nobody has to watch, and watching costs nothing.

use std::{
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{
    Scene,
    arena::Arena,
    host::{Host, Plugins, Running},
    outcome::Outcome,
    table::Table,
    watch::Watch,
};

/// Events a second, one transaction each.
const EVENTS_PER_SECOND: usize = 200;

/// How long an idle host is watched.
const IDLE: Duration = Duration::from_secs(20);

/// How often commits with and without NOTIFY take turns.
const TURNS: usize = 4;

/// How long the watcher of the machine sleeps, and what is late.
const NAP: Duration = Duration::from_millis(1);
const LATE: Duration = Duration::from_millis(2);

/// `[event_store] poll_interval`, as it is if nothing is said.
const POLL_MS: f64 = 250.0;

/// Milliseconds: the middle and the 99th of a hundred.
#[derive(Debug, Clone, Copy)]
struct Times {
    p50: f64,
    p99: f64,
}

/// What one way of waking came to.
struct Measured {
    name: &'static str,
    writer: Writer,
    row: Option<Times>,
    idle: Option<Idle>,
    stalls: Option<Stalls>,
}

/// What a transaction that appends one event takes.
#[derive(Debug, Clone, Copy)]
struct Writer {
    append: Times,
    commit: Times,
    /// Both together.
    whole: Times,
}

struct Idle {
    statements_per_second: f64,
    cpu_percent: f64,
}

/// How often the machine kept waiting somebody who wants no processor time: what it does to a row, nobody can help.
#[derive(Debug, Clone, Copy)]
struct Stalls {
    begun: Instant,
    /// When the thread fell asleep.
    asleep: Instant,
    count: u32,
    worst: Duration,
}

impl Stalls {
    fn watch() -> Watch<Self> {
        let now = Instant::now();
        let none = Self {
            begun: now,
            asleep: now,
            count: 0,
            worst: Duration::ZERO,
        };
        Watch::start(NAP, none, Self::wake)
    }

    fn wake(&mut self) {
        let late = self.asleep.elapsed().saturating_sub(NAP);
        self.count += u32::from(late > LATE);
        self.worst = self.worst.max(late);
        self.asleep = Instant::now();
    }

    fn per_second(self) -> f64 {
        let upto = self.asleep.duration_since(self.begun);
        f64::from(self.count) / upto.as_secs_f64()
    }

    fn worst_ms(self) -> f64 {
        self.worst.as_secs_f64() * 1000.0
    }
}

/// Measures commits without a host, then both ways of being woken.
pub fn run(scene: &mut Scene) -> Result<Outcome> {
    let seconds = if scene.quick { 10 } else { 120 };
    let settings = [
        ("track_commit_timestamp", "on"),
        ("shared_preload_libraries", "pg_stat_statements"),
    ];
    let mut arena = Arena::start(scene.installation.clone(), &settings)?;
    let events = EVENTS_PER_SECOND * seconds;
    let program = &scene.program;
    let mut all = scene.steps.run("commits without a host", || {
        commits(&mut arena, program, events / 2)
    })?;
    for (name, notify) in [("host, notified", true), ("host, polling only", false)] {
        all.push(scene.steps.run(name, || {
            with_host(&mut arena, program, name, notify, events)
        })?);
    }
    Ok(outcome(scene, &all))
}

/// How long commits take with and without NOTIFY, in turn, while nobody listens.
fn commits(arena: &mut Arena, program: &std::path::Path, events: usize) -> Result<Vec<Measured>> {
    let host = Host::together(arena, program, Plugins::Shipped)?;
    host.migrate()?;
    let psql = |sql: &str| arena.psql(&host.database, sql);
    psql(include_str!("sql/live.sql"))?;
    psql(
        "create table quiet_commits (like live_commits); create table loud_commits (like live_commits)",
    )?;
    for _ in 0..TURNS {
        for (keep, set) in [("quiet_commits", "disable"), ("loud_commits", "enable")] {
            psql(&format!(
                "alter table event_store.events {set} trigger events_wake; truncate live_commits"
            ))?;
            append(arena, &host.database, events / TURNS)?;
            psql(&format!("insert into {keep} select * from live_commits"))?;
        }
    }
    let measured = |name, table: &str| -> Result<Measured> {
        psql(&format!(
            "truncate live_commits; insert into live_commits select * from {table}"
        ))?;
        Ok(Measured {
            name,
            writer: writer(arena, &host.database)?,
            row: None,
            idle: None,
            stalls: None,
        })
    };
    let all = vec![
        measured("no host, no NOTIFY", "quiet_commits")?,
        measured("no host, NOTIFY", "loud_commits")?,
    ];
    arena.drop_database(&host.database)?;
    Ok(all)
}

fn with_host(
    arena: &mut Arena,
    program: &std::path::Path,
    name: &'static str,
    notify: bool,
    events: usize,
) -> Result<Measured> {
    let host = Host::together(arena, program, Plugins::Shipped)?;
    host.configure(&format!("[event_store]\nnotify = {notify}\n"), 0)?;
    host.migrate()?;
    let psql = |sql: &str| arena.psql(&host.database, sql);
    psql(include_str!("sql/live.sql"))?;
    psql("create extension pg_stat_statements")?;
    let mut running = Running::start(&host)?;
    // One event first, so that the tables are there and everything has run once.
    psql("call live_append(1, '0'); truncate live_commits")?;
    host.wait()?;
    let idle = watch_idle(arena, &host.database, &running)?;
    let watch = Stalls::watch();
    append(arena, &host.database, events)?;
    let stalls = watch.stop()?;
    host.wait()?;
    let writer = writer(arena, &host.database)?;
    let [p50, p99, rows] = figures(&psql(include_str!("sql/live_rows.sql"))?)?;
    running.stop()?;
    arena.drop_database(&host.database)?;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let expected = events as f64;
    if rows < expected {
        bail!("only {rows} of {events} events have a row");
    }
    Ok(Measured {
        name,
        writer,
        row: Some(Times { p50, p99 }),
        idle: Some(idle),
        stalls: Some(stalls),
    })
}

/// Statements and processor time of a host to which nothing happens.
fn watch_idle(arena: &Arena, database: &str, running: &Running) -> Result<Idle> {
    arena.psql(database, "select pg_stat_statements_reset()")?;
    let before = running.usage().cpu_seconds;
    thread::sleep(IDLE);
    let cpu_seconds = running.usage().cpu_seconds - before;
    let [statements] = figures(&arena.psql(database, include_str!("sql/statements.sql"))?)?;
    Ok(Idle {
        statements_per_second: statements / IDLE.as_secs_f64(),
        cpu_percent: 100.0 * cpu_seconds / IDLE.as_secs_f64(),
    })
}

fn append(arena: &Arena, database: &str, events: usize) -> Result<()> {
    let pause = 1_000 / EVENTS_PER_SECOND;
    let call = format!("call live_append({events}, '{pause} ms')");
    arena.psql(database, &call)?;
    Ok(())
}

fn writer(arena: &Arena, database: &str) -> Result<Writer> {
    let times = arena.psql(database, include_str!("sql/live_commits.sql"))?;
    let [append, append_99, commit, commit_99, whole, whole_99] = figures(&times)?;
    let times = |p50, p99| Times { p50, p99 };
    Ok(Writer {
        append: times(append, append_99),
        commit: times(commit, commit_99),
        whole: times(whole, whole_99),
    })
}

/// The figures of one row.
pub fn figures<const COUNT: usize>(row: &str) -> Result<[f64; COUNT]> {
    let figures = row.trim().split('|').map(str::parse);
    let figures: Vec<f64> = figures
        .collect::<Result<_, _>>()
        .with_context(|| format!("not {COUNT} figures: {row}"))?;
    <[f64; COUNT]>::try_from(figures)
        .ok()
        .with_context(|| format!("not {COUNT} figures: {row}"))
}

fn outcome(scene: &Scene, all: &[Measured]) -> Outcome {
    let mut table = Table::new([
        "milliseconds",
        "append p50",
        "p99",
        "commit p50",
        "p99",
        "row p50",
        "p99",
        "idle st/s",
        "idle CPU %",
    ]);
    let mut verdicts = Vec::new();
    for measured in all {
        let show = |figure: Option<f64>| figure.map_or_else(String::new, |it| format!("{it:.2}"));
        table.row([
            measured.name.to_owned(),
            show(Some(measured.writer.append.p50)),
            show(Some(measured.writer.append.p99)),
            show(Some(measured.writer.commit.p50)),
            show(Some(measured.writer.commit.p99)),
            show(measured.row.map(|row| row.p50)),
            show(measured.row.map(|row| row.p99)),
            show(
                measured
                    .idle
                    .as_ref()
                    .map(|idle| idle.statements_per_second),
            ),
            show(measured.idle.as_ref().map(|idle| idle.cpu_percent)),
        ]);
        if let Some(row) = measured.row {
            verdicts.push(verdict(measured.name, measured.writer, row));
        }
        if let Some(stalls) = measured.stalls {
            verdicts.push(format!(
                "{}: meanwhile a thread that only sleeps woke more than {} ms late {:.1} times a second, at worst {:.1} ms",
                measured.name,
                LATE.as_millis(),
                stalls.per_second(),
                stalls.worst_ms()
            ));
        }
    }
    if let [quiet, loud, ..] = all {
        verdicts.insert(0, format!(
            "NOTIFY: a commit takes {:.2} times as long at p50 and {:.2} times at p99, while nobody listens",
            loud.writer.commit.p50 / quiet.writer.commit.p50,
            loud.writer.commit.p99 / quiet.writer.commit.p99
        ));
    }
    Outcome {
        name: "live",
        table: format!(
            "{EVENTS_PER_SECOND} events a second, a transaction each, {}, {}\n\n{table}\n\n{}",
            scene.installation.version(),
            scene.machine,
            verdicts.join("\n")
        ),
        figures: Value::Array(all.iter().map(json).collect()),
        picture: None,
    }
}

/// How far the rows are from what is wanted.
fn verdict(name: &str, writer: Writer, row: Times) -> String {
    let Writer { commit, whole, .. } = writer;
    if name.contains("polling") {
        let allowed = POLL_MS + 3.0 * commit.p50;
        return format!(
            "{name}: p99 {:.1} ms; wanted: at most the poll interval and 3 commits, {allowed:.1} ms",
            row.p99
        );
    }
    format!(
        "{name}: p50 {:.2} × a transaction that appends and {:.2} × its COMMIT alone (wanted: 2); \
         p99 {:.2} × and {:.2} × theirs (wanted: 3)",
        row.p50 / whole.p50,
        row.p50 / commit.p50,
        row.p99 / whole.p99,
        row.p99 / commit.p99
    )
}

fn json(measured: &Measured) -> Value {
    let times = |times: Times| json!({ "p50": times.p50, "p99": times.p99 });
    let idle = measured.idle.as_ref();
    json!({
        "name": measured.name,
        "events_per_second": EVENTS_PER_SECOND,
        "append_ms": times(measured.writer.append),
        "commit_ms": times(measured.writer.commit),
        "transaction_ms": times(measured.writer.whole),
        "row_ms": measured.row.map(times),
        "idle_statements_per_second": idle.map(|idle| idle.statements_per_second),
        "idle_cpu_percent": idle.map(|idle| idle.cpu_percent),
        "late_wakes_per_second": measured.stalls.map(Stalls::per_second),
        "latest_wake_ms": measured.stalls.map(Stalls::worst_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_figures_is_read_whole_or_not_at_all() {
        assert_eq!(figures("1|2.5\n").ok(), Some([1.0, 2.5]));
        assert!(figures::<3>("1|2.5").is_err());
        assert!(figures::<1>("").is_err());
    }
}
