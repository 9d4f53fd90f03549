//! `cargo xtask bench --appends`: what waking the readers costs those who append.
//!
//! Sixteen sessions append one event a transaction as fast as they can, in turn with the store's trigger and without
//! any; once also with one that always notifies, so that what the guard is good for can be seen. A writer is a procedure in
//! the server: no client dilutes what a commit costs.

use std::{collections::BTreeMap, path::Path, thread};

use anyhow::{Result, anyhow};
use serde_json::{Value, json};

use super::{
    Scene,
    arena::Arena,
    host::{Host, Plugins, Running},
    live::figures,
    measure::Spread,
    outcome::Outcome,
    table::Table,
};

const WRITERS: usize = 16;

/// In so many seconds all sessions are there; then the writers begin.
const LEAD: f64 = 0.7;

/// What is wanted: so much of the throughput without a trigger.
const SHARE_MIN: f64 = 0.9;

/// Ways of waking: (words, the trigger that is enabled). The last one is for comparison and runs once.
const WAKES: [(&str, Option<&str>); 3] = [
    ("no trigger", None),
    ("NOTIFY, guarded", Some("events_wake")),
    ("NOTIFY, always", Some("bench_wake")),
];
const TRIGGERS: [&str; 2] = ["events_wake", "bench_wake"];

/// Ways of appending: (words, the procedure's word).
const WAYS: [(&str, &str); 2] = [("append()", "append"), ("INSERT", "insert")];

/// What came of one turn.
struct Turn {
    commits_per_second: f64,
    /// Processor time of the server, for each commit.
    server_micros: f64,
}

/// By listener, way and wake, a turn a round.
type Turns = BTreeMap<(bool, usize, usize), Vec<Turn>>;

/// Measures without a host, then with one that listens.
pub fn run(scene: &mut Scene) -> Result<Outcome> {
    let (seconds, usual) = if scene.quick { (2.0, 4) } else { (2.0, 15) };
    let rounds = scene.rounds.unwrap_or(usual);
    let mut arena = Arena::start(scene.installation.clone(), &[("max_connections", "100")])?;
    let mut turns = Turns::new();
    for listening in [false, true] {
        let name = match listening {
            false => "nobody listens",
            true => "a host listens",
        };
        scene.steps.run(&format!("{name}, {rounds} times"), || {
            measure(
                &mut arena,
                &scene.program,
                listening,
                rounds,
                seconds,
                &mut turns,
            )
        })?;
    }
    Ok(outcome(scene, seconds, &turns))
}

fn measure(
    arena: &mut Arena,
    program: &Path,
    listening: bool,
    rounds: usize,
    seconds: f64,
    turns: &mut Turns,
) -> Result<()> {
    let host = Host::together(arena, program, Plugins::Order)?;
    host.migrate()?;
    arena.psql(&host.database, include_str!("sql/appends.sql"))?;
    let mut running = match listening {
        true => Some(Running::start(&host)?),
        false => None,
    };
    for round in 0..rounds {
        for (way, (_, word)) in WAYS.iter().enumerate() {
            // Every other round goes backwards, so that growing tables are nobody's advantage; once is enough for what
            // nobody should do.
            let mut wakes: Vec<usize> = (0..if round == 0 { WAKES.len() } else { 2 }).collect();
            if round % 2 == 1 {
                wakes.reverse();
            }
            for wake in wakes {
                choose(arena, &host.database, WAKES[wake].1)?;
                let turn = turn(arena, &host.database, word, seconds)?;
                turns.entry((listening, way, wake)).or_default().push(turn);
                if running.is_some() {
                    host.wait()?;
                }
            }
        }
    }
    if let Some(running) = &mut running {
        running.stop()?;
    }
    arena.drop_database(&host.database)
}

/// Leaves this trigger alone enabled.
fn choose(arena: &Arena, database: &str, wanted: Option<&str>) -> Result<()> {
    for trigger in TRIGGERS {
        let word = if Some(trigger) == wanted {
            "enable"
        } else {
            "disable"
        };
        let sql = format!("alter table event_store.events {word} trigger {trigger}");
        arena.psql(database, &sql)?;
    }
    Ok(())
}

/// All writers at once.
fn turn(arena: &Arena, database: &str, way: &str, seconds: f64) -> Result<Turn> {
    let before = arena.server_cpu_seconds();
    let commits = appended(arena, database, way, seconds)?;
    let cpu_seconds = arena.server_cpu_seconds() - before;
    Ok(Turn {
        commits_per_second: commits / seconds,
        server_micros: cpu_seconds * 1e6 / commits.max(1.0),
    })
}

/// How many events all writers together have committed in this time.
fn appended(arena: &Arena, database: &str, way: &str, seconds: f64) -> Result<f64> {
    let since = arena.psql(
        database,
        &format!("select clock_timestamp() + {LEAD} * interval '1 second'"),
    )?;
    let call = format!(
        "call bench_append('{way}', '{}', {seconds}, null)",
        since.trim()
    );
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| scope.spawn(|| arena.psql(database, &call)))
            .collect();
        let mut all = 0.0;
        for writer in writers {
            let said = writer
                .join()
                .map_err(|_| anyhow!("a writer ended early"))??;
            let [commits] = figures(&said)?;
            all += commits;
        }
        Ok(all)
    })
}

fn outcome(scene: &Scene, seconds: f64, turns: &Turns) -> Outcome {
    let mut table = Table::new([
        "",
        "commits/s",
        "min",
        "max",
        "to no trigger",
        "min",
        "max",
        "server µs",
    ]);
    let (mut all, mut verdicts) = (Vec::new(), Vec::new());
    for ((listening, way, wake), with) in turns {
        let without = turns.get(&(*listening, *way, 0)).into_iter().flatten();
        let shares = with.iter().zip(without);
        let shares = shares.map(|(a, b)| a.commits_per_second / b.commits_per_second);
        let spread = |figure: fn(&Turn) -> f64| Spread::of(with.iter().map(figure).collect());
        let (Some(rate), Some(micros), Some(share)) = (
            spread(|turn| turn.commits_per_second),
            spread(|turn| turn.server_micros),
            Spread::of(shares.collect()),
        ) else {
            continue;
        };
        let name = format!(
            "{}, {}, {}",
            if *listening {
                "host listens"
            } else {
                "no host"
            },
            WAYS[*way].0,
            WAKES[*wake].0
        );
        table.row([
            name.clone(),
            format!("{:.0}", rate.median),
            format!("{:.0}", rate.min),
            format!("{:.0}", rate.max),
            format!("{:.3}", share.median),
            format!("{:.3}", share.min),
            format!("{:.3}", share.max),
            format!("{:.0}", micros.median),
        ]);
        if WAKES[*wake].1 == Some("events_wake") {
            let word = if share.median >= SHARE_MIN {
                "met"
            } else {
                "missed"
            };
            verdicts.push(format!("{name}: {word}"));
        }
        all.push(json!({
            "name": name,
            "commits_per_second": with.iter().map(|turn| turn.commits_per_second).collect::<Vec<_>>(),
            "server_micros": with.iter().map(|turn| turn.server_micros).collect::<Vec<_>>(),
            "share": { "median": share.median, "min": share.min, "max": share.max },
        }));
    }
    Outcome {
        name: "appends",
        table: format!(
            "{WRITERS} writers, {seconds} s a turn, {}, {}\n\n{table}\n\nat least {SHARE_MIN} of the throughput without a trigger is wanted:\n{}",
            scene.installation.version(),
            scene.machine,
            verdicts.join("\n")
        ),
        figures: Value::Array(all),
        picture: None,
    }
}
