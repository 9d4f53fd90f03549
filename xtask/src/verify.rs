//! `cargo xtask verify`: everything that CI checks, in one command, so that CI has no surprises.
//!
//! Goes on after a failure: all that is wrong shows in one run.

use anyhow::{Result, bail};

use crate::{bench, generated, hostile, place, process, steps::Steps, test, torture};

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// Leaves the tests out: format, lints, docs and generated files only
    #[arg(long)]
    quick: bool,
}

/// One check: what it is called and how it is done.
type Check = (&'static str, fn() -> Result<()>);

const CHECKS: &[Check] = &[
    ("format", format),
    ("lint the host", lint_host),
    ("lint the plugins", lint_plugins),
    ("docs", docs),
    ("generated files", || {
        generated::run(&generated::Arguments::check())
    }),
];

/// Runs all checks, then the tests, then the guests that misbehave and a minute of torture.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::begin();
    for (name, check) in CHECKS {
        // Noted in the summary.
        let _ = steps.run(name, check);
    }
    if !arguments.quick {
        let _ = test::all(&mut steps, None, &[]);
        let _ = hostile::verify(&mut steps);
        let _ = steps.run("count fuel and statements", bench::check);
        let _ = torture::verify(&mut steps);
    }
    println!("\n{}", steps.summary());
    match steps.failures() {
        0 => Ok(()),
        1 => bail!("1 step failed"),
        failures => bail!("{failures} steps failed"),
    }
}

fn format() -> Result<()> {
    let fmt = ["fmt", "--all", "--check"];
    process::run(process::cargo().current_dir(place::root()).args(fmt))?;
    process::run(process::cargo().current_dir(place::guests()).args(fmt))
}

fn lint_host() -> Result<()> {
    process::run(process::cargo().current_dir(place::root()).args(LINT))
}

fn lint_plugins() -> Result<()> {
    process::run(test::native(process::cargo().args(LINT)))
}

const LINT: [&str; 7] = [
    "clippy",
    "--workspace",
    "--all-targets",
    "--locked",
    "--",
    "-D",
    "warnings",
];

fn docs() -> Result<()> {
    let arguments = [
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
        "--locked",
    ];
    process::run(
        process::cargo()
            .current_dir(place::root())
            .args(arguments)
            .env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    process::run(test::native(
        process::cargo()
            .args(arguments)
            .env("RUSTDOCFLAGS", "-D warnings"),
    ))
}
