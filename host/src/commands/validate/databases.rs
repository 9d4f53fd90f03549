//! Checks of the two databases: reachable, recent enough, migrated, safe to read, and fit for the leader lock.

use std::time::Duration;

use sqlx::{PgConnection, Row as _};

use super::Finding;
use crate::advisory_lock::probe;
use crate::config::{Config, Fault, LeaderDatabase};
use crate::database::error::Error;
use crate::database::error::UNAVAILABLE;
use crate::database::migrate::{self, Part, Target};
use crate::database::session::{Database, Purpose};
use crate::error::{Code, Exit};
use crate::event_store::layout::Layout;
use crate::event_store::preflight;

/// Oldest major version of PostgreSQL that the host works with.
const VERSION_MIN: i32 = 14;

/// Longest wait for one answer of the check for poolers.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// What is asked of one database.
struct Check<'a> {
    place: String,
    database: &'a Database,
    target: Target,
    auto_migrate: bool,
    holds_lock: bool,
}

/// What is wrong with the databases; those without a URL are left to the check of secrets.
pub(super) async fn check(config: &Config) -> Vec<Finding> {
    let events = Target::event_store(config.event_store.schema.clone());
    let control = Target::read_model(config.read_model.control_schema.clone());
    let lock = config.leader.database;
    let (events, rows) = tokio::join!(
        one(
            config,
            config.event_store_database(),
            events,
            lock == LeaderDatabase::EventStore
        ),
        one(
            config,
            config.read_model_database(),
            control,
            lock == LeaderDatabase::ReadModel
        ),
    );
    events.into_iter().chain(rows).collect()
}

async fn one(
    config: &Config,
    database: Result<Database, Fault>,
    target: Target,
    holds_lock: bool,
) -> Vec<Finding> {
    let Ok(database) = database else {
        return Vec::new();
    };
    let check = Check {
        place: format!("{} database", database.name),
        database: &database,
        target,
        auto_migrate: config.host.auto_migrate,
        holds_lock,
    };
    let mut findings = Vec::new();
    let connected = database.connect(&Purpose::Admin).await;
    let done = match connected {
        Ok(mut connection) => check.all(&mut connection, &mut findings).await,
        Err(error) => Err(error),
    };
    if let Err(error) = done {
        findings.push(check.unusable(&error));
    }
    findings
}

impl Check<'_> {
    async fn all(
        &self,
        connection: &mut PgConnection,
        findings: &mut Vec<Finding>,
    ) -> Result<(), Error> {
        let row = sqlx::query(include_str!("server.sql"))
            .fetch_one(&mut *connection)
            .await?;
        let version = row.try_get::<i32, _>("version")? / 10_000;
        if version < VERSION_MIN {
            findings.push(
                self.invalid(format!("the server is PostgreSQL {version}"))
                    .hint(format!("PostgreSQL {VERSION_MIN} or later is needed")),
            );
            return Ok(());
        }
        if self.holds_lock {
            let probed = probe::check(connection, self.database, PROBE_TIMEOUT).await;
            findings.extend(probed.err().map(|error| {
                let finding = self.invalid(error.to_string());
                match error.code() {
                    Some(code) => finding.code(code),
                    None => finding,
                }
            }));
        } else {
            probe::refuse_pooler(connection, self.database, PROBE_TIMEOUT).await?;
        }
        if row.try_get("in_recovery")? {
            if findings.is_empty() {
                findings.push(
                    self.invalid("the server is a standby")
                        .hint("name the primary: a standby cannot be written to"),
                );
            }
            return Ok(());
        }
        if self.is_migrated(connection, findings).await && self.target.part == Part::EventStore {
            let schema = self.target.schema.clone();
            let read = preflight::identify(connection, &Layout::Projector { schema }).await;
            findings.extend(read.err().map(|error| self.coded(&error.to_string())));
        }
        Ok(())
    }

    async fn is_migrated(
        &self,
        connection: &mut PgConnection,
        findings: &mut Vec<Finding>,
    ) -> bool {
        match migrate::check(connection, &self.target).await {
            Ok(()) => true,
            Err(migrate::Error::Unmigrated { .. }) if self.auto_migrate => false,
            Err(error) => {
                findings.push(
                    Finding::error(error.exit(), &self.place, error.to_string()).code(error.code()),
                );
                false
            }
        }
    }

    fn invalid(&self, message: impl Into<String>) -> Finding {
        Finding::error(Exit::Config, &self.place, message)
    }

    /// Takes the code out of a text that begins with one.
    fn coded(&self, text: &str) -> Finding {
        match Code::split(text) {
            Some((code, rest)) => self.invalid(rest).code(code),
            None => self.invalid(text),
        }
    }

    fn unusable(&self, error: &Error) -> Finding {
        if let Error::Unfit { code, message } = error {
            return self.invalid(message).code(*code);
        }
        Finding::error(Exit::Unavailable, &self.place, error.to_string())
            .code(UNAVAILABLE)
            .hint("check that the server runs, and host, database, user and password of its URL")
    }
}
