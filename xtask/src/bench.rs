//! `cargo xtask bench`: the host against the same work done otherwise, in one run and in turn, on this machine.
//!
//! What counts are ratios between contestants of one round; times alone say more about the machine. Every contestant
//! has to end with the same rows, or the run fails: a ratio between different results means nothing.

mod arena;
mod check;
mod contest;
mod host;
mod live;
mod measure;
mod picture;
mod report;

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result};

use crate::{place, plugins, postgres, process, steps::Steps};
use arena::Arena;
use contest::Contest;

/// PostgreSQL that all contestants can run on: one of them needs 16.
const POSTGRES_MAJOR: u32 = 18;

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// Two minutes instead of half an hour: 100,000 events, two rounds
    #[arg(long)]
    quick: bool,
    /// Counts fuel and statements instead, and compares them with the committed baseline
    #[arg(long, conflicts_with = "quick")]
    check: bool,
    /// Makes what is counted the baseline
    #[arg(long, requires = "check")]
    bless: bool,
    /// Measures instead how soon a row can be seen, and what an idle host costs
    #[arg(long, conflicts_with = "check")]
    live: bool,
    /// Events in the store
    #[arg(long)]
    events: Option<usize>,
    /// How often each contestant runs
    #[arg(long)]
    rounds: Option<usize>,
    /// Runs on this major version of PostgreSQL
    #[arg(long, default_value_t = POSTGRES_MAJOR)]
    pg: u32,
    /// Only the host and the set-based SQL: for those who change the host and measure again
    #[arg(long)]
    duel: bool,
    /// Measures this program of the host instead of building one
    #[arg(long)]
    program: Option<PathBuf>,
    /// Folder for `bench.json` and `bench.svg`; `target/bench` if not given
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Measures, prints a table, writes the files.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.check {
        return check::run(arguments.bless);
    }
    let (events, rounds) = match arguments.quick {
        true => (100_000, 2),
        false => (1_000_000, 3),
    };
    let events = arguments.events.unwrap_or(events).max(1);
    let rounds = arguments.rounds.unwrap_or(rounds).max(1);
    let mut steps = Steps::begin();
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => steps.run("build the host, optimised", build_host)?,
    };
    steps.run("build the plugins", || plugins::build(None))?;
    let peers = match arguments.duel || arguments.live {
        true => None,
        false => Some(steps.run("build the peers, optimised", build_peers)?),
    };
    let installation = steps.run("find PostgreSQL", || postgres::provide(Some(arguments.pg)))?;
    if arguments.live {
        let seconds = if arguments.quick { 10 } else { 60 };
        let measured = live::run(&installation, &program, seconds)?;
        return write(arguments, "live.json", format!("{measured:#}\n"));
    }
    let version = installation.version().to_owned();
    let mut arena = steps.run("start a durable PostgreSQL", || {
        Arena::start(installation, &[])
    })?;
    steps.run(&format!("load {events} events"), || {
        arena.fill(events, program.clone())
    })?;

    let mut contest = Contest::new(arena, program, peers)?;
    for round in 1..=rounds {
        steps.run(&format!("round {round} of {rounds}"), || contest.round())?;
    }
    let results = contest.results(version);
    println!("\n{}", report::table(&results));

    write(arguments, "bench.json", report::json(&results))?;
    write(arguments, "bench.svg", picture::svg(&results))
}

fn write(arguments: &Arguments, name: &str, text: String) -> Result<()> {
    let folder = arguments.out.clone();
    let folder = folder.unwrap_or_else(|| place::target().join("bench"));
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let file = folder.join(name);
    fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    println!("{}", file.display());
    Ok(())
}

/// Counts that do not depend on the machine, against the committed baseline.
pub fn check() -> Result<()> {
    check::run(false)
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

/// How this machine calls itself.
fn machine() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = process::ask(Command::new("uname").arg("-sm")).unwrap_or_default();
    format!("{processors} processors, {kernel}")
}
