//! The command line, a file for each command.
//!
//! Promises: data goes to standard output, everything else to standard error; a command ends with one of the
//! codes of [`Exit`]; a reader that closed the pipe is no failure. Must never: end the process, or print a
//! failure twice.

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{CommandFactory as _, FromArgMatches as _};

pub mod abandon;
pub mod append;
pub mod completions;
pub mod config;
mod control;
pub mod dead_letter;
pub mod explain;
pub mod leader;
pub mod locks;
pub mod migrate;
pub mod output;
pub mod pause;
pub mod resume;
pub mod run;
pub mod skip;
pub mod status;
mod store;
pub mod validate;
pub mod version;
pub mod wait;

use crate::config::section::host::DEFAULT_LOG;
use crate::config::{Environment, Flags, Loaded, LogFormat, Source};
use crate::error::{Exit, Failure};
use crate::telemetry::logging;
use output::Output;

/// Runs event-sourcing projections as WebAssembly plugins on PostgreSQL.
#[derive(Debug, clap::Parser)]
#[command(
    name = "projector-host",
    version,
    after_help = AFTER_HELP,
    max_term_width = 100
)]
pub struct Cli {
    /// Settings of the process.
    #[command(flatten)]
    pub process: Process,
    /// What to do; `run` when nothing is said.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Arguments of `run`, for a command line without a command.
    #[command(flatten, next_help_heading = "Options of `run`, which need no command")]
    pub run: run::Args,
}

const AFTER_HELP: &str = "\
Examples:
  projector-host config init > projections.toml   a commented configuration
  projector-host validate                         check it, the plugins and the databases

Exit codes: 0 done · 1 failed, or a check found a difference · 2 wrong usage · 69 a database is unavailable · \
70 bug in the host · 75 try again · 78 config, plugin or schema invalid";

/// Settings of the process, for every command.
#[derive(Debug, Clone, clap::Args)]
pub struct Process {
    /// The configuration file
    #[arg(
        long,
        global = true,
        env = "PROJECTOR_CONFIG",
        value_name = "FILE",
        default_value = "projections.toml"
    )]
    pub config: PathBuf,
    /// Name of this replica [env: PROJECTOR_NODE]
    #[arg(long, global = true, value_name = "NAME", hide_short_help = true)]
    pub node: Option<String>,
    /// What is logged: a level, or pairs such as `info,sqlx=warn` [env: PROJECTOR_LOG]
    #[arg(long, global = true, value_name = "FILTER", hide_short_help = true)]
    pub log: Option<String>,
    /// How log lines look [env: PROJECTOR_LOG_FORMAT]
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        value_parser = ["text", "json"],
        hide_short_help = true
    )]
    pub log_format: Option<String>,
}

/// Every command.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Start a replica (this is what happens without a command, too)
    Run(run::Args),
    /// Create or upgrade the host's own tables
    Migrate(store::MigrateArgs),
    /// Append events, one JSON object a line
    Append(store::AppendArgs),
    /// How far every projection is, and who leads
    Status(status::Args),
    /// Wait until projections have caught up
    Wait(wait::Args),
    /// Stop a projection after its running batch
    Pause(pause::Args),
    /// Let a paused or stopped projection go on
    Resume(resume::Args),
    /// Pass over the event at which a projection stands failed
    Skip(skip::Args),
    /// Retire a projection: drop its tables and everything that is recorded of it
    Abandon(abandon::Args),
    /// Show events that did not pass, try them again, or give them up
    DeadLetter(dead_letter::Args),
    /// Check the config, the plugins and the databases; lists all faults and changes nothing
    Validate(validate::Args),
    /// Show who holds advisory locks, name their keys, run commands under them
    Locks(locks::Args),
    /// Show who leads, or hand over
    Leader(leader::Args),
    /// Show effective values, print the JSON schema, or write a commented sample
    Config(config::Args),
    /// Explain an error code
    Explain(explain::Args),
    /// Print the completion script of a shell
    Completions(completions::Args),
    /// Print the versions of the host, of the plugin contract and of the engine
    Version(version::Args),
    /// Load a plugin file for the process that started this one
    #[command(hide = true)]
    LoadPlugin,
}

/// What a command works with.
#[derive(Debug)]
pub struct Context {
    /// The configuration.
    pub config: Loaded,
    /// Where answers go.
    pub out: Output,
}

/// Runs a command line to its end.
///
/// Failures and bugs are printed to standard error.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let environment = Environment::of_process();
    let out = Output::new(&environment);
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("projector-host {}: {panic}", env!("CARGO_PKG_VERSION"));
    }));
    let result = guarded(|| {
        let cli = match parse(arguments) {
            Ok(cli) => cli,
            Err(error) => {
                // Help and version are answers, not failures; a closed pipe is none either.
                let _ = error.print();
                return match error.exit_code() {
                    0 => Ok(()),
                    _ => Err(Failure::new(Exit::Usage, "")),
                };
            }
        };
        if matches!(cli.command, Some(Command::LoadPlugin)) {
            return crate::plugin::apart::serve();
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .map_err(|error| {
                Failure::new(Exit::Failed, format!("cannot start the runtime: {error}"))
            })?;
        let result = runtime.block_on(dispatch(cli, &environment, &out));
        // A blocked look-up or file must not hold up the end of the process.
        runtime.shutdown_background();
        result
    });
    match result {
        Ok(()) => Exit::Done,
        Err(failure) => {
            out.failure(&failure);
            failure.exit
        }
    }
}

/// Parses a command line.
///
/// # Errors
/// Wrong usage, and also help and version, which clap treats alike.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let matches = Cli::command().try_get_matches_from(arguments)?;
    let cli = Cli::from_arg_matches(&matches)?;
    if cli.command.is_some() && cli.run != run::Args::default() {
        // Otherwise `projector-host --dev status` would drop the flag silently.
        return Err(Cli::command().error(
            clap::error::ErrorKind::ArgumentConflict,
            "arguments of `run` stand after `run`, or without any command",
        ));
    }
    Ok(cli)
}

async fn dispatch(cli: Cli, environment: &Environment, out: &Output) -> Result<(), Failure> {
    let process = &cli.process;
    let command = cli.command.unwrap_or(Command::Run(cli.run));
    match command {
        Command::Run(args) => {
            let listen = args.http_listen.clone();
            let lines = if args.dev { Lines::Short } else { Lines::All };
            let context = context(process, environment, listen.clone(), lines, out)?;
            let (process, environment) = (process.clone(), environment.clone());
            let reread = move || load(&process, &environment, listen.clone());
            run::run(args, context, Arc::new(reread)).await
        }
        Command::Migrate(args) => {
            store::migrate(args, &context(process, environment, None, Lines::Few, out)?).await
        }
        Command::Append(args) => {
            store::append(args, &context(process, environment, None, Lines::Few, out)?).await
        }
        Command::Status(args) => {
            status::run(args, &context(process, environment, None, Lines::Few, out)?).await
        }
        Command::Wait(args) => {
            wait::run(args, &context(process, environment, None, Lines::Few, out)?).await
        }
        Command::Pause(args) => {
            pause::run(args, &context(process, environment, None, Lines::Few, out)?).await
        }
        Command::Resume(args) => {
            resume::run(args, &context(process, environment, None, Lines::Few, out)?).await
        }
        Command::Skip(args) => {
            skip::run(args, &context(process, environment, None, Lines::Few, out)?).await
        }
        Command::Abandon(args) => {
            abandon::run(args, &context(process, environment, None, Lines::Few, out)?).await
        }
        Command::DeadLetter(args) => {
            dead_letter::run(args, &context(process, environment, None, Lines::Few, out)?).await
        }
        Command::Validate(args) => {
            let loaded = load(process, environment, None);
            validate::run(args, loaded, out).await
        }
        Command::Locks(args) => {
            let load = || Ok(context(process, environment, None, Lines::Few, out)?.config);
            locks::run(args, environment, load, out).await
        }
        Command::Leader(args) => {
            let context = context(process, environment, None, Lines::Few, out)?;
            leader::run(args, &context.config, out).await
        }
        Command::Config(args) => config::run(args, || load(process, environment, None), out),
        Command::Explain(args) => explain::run(&args, out),
        Command::Completions(args) => completions::run(&args, out),
        Command::Version(args) => version::run(args, out),
        Command::LoadPlugin => crate::plugin::apart::serve(),
    }
}

fn load(
    process: &Process,
    environment: &Environment,
    http_listen: Option<String>,
) -> Result<Loaded, crate::config::Faults> {
    let flags = Flags {
        node: process.node.clone(),
        log: process.log.clone(),
        log_format: process.log_format.clone(),
        http_listen,
    };
    crate::config::load(&process.config, environment, &flags)
}

/// What is logged, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lines {
    /// What a replica does.
    All,
    /// The same for a person who writes a plugin.
    Short,
    /// Only what went wrong: the answer stands on standard output.
    Few,
}

/// Loads the configuration, says what is odd about it, and starts the log.
fn context(
    process: &Process,
    environment: &Environment,
    http_listen: Option<String>,
    lines: Lines,
    out: &Output,
) -> Result<Context, Failure> {
    let config = load(process, environment, http_listen)?;
    let host = &config.config.host;
    // The default that stands in a file says no more than an empty one.
    let is_asked_for = match config.source("host.log") {
        Source::Default => false,
        Source::File { .. } => host.log != DEFAULT_LOG,
        _ => true,
    };
    // A command that answers a question shows only what went wrong, unless somebody wants to see more.
    let filter = match lines {
        Lines::Few if !is_asked_for => "warn",
        _ => host.log.as_str(),
    };
    let format = match host.log_format {
        LogFormat::Text if lines == Lines::Short => logging::Format::Short,
        LogFormat::Text => logging::Format::Text,
        LogFormat::Json => logging::Format::Json,
    };
    logging::init(format, filter, out.colors_on_stderr())
        .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    for warning in &config.warnings {
        tracing::warn!(code = %warning.code, place = %warning.place, "{}", warning.message);
    }
    Ok(Context {
        config,
        out: out.clone(),
    })
}

/// Turns a panic into a failure that asks for a report.
fn guarded(run: impl FnOnce() -> Result<(), Failure>) -> Result<(), Failure> {
    std::panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        Err(Failure::new(
            Exit::Bug,
            "this is a bug in projector-host: please report it with the lines above and the command that you ran",
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_panic_becomes_exit_code_70_and_asks_for_a_report() {
        let failure = guarded(|| panic!("on purpose")).expect_err("it panicked");
        assert_eq!(failure.exit, Exit::Bug);
        assert!(failure.message.contains("please report"), "{failure}");
    }
}
