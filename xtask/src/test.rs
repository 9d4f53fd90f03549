//! `cargo xtask test`: sets up what the tests need and runs those of both workspaces.

use std::process::Command;

use anyhow::Result;
use projector_testkit::site::PLUGINS_VARIABLE;
use projector_testkit::{BIN_VARIABLE, Installation, SERVER_VARIABLE, Server, ServerOptions};

use crate::{debian, place, plugins, postgres, process, steps::Steps};

/// Debian's packages that single tests need; without them these are skipped, and say so.
const EXTRAS: [&str; 3] = ["pgbouncer", "libfaketime", "iproute2"];

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// Runs the tests on this major version of PostgreSQL
    #[arg(long)]
    pg: Option<u32>,
    /// Goes to `cargo test` of the host's workspace; the plugins' own tests are then left out
    #[arg(last = true)]
    cargo: Vec<String>,
}

/// Runs them and tells the times.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut steps = Steps::begin();
    let result = all(&mut steps, arguments.pg, &arguments.cargo);
    eprintln!("\n{}", steps.summary());
    result
}

/// All tests, or those that the arguments for `cargo test` select.
pub fn all(steps: &mut Steps, major: Option<u32>, selection: &[String]) -> Result<()> {
    steps.run("build the plugins", || plugins::build(None))?;
    if selection.is_empty() {
        steps.run("test the plugins", test_plugins)?;
    }
    steps.run("find what single tests need", provide_extras)?;
    let installation = steps.run("find PostgreSQL", || postgres::provide(major))?;
    let name = format!("test the host on PostgreSQL {}", installation.major());
    steps.run(&name, || test_host(installation, selection))
}

/// Gets what is missing of [`EXTRAS`] where that is possible without asking. Nobody fails for want of them.
fn provide_extras() -> Result<()> {
    let is_missing = |package: &&str| {
        let mut query = Command::new("dpkg-query");
        process::ask(query.args(["--show", "--showformat", "${db:Status-Status}", package]))
            .is_none_or(|status| status.trim() != "installed")
    };
    let missing: Vec<&str> = EXTRAS.into_iter().filter(is_missing).collect();
    if missing.is_empty() || !debian::can_install() {
        return Ok(());
    }
    if let Err(error) = debian::install(&missing) {
        eprintln!(
            "    tests that need {} are skipped: {error:#}",
            missing.join(", ")
        );
    }
    Ok(())
}

/// The plugins' own tests run natively: their logic does not know that it will be WebAssembly.
fn test_plugins() -> Result<()> {
    process::run(native(process::cargo().args([
        "test",
        "--workspace",
        "--no-fail-fast",
    ])))
}

fn test_host(installation: Installation, selection: &[String]) -> Result<()> {
    let bin = installation.bin().to_path_buf();
    let server = Server::start(ServerOptions::default().installation(installation))?;
    let mut command = process::cargo();
    command
        .current_dir(place::root())
        // All that is wrong shows in one run.
        .args(["test", "--no-fail-fast"])
        .args(workspace(selection))
        .args(selection);
    command
        .env(SERVER_VARIABLE, server.url("postgres"))
        .env(BIN_VARIABLE, bin);
    process::run(command.env(PLUGINS_VARIABLE, place::plugins()))
}

/// A command in the guests' workspace for this machine, with a target folder of its own.
pub fn native(command: &mut Command) -> &mut Command {
    command
        .current_dir(place::guests())
        .env("CARGO_TARGET_DIR", place::target().join("guests-native"))
}

/// The whole workspace, unless a package is selected.
fn workspace(selection: &[String]) -> &'static [&'static str] {
    let names_a_package = |argument: &String| {
        argument.starts_with("-p")
            || argument.starts_with("--package")
            || argument == "--workspace"
            || argument == "--all"
    };
    let before_filters = selection
        .split(|argument| argument == "--")
        .next()
        .unwrap_or_default();
    if before_filters.iter().any(names_a_package) {
        &[]
    } else {
        &["--workspace"]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_workspace_is_tested_unless_a_package_is_named() {
        let check = |selection: &[&str], expected: &[&str]| {
            let selection: Vec<String> = selection.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(workspace(&selection), expected, "{selection:?}");
        };
        check(&[], &["--workspace"]);
        check(&["some_filter"], &["--workspace"]);
        check(&["-p", "xtask"], &[]);
        check(&["--package=xtask", "filter"], &[]);
        check(&["filter", "--", "-p"], &["--workspace"]);
    }
}
