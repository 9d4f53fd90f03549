//! What must hold before a replica takes part: both databases reachable, migrated, and safe to read.
//!
//! A database that is down only delays. What a person has to mend (an unmigrated schema, a wrong password)
//! ends the process with a code that says so.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::advisory_lock::probe;
use crate::config::{Config, LeaderDatabase};
use crate::database::backoff;
use crate::database::error::Error as DatabaseError;
use crate::database::migrate::{self, Part, Target};
use crate::database::session::{Database, Purpose};
use crate::error::{Class, Exit, Failure};
use crate::event_store::layout::Layout;
use crate::event_store::preflight;

use super::standing::{Gate, Standing};

/// Waits between tries.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Longest wait for one answer of the check for poolers.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The two databases.
#[derive(Debug, Clone)]
pub struct Databases {
    /// Where events are read.
    pub event_store: Database,
    /// Where rows and checkpoints are written.
    pub read_model: Database,
}

impl Databases {
    /// As configured.
    ///
    /// # Errors
    /// When an URL is missing.
    pub fn of(config: &Config) -> Result<Self, Failure> {
        Ok(Self {
            event_store: config.event_store_database()?,
            read_model: config.read_model_database()?,
        })
    }

    /// Each with what is migrated in it.
    #[must_use]
    pub fn targets(&self, config: &Config) -> [(&Database, Target); 2] {
        let (events, control) = (
            &config.event_store.schema,
            &config.read_model.control_schema,
        );
        [
            (&self.event_store, Target::event_store(events.clone())),
            (&self.read_model, Target::read_model(control.clone())),
        ]
    }
}

/// Waits until the gate opens.
///
/// # Errors
/// What a person has to mend.
pub async fn pass(
    config: &Config,
    databases: &Databases,
    standing: &Standing,
    shutdown: &CancellationToken,
) -> Result<(), Failure> {
    let mut waits = backoff::waits(RETRY_MIN, RETRY_MAX);
    loop {
        let tried = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            tried = try_once(config, databases) => tried,
        };
        let failure = match tried {
            Ok(()) => {
                standing.set_gate(Gate::Open);
                return Ok(());
            }
            Err(Refused::Wait(failure)) => failure,
            Err(Refused::End(failure)) => return Err(failure),
        };
        let wait = waits.next().unwrap_or(RETRY_MAX);
        tracing::warn!(error = %failure, "cannot start yet; trying again");
        standing.set_gate(Gate::Closed(failure.to_string()));
        tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// A try that did not pass.
enum Refused {
    /// The database may come back.
    Wait(Failure),
    /// A person has to mend it.
    End(Failure),
}

async fn try_once(config: &Config, databases: &Databases) -> Result<(), Refused> {
    let lock = match config.leader.database {
        LeaderDatabase::EventStore => Part::EventStore,
        LeaderDatabase::ReadModel => Part::ReadModel,
    };
    for (database, target) in &databases.targets(config) {
        if config.host.auto_migrate {
            for migration in migrate::up(database, target).await.map_err(migration)? {
                tracing::info!(
                    database = database.name,
                    version = migration.version,
                    "migrated"
                );
            }
        }
        let mut connection = database.connect(&Purpose::Admin).await.map_err(refused)?;
        // The election looks for one before its lock.
        if target.part != lock {
            probe::refuse_pooler(&mut connection, database, PROBE_TIMEOUT)
                .await
                .map_err(refused)?;
        }
        migrate::check(&mut connection, target)
            .await
            .map_err(migration)?;
        if target.part == Part::EventStore {
            let layout = Layout::Projector {
                schema: target.schema.clone(),
            };
            preflight::identify(&mut connection, &layout)
                .await
                .map_err(|error| match error.class() {
                    Class::Transient => {
                        Refused::Wait(Failure::from_text(Exit::Unavailable, &error.to_string()))
                    }
                    Class::Poison | Class::Fatal => {
                        Refused::End(Failure::from_text(Exit::Config, &error.to_string()))
                    }
                })?;
        }
    }
    Ok(())
}

fn migration(error: migrate::Error) -> Refused {
    match error {
        migrate::Error::Unavailable(error) => refused(error),
        error if error.class() == Class::Transient => Refused::Wait(error.into()),
        error => Refused::End(error.into()),
    }
}

fn refused(error: DatabaseError) -> Refused {
    let failure = Failure::from(&error);
    if matches!(error, DatabaseError::Unfit { .. }) {
        return Refused::End(failure);
    }
    // The server answered and said no: a password, a role or a database that will not come by itself.
    let said_no = error
        .sqlstate()
        .is_some_and(|state| state.starts_with("28") || state == "3D000" || state == "42501");
    if said_no {
        Refused::End(failure)
    } else {
        Refused::Wait(failure)
    }
}
