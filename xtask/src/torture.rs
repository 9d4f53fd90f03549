//! `cargo xtask torture`: three real replicas, writers that behave badly, and a nemesis; then the judgement.
//!
//! The work is done by `projector_testkit::torture`; here is what a person chooses and what is said at the end.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, bail};
use projector_testkit::{
    Installation, ServerOptions,
    site::{Databases, Programs},
    torture,
};

use crate::{generated::build_host, interrupt::Interrupt, place, plugins, postgres, steps::Steps};

/// In `cargo xtask verify`.
const VERIFY_SECONDS: u64 = 60;

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// Faults go on for this long at least, and until every kind has happened
    #[arg(long, default_value_t = VERIFY_SECONDS)]
    seconds: u64,
    /// Repeats a run: the same faults in the same order; otherwise one is chosen and printed
    #[arg(long)]
    seed: Option<u64>,
    /// Where events and rows live; otherwise the seed chooses
    #[arg(long, value_enum)]
    databases: Option<Layout>,
    /// One leader for everything, or one for each projection; otherwise the seed chooses
    #[arg(long, value_enum)]
    scope: Option<Scope>,
    /// On this major version of PostgreSQL
    #[arg(long)]
    pg: Option<u32>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Layout {
    /// In one database
    One,
    /// On two servers
    Two,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Scope {
    /// One leader for everything
    Host,
    /// A leader for each projection
    Projection,
}

/// Builds what is needed and runs it.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::begin();
    let prepared = prepare(&mut steps, arguments.pg)?;
    steps.run("torture", || torment(prepared, arguments))
}

/// A run as long as CI has time for, with a seed of its own.
pub fn verify(steps: &mut Steps) -> Result<()> {
    let prepared = prepare(steps, None)?;
    let arguments = Arguments {
        seconds: VERIFY_SECONDS,
        seed: None,
        databases: None,
        scope: None,
        pg: None,
    };
    steps.run("torture", || torment(prepared, &arguments))
}

/// Programs to run and a PostgreSQL to run them on.
pub fn prepare(steps: &mut Steps, major: Option<u32>) -> Result<(Programs, Installation)> {
    let host = steps.run("build the host", build_host)?;
    steps.run("build the plugins", || plugins::build(None))?;
    let installation = steps.run("find PostgreSQL", || postgres::provide(major))?;
    let programs = Programs {
        host,
        plugins: place::plugins(),
        cache: place::target().join("tmp/compiled-plugins"),
    };
    Ok((programs, installation))
}

fn torment(
    (programs, installation): (Programs, Installation),
    arguments: &Arguments,
) -> Result<()> {
    let seed = arguments.seed.unwrap_or_else(any_seed);
    let (databases, place) = match arguments.databases {
        Some(Layout::One) => (Databases::One, "one"),
        None if seed & 1 == 0 => (Databases::One, "one"),
        Some(Layout::Two) | None => (Databases::Two, "two"),
    };
    let (scope, leaders) = match arguments.scope {
        Some(Scope::Host) => (torture::Scope::Host, "host"),
        None if seed & 2 == 0 => (torture::Scope::Host, "host"),
        Some(Scope::Projection) | None => (torture::Scope::Projection, "projection"),
    };
    let again = format!(
        "cargo xtask torture --seconds {} --seed {seed} --databases {place} --scope {leaders}",
        arguments.seconds
    );
    let interrupt = Interrupt::listen()?;
    eprintln!("    {again}");
    let options = torture::Options {
        time: Duration::from_secs(arguments.seconds),
        seed,
        databases,
        scope,
        server: ServerOptions::default().installation(installation),
        interrupted: interrupt.flag(),
    };
    // Its failures are panics, as in tests; their text has been printed by then.
    let Ok(report) = catch_unwind(AssertUnwindSafe(|| torture::run(programs, &options))) else {
        bail!("seed {seed} failed; this repeats it: {again}");
    };
    println!("{report}");
    Ok(())
}

fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |time| u64::from(time.subsec_nanos()) / 1_000)
}
