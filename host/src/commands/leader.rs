//! `leader`: who leads, and handing over now.

pub mod resign;
pub mod show;

use super::control::actor;
use super::output::Output;
use crate::advisory_lock::key::Key;
use crate::config::Loaded;
use crate::database::identifier::Identifier;
use crate::database::session::Database;
use crate::error::Failure;
use crate::leadership::election::lock_of;

/// Arguments of `leader`.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

/// What to do with the leader.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show who leads
    Show(show::Args),
    /// Ask the leader to hand over to another replica, and wait until it has
    Resign(resign::Args),
}

/// Where the lock and the terms are.
#[derive(Debug, Clone)]
pub struct Target {
    /// The database of the lock.
    pub lock_database: Database,
    /// The read-model database.
    pub read_model: Database,
    /// `[read_model] control_schema`.
    pub control: Identifier,
    /// The lock.
    pub key: Key,
}

impl Target {
    /// The target of a configuration; of one projection, when each has its own leader.
    ///
    /// # Errors
    /// When a database URL is missing.
    pub fn of(loaded: &Loaded, projection: Option<&str>) -> Result<Self, Failure> {
        let config = &loaded.config;
        Ok(Self {
            lock_database: config.leader_database()?,
            read_model: config.read_model_database()?,
            control: config.read_model.control_schema.clone(),
            key: lock_of(config.leader.key, projection),
        })
    }
}

/// Runs `leader`.
///
/// # Errors
/// What the command says.
pub async fn run(args: Args, loaded: &Loaded, out: &Output) -> Result<(), Failure> {
    match args.command {
        Command::Show(args) => {
            let target = Target::of(loaded, args.projection.as_deref())?;
            show::run(&args, &target, out).await
        }
        Command::Resign(args) => {
            let target = Target::of(loaded, args.projection.as_deref())?;
            resign::run(&args, &target, &actor(), out).await
        }
    }
}
