//! The commands of this repository, for people and for CI:
//! `cargo xtask demo | test | verify | bench | torture | failover | hostile | plugins | sample`.
//!
//! Each sets up by itself what it needs (a WebAssembly target, a PostgreSQL) and says what it did. Nothing here is
//! part of the product.

mod bench;
mod debian;
mod demo;
mod failover;
mod generated;
mod hostile;
mod interrupt;
mod place;
mod plugins;
mod postgres;
mod process;
mod sample;
mod steps;
mod test;
mod torture;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    about = "The commands of this repository"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Shows the whole thing: a private PostgreSQL, 2,000 events, three projections, the dashboard
    Demo(demo::Arguments),
    /// Builds the plugins, starts a PostgreSQL and runs the tests of both workspaces
    Test(test::Arguments),
    /// Everything that CI checks: format, lints, docs, generated files, tests
    Verify(verify::Arguments),
    /// Measures the host against the same work done otherwise
    Bench(bench::Arguments),
    /// Three replicas, bad writers and faults of every kind, in an order that follows from a seed; then the judgement
    Torture(torture::Arguments),
    /// Measures how fast another replica leads, by what happened to the leader, and holds that against its bounds
    Failover(failover::Arguments),
    /// Guests that misbehave against a host, this build or another one: what becomes of each, and of the host
    Hostile(hostile::Arguments),
    /// Builds the shipped plugins into target/plugins
    Plugins(plugins::Arguments),
    /// Writes the generated files of the repository, or checks them
    Generate(generated::Arguments),
    /// Writes sample events, as many as wanted
    Sample(sample::Arguments),
    /// Prints the folder of the PostgreSQL programs that tests and demo use; installs them if there are none
    Postgres(postgres::Arguments),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Demo(arguments) => demo::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Torture(arguments) => torture::run(&arguments),
        Command::Failover(arguments) => failover::run(&arguments),
        Command::Hostile(arguments) => hostile::run(&arguments),
        Command::Plugins(arguments) => plugins::run(&arguments),
        Command::Generate(arguments) => generated::run(&arguments),
        Command::Sample(arguments) => sample::run(&arguments),
        Command::Postgres(arguments) => postgres::run(&arguments),
    }
}
