//! `cargo xtask bench --many`: what fifty small projections on one host cost, idle and at work.
//!
//! The same is measured with one projection, so that what each further one costs can be seen.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use projector_testkit::guests;
use serde_json::{Value, json};

use super::{
    Scene,
    arena::Arena,
    host::{Host, Plugins, Running},
    live::figures,
    outcome::Outcome,
    table::Table,
};

const PROJECTIONS: [usize; 2] = [1, 50];

/// How long an idle host is watched.
const IDLE: Duration = Duration::from_secs(20);

/// Events a second, one transaction each, each wanted by one projection.
const EVENTS_PER_SECOND: usize = 200;

/// How often connections are counted.
const COUNT_INTERVAL: Duration = Duration::from_millis(200);

/// What is wanted.
const CONNECTIONS_MAX: usize = 10;
const MEMORY_MAX: u64 = 300_000_000;

/// A guest that makes each event a row.
const GUEST: &str = "by-type";

struct Measured {
    projections: usize,
    connections: usize,
    memory: u64,
    memory_peak: u64,
    idle: Load,
    busy: Load,
    behind: Duration,
}

/// What a host does in a second.
#[derive(Debug, Clone, Copy)]
struct Load {
    statements: f64,
    cpu_percent: f64,
}

/// One projection, then fifty.
pub fn run(scene: &mut Scene) -> Result<Outcome> {
    let seconds = if scene.quick { 10 } else { 30 };
    let settings = [("shared_preload_libraries", "pg_stat_statements")];
    let mut arena = Arena::start(scene.installation.clone(), &settings)?;
    let mut all = Vec::new();
    for projections in PROJECTIONS {
        let name = format!("{projections} projections");
        all.push(scene.steps.run(&name, || {
            measure(&mut arena, &scene.program, projections, seconds)
        })?);
    }
    Ok(outcome(scene, &all))
}

/// Small guests, each with a table and an event type of its own.
fn plugins(count: usize) -> Vec<(String, Vec<u8>)> {
    let text = guests::text(GUEST);
    let guest = |number| {
        let name = format!("many{number:03}");
        let text = guests::renamed(&text, &name, &format!("row{number:03}"), true);
        (name, guests::from_text(&text))
    };
    (0..count).map(guest).collect()
}

fn measure(
    arena: &mut Arena,
    program: &std::path::Path,
    projections: usize,
    seconds: usize,
) -> Result<Measured> {
    let host = Host::together(arena, program, Plugins::Others(&plugins(projections)))?;
    host.migrate()?;
    let psql = |sql: &str| arena.psql(&host.database, sql);
    psql(include_str!("sql/many.sql"))?;
    psql("create extension pg_stat_statements")?;
    let mut running = Running::start(&host)?;
    // An event for each first, so that every table is there and every plugin has run once.
    let append = |events: usize, pause: usize| {
        psql(&format!(
            "call bench_many_append({events}, '{pause} ms', {projections})"
        ))
    };
    append(projections, 0)?;
    host.wait()?;

    let watched = |work: &mut dyn FnMut() -> Result<()>| -> Result<Load> {
        psql("select pg_stat_statements_reset()")?;
        let (before, begun) = (running.usage().cpu_seconds, Instant::now());
        work()?;
        let seconds = begun.elapsed().as_secs_f64();
        let cpu_seconds = running.usage().cpu_seconds - before;
        let [statements] = figures(&psql(include_str!("sql/statements.sql"))?)?;
        Ok(Load {
            statements: statements / seconds,
            cpu_percent: 100.0 * cpu_seconds / seconds,
        })
    };
    let idle = watched(&mut || {
        thread::sleep(IDLE);
        Ok(())
    })?;
    let memory = running.usage().memory;
    let done = AtomicBool::new(false);
    let (busy, connections) = thread::scope(|scope| {
        let counted = scope.spawn(|| most_connections(arena, &done));
        let busy = watched(&mut || {
            append(EVENTS_PER_SECOND * seconds, 1_000 / EVENTS_PER_SECOND).map(drop)
        });
        done.store(true, Ordering::Relaxed);
        let counted = counted.join().unwrap_or_else(|_| Ok(0));
        Ok::<_, anyhow::Error>((busy?, counted?))
    })?;
    let begun = Instant::now();
    host.wait()?;
    let behind = begun.elapsed();
    let memory_peak = running.usage().memory_peak;
    running.stop()?;
    arena.drop_database(&host.database)?;
    Ok(Measured {
        projections,
        connections,
        memory,
        memory_peak,
        idle,
        busy,
        behind,
    })
}

/// The most connections that the host had at a time, until the work is done.
fn most_connections(arena: &Arena, done: &AtomicBool) -> Result<usize> {
    let mut most = 0;
    loop {
        let now = arena.psql(
            "postgres",
            "select count(*) from pg_stat_activity where application_name like 'projector/%'",
        )?;
        most = most.max(now.trim().parse()?);
        if done.load(Ordering::Relaxed) {
            return Ok(most);
        }
        thread::sleep(COUNT_INTERVAL);
    }
}

fn outcome(scene: &Scene, all: &[Measured]) -> Outcome {
    let mut table = Table::new([
        "projections",
        "connections",
        "MB",
        "peak",
        "idle st/s",
        "idle CPU %",
        "busy st/s",
        "busy CPU %",
        "behind ms",
    ]);
    for it in all {
        table.row([
            it.projections.to_string(),
            it.connections.to_string(),
            (it.memory / 1_000_000).to_string(),
            (it.memory_peak / 1_000_000).to_string(),
            format!("{:.1}", it.idle.statements),
            format!("{:.2}", it.idle.cpu_percent),
            format!("{:.0}", it.busy.statements),
            format!("{:.1}", it.busy.cpu_percent),
            it.behind.as_millis().to_string(),
        ]);
    }
    let verdict = all.last().map_or_else(String::new, |many| {
        let word = |met| if met { "met" } else { "missed" };
        format!(
            "{} projections: at most {CONNECTIONS_MAX} connections: {}; at most {} MB: {}",
            many.projections,
            word(many.connections <= CONNECTIONS_MAX),
            MEMORY_MAX / 1_000_000,
            word(many.memory_peak <= MEMORY_MAX)
        )
    });
    Outcome {
        name: "many",
        table: format!(
            "small projections on one host, {EVENTS_PER_SECOND} events a second when busy, {}, {}\n\n{table}\n\n{verdict}",
            scene.installation.version(),
            scene.machine
        ),
        figures: Value::Array(all.iter().map(json).collect()),
        picture: None,
    }
}

fn json(it: &Measured) -> Value {
    let load = |load: Load| json!({ "statements_per_second": load.statements, "cpu_percent": load.cpu_percent });
    json!({
        "projections": it.projections,
        "connections_max": it.connections,
        "memory_bytes": it.memory,
        "memory_peak_bytes": it.memory_peak,
        "idle": load(it.idle),
        "busy": load(it.busy),
        "behind_seconds": it.behind.as_secs_f64(),
    })
}
