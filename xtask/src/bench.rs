//! `cargo xtask bench`: what the host costs, and the same work done otherwise, on this machine.
//!
//! What counts are ratios between contestants of one round, run in turn; times alone say more about the machine.
//! Every contestant has to end with the same rows, or the run fails: a ratio between different results means nothing.

mod appends;
mod arena;
mod check;
mod contest;
mod host;
mod live;
mod many;
mod measure;
mod outcome;
mod picture;
mod report;
mod stores;
mod table;
mod watch;

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use projector_testkit::Installation;

use crate::{place, plugins, postgres, process, steps::Steps};
use arena::Arena;
use contest::Contest;
use outcome::Outcome;

/// PostgreSQL that all contestants can run on: one of them needs 16.
const POSTGRES_MAJOR: u32 = 18;

/// What the user may choose.
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("what"))]
pub struct Arguments {
    /// Small and short: the contest takes two minutes instead of a quarter of an hour
    #[arg(long)]
    quick: bool,
    /// Only the host and the set-based SQL: for those who change the host and measure again
    #[arg(long, group = "what")]
    duel: bool,
    /// The duel over stores of 10,000 events and more: whether the ratio stays the same
    #[arg(long, group = "what")]
    scale: bool,
    /// The duel over as many events of few rows and of many: whether memory grows with them
    #[arg(long, group = "what")]
    keys: bool,
    /// How soon a row can be seen, and what an idle host costs
    #[arg(long, group = "what")]
    live: bool,
    /// What waking the readers costs those who append
    #[arg(long, group = "what")]
    appends: bool,
    /// What fifty small projections on one host cost
    #[arg(long, group = "what")]
    many: bool,
    /// Counts fuel and statements, and compares them with the committed baseline
    #[arg(long, group = "what", conflicts_with = "quick")]
    check: bool,
    /// Makes what is counted the baseline
    #[arg(long, requires = "check")]
    bless: bool,
    /// Events in the store, of the contest and of --keys
    #[arg(long)]
    events: Option<usize>,
    /// Events in the largest store of --scale
    #[arg(long, requires = "scale", default_value_t = 1_000_000)]
    events_max: usize,
    /// How often each contestant runs
    #[arg(long)]
    rounds: Option<usize>,
    /// Runs on this major version of PostgreSQL
    #[arg(long, default_value_t = POSTGRES_MAJOR)]
    pg: u32,
    /// Measures this program of the host instead of building one
    #[arg(long)]
    program: Option<PathBuf>,
    /// Folder for the results; `target/bench` if not given
    #[arg(long)]
    out: Option<PathBuf>,
}

/// What every measurement needs.
pub struct Scene {
    /// The programs of PostgreSQL.
    pub installation: Installation,
    /// The program of the host.
    pub program: PathBuf,
    /// Whether to be short.
    pub quick: bool,
    /// The machine, and how busy it was before.
    pub machine: String,
    /// How often each contestant runs, if the user said so.
    pub rounds: Option<usize>,
    /// What is done, and how long it takes.
    pub steps: Steps,
}

/// Measures, prints a table, writes the files.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.check {
        return check::run(arguments.bless);
    }
    let mut steps = Steps::begin();
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => steps.run("build the host, optimised", build_host)?,
    };
    steps.run("build the plugins", || plugins::build(None))?;
    let mut scene = Scene {
        installation: steps.run("find PostgreSQL", || postgres::provide(Some(arguments.pg)))?,
        program,
        quick: arguments.quick,
        machine: machine(),
        rounds: arguments.rounds.map(|rounds| rounds.max(1)),
        steps,
    };
    let outcome = if arguments.scale {
        stores::scale(&mut scene, arguments.events_max)?
    } else if arguments.keys {
        stores::keys(&mut scene, arguments.events)?
    } else if arguments.live {
        live::run(&mut scene)?
    } else if arguments.appends {
        appends::run(&mut scene)?
    } else if arguments.many {
        many::run(&mut scene)?
    } else {
        contest(&mut scene, arguments.events, arguments.duel)?
    };
    let folder = arguments.out.clone();
    outcome.publish(&folder.unwrap_or_else(|| place::target().join("bench")))
}

/// Counts that do not depend on the machine, against the committed baseline.
pub fn check() -> Result<()> {
    check::run(false)
}

/// All contestants, or two of them, on one store.
fn contest(scene: &mut Scene, events: Option<usize>, duel: bool) -> Result<Outcome> {
    let (usual, rounds) = if scene.quick {
        (100_000, 2)
    } else {
        (1_000_000, 3)
    };
    let events = events.unwrap_or(usual).max(1);
    let rounds = scene.rounds.unwrap_or(rounds);
    let peers = match duel {
        true => None,
        false => Some(scene.steps.run("build the peers, optimised", build_peers)?),
    };
    // Building has kept the machine busy.
    scene.machine = machine();
    let program = scene.program.clone();
    let mut arena = Arena::start(scene.installation.clone(), &[])?;
    scene.steps.run(&format!("load {events} events"), || {
        arena.fill(events, &program)
    })?;
    let mut contest = Contest::new(arena, program, peers)?;
    for round in 1..=rounds {
        let name = format!("round {round} of {rounds}");
        scene.steps.run(&name, || contest.round())?;
    }
    let results = contest.results(scene);
    Ok(Outcome {
        name: "bench",
        table: report::table(&results),
        figures: report::json(&results),
        picture: Some(picture::svg(&results)),
    })
}

/// The host as it is shipped.
fn build_host() -> Result<PathBuf> {
    let arguments = [
        "build",
        "--quiet",
        "--release",
        "--package",
        "projector-host",
    ];
    process::run(process::cargo().current_dir(place::root()).args(arguments))?;
    Ok(place::target().join("release/projector-host"))
}

/// What it is measured against, in a target folder of its own.
fn build_peers() -> Result<PathBuf> {
    let target = place::target().join("peers");
    process::run(
        process::cargo()
            .current_dir(place::root().join("xtask/peers"))
            .args(["build", "--quiet", "--release", "--locked"])
            .env("CARGO_TARGET_DIR", &target),
    )?;
    Ok(target.join("release/projector-peers"))
}

/// How this machine calls itself, and how busy it is just now.
fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = process::ask(Command::new("uname").arg("-sm")).unwrap_or_default();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or_default();
    format!("{processors} processors, {kernel}, load {load}")
}
