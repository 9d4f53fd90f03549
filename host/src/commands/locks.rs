//! `locks`: the advisory-lock toolkit on the command line.
//!
//! Works in the lock database of the configuration, or in the one that `--url-env` names, without any
//! configuration.

pub mod key;
pub mod list;
pub mod run;
pub mod supervise;

use std::collections::BTreeSet;

use secrecy::SecretString;

use super::output::Output;
use crate::advisory_lock::key::Key;
use crate::advisory_lock::registry::Registry;
use crate::config::{Config, Environment, LeaderScope, Loaded};
use crate::database::session::Database;
use crate::error::{Exit, Failure};
use crate::leadership::election::lock_of;

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
        for (key, label) in leader_locks(config) {
            registry
                .add_fixed(key, label)
                .map_err(|error| error.to_failure())?;
        }
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

/// The leader lock, or those of the projections whose plugins are here.
fn leader_locks(config: &Config) -> Vec<(Key, String)> {
    if config.leader.scope == LeaderScope::Host {
        return vec![(config.leader.key, "the leader lock".to_owned())];
    }
    let files = std::fs::read_dir(&config.plugins.dir).into_iter().flatten();
    let stems = files.flatten().filter_map(|file| {
        let path = file.path();
        let is_plugin = path.extension().is_some_and(|end| end == "wasm");
        is_plugin.then(|| {
            path.file_stem()
                .map(|stem| stem.to_string_lossy().into_owned())
        })?
    });
    let named = config.projection.iter().map(|one| one.name.clone());
    let names: BTreeSet<String> = stems.chain(named).collect();
    let lock = |name: String| {
        let key = lock_of(config.leader.key, Some(&name));
        (key, format!("the leader lock of {name}"))
    };
    names.into_iter().map(lock).collect()
}

/// Host name and pid.
fn node() -> String {
    format!(
        "{}-{}",
        gethostname::gethostname().to_string_lossy(),
        std::process::id()
    )
}
