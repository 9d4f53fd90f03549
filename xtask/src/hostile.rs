//! `cargo xtask hostile`: every guest of `plugins/fixtures` against a host, its own build or another one.
//!
//! The work is done by `projector_testkit::guests::trial`; here is what a person chooses and what is said at the end.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
};

use anyhow::{Context, Result, bail};
use projector_testkit::{
    ServerOptions,
    guests::trial::{Options, Report},
    site::Programs,
};

use crate::{generated::build_host, place, plugins, postgres, steps::Steps};

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// The program `projector-host` that is tried; built from this repository when none is named
    #[arg(long, value_name = "FILE")]
    host: Option<PathBuf>,
    /// So many traps in a row
    #[arg(long, default_value_t = 10_000)]
    traps: usize,
    /// On this major version of PostgreSQL
    #[arg(long)]
    pg: Option<u32>,
}

/// Builds what is needed and runs it; an error when a guest does not end as it should.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::begin();
    trial(&mut steps, arguments)
}

/// The same in CI, with fewer traps.
pub fn verify(steps: &mut Steps) -> Result<()> {
    let arguments = Arguments {
        host: None,
        traps: 1_000,
        pg: None,
    };
    trial(steps, &arguments)
}

fn trial(steps: &mut Steps, arguments: &Arguments) -> Result<()> {
    let host = match &arguments.host {
        Some(file) => file
            .canonicalize()
            .with_context(|| format!("cannot use {}", file.display()))?,
        None => steps.run("build the host", build_host)?,
    };
    steps.run("build the plugins", || plugins::build(None))?;
    let installation = steps.run("find PostgreSQL", || postgres::provide(arguments.pg))?;
    let programs = Programs {
        host,
        plugins: place::plugins(),
        cache: place::target().join("tmp/compiled-plugins"),
    };
    let options = Options {
        traps: arguments.traps,
        server: ServerOptions::default().installation(installation),
    };
    steps.run("hostile guests", || {
        // Its failures are panics, as in tests; their text has been printed by then.
        let Ok(report) = catch_unwind(AssertUnwindSafe(|| Report::of(programs, options))) else {
            bail!("the host did not survive, or did not answer");
        };
        println!("{report}");
        if !report.wrong().is_empty() {
            bail!("{}", report.wrong().join("\n"));
        }
        Ok(())
    })
}
