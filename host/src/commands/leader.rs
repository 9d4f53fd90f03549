//! `leader`: who leads, and handing over now.

pub mod resign;
pub mod show;

use super::control::actor;
use super::output::Output;
use crate::advisory_lock::key::Key;
use crate::config::{LeaderScope, Loaded};
use crate::database::identifier::Identifier;
use crate::database::session::Database;
use crate::error::{Exit, Failure};
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

/// Whether there is such a leader at all.
fn fits(scope: LeaderScope, projection: Option<&str>) -> Result<(), Failure> {
    let message = match (scope, projection) {
        (LeaderScope::Host, Some(_)) => {
            "one leader runs every projection ([leader] scope = \"host\"); leave --projection out"
        }
        (LeaderScope::Projection, None) => {
            "each projection has its own leader ([leader] scope = \"projection\"); name it with --projection NAME"
        }
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Usage, message))
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
    /// `[leader] group`.
    pub group: String,
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
            group: config.leader.group.clone(),
        })
    }
}

/// Runs `leader`.
///
/// # Errors
/// What the command says.
pub async fn run(args: Args, loaded: &Loaded, out: &Output) -> Result<(), Failure> {
    let scope = loaded.config.leader.scope;
    match args.command {
        Command::Show(args) if scope == LeaderScope::Projection && args.projection.is_none() => {
            show::all(&args, loaded, out).await
        }
        Command::Show(args) => {
            fits(scope, args.projection.as_deref())?;
            let target = Target::of(loaded, args.projection.as_deref())?;
            show::run(&args, &target, out).await
        }
        Command::Resign(args) => {
            fits(scope, args.projection.as_deref())?;
            let target = Target::of(loaded, args.projection.as_deref())?;
            resign::run(&args, &target, &actor(), out).await
        }
    }
}
