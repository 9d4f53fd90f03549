//! `locks`: the advisory-lock toolkit on the command line.
//!
//! Works in the lock database of the configuration, or in the one that `--url-env` names, without any
//! configuration.

pub mod key;
pub mod list;
pub mod run;
pub mod supervise;

use secrecy::SecretString;

use super::output::Output;
use crate::advisory_lock::registry::Registry;
use crate::config::{Environment, Loaded};
use crate::database::session::Database;
use crate::error::{Exit, Failure};

/// Arguments of `locks`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do with locks.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show who holds and who waits for advisory locks
    List(list::Args),
    /// Print the key that a lock name stands for
    Key(key::Args),
    /// Run a command under a lock
    Run(run::Args),
    /// Watches a command for `locks run`
    #[command(hide = true)]
    Supervise(supervise::Args),
}

/// Where the locks are, and what they are called.
#[derive(Debug)]
pub struct Target {
    /// The lock database.
    pub database: Database,
    /// Known names.
    pub registry: Registry,
}

/// Runs `locks`. The configuration is only loaded by what needs it.
///
/// # Errors
/// What the command says.
pub async fn run(
    args: Args,
    environment: &Environment,
    load: impl FnOnce() -> Result<Loaded, Failure>,
    out: &Output,
) -> Result<(), Failure> {
    match args.command {
        Command::Key(args) => key::run(&args, out),
        Command::List(args) => {
            let target = target(args.url_env.as_deref(), environment, load)?;
            list::run(&args, &target, out).await
        }
        Command::Run(args) => {
            let target = target(args.url_env.as_deref(), environment, load)?;
            run::run(args, &target, out).await
        }
        Command::Supervise(args) => supervise::run(args).await,
    }
}

fn target(
    url_env: Option<&str>,
    environment: &Environment,
    load: impl FnOnce() -> Result<Loaded, Failure>,
) -> Result<Target, Failure> {
    let Some(name) = url_env else {
        let loaded = load()?;
        let config = &loaded.config;
        let locks = config.locks.registry.iter();
        let names = locks.map(|(name, lock)| (lock.namespace.as_str(), name.as_str()));
        let mut registry = Registry::new(names).map_err(|error| error.to_failure())?;
        registry
            .add_fixed(config.leader.key, "the leader lock")
            .map_err(|error| error.to_failure())?;
        return Ok(Target {
            database: config.leader_database()?,
            registry,
        });
    };
    let url = environment
        .get_os(name)
        .and_then(|url| url.to_str())
        .ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                format!("the environment variable {name} holds no database URL"),
            )
        })?;
    Ok(Target {
        database: Database::new("lock", SecretString::from(url), "locks", node()),
        registry: Registry::default(),
    })
}

/// Host name and pid.
fn node() -> String {
    format!(
        "{}-{}",
        gethostname::gethostname().to_string_lossy(),
        std::process::id()
    )
}
