//! Creating and upgrading the host's own tables: numbered SQL templates, applied once, in order.
//!
//! Promises: a migration and its row in `projector_migrations` commit together; several replicas may migrate
//! at once and each migration runs once; an existing schema needs no right to create schemas. Must never:
//! touch a database that a newer version migrated, or a migration whose text differs from the applied one.

mod error;
mod part;
mod steps;

use std::time::Duration;

use sqlx::postgres::PgConnection;

use super::session::{Database, Purpose, bounded};

pub use error::{DENIED, Error, READ_ONLY, UNMIGRATED};
pub use part::{Migration, Part, Target};

/// Longest wait for another process that migrates the same schema.
pub const LOCK_WAIT_MAX: Duration = Duration::from_secs(60);

/// Longest time that one migration may take.
pub const MIGRATION_TIMEOUT: Duration = Duration::from_secs(3600);

/// First number of the advisory locks that keep two migrations of one schema apart; the second is a hash of
/// the schema's name.
pub const LOCK_CLASS: i32 = 0x5052_4A4D;

/// Longest time for reading what was applied.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);

/// A row of `projector_migrations`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The migration's number.
    pub version: i32,
    /// Its name at that time.
    pub name: String,
    /// SHA-256 of its template, lower-case hexadecimal.
    pub checksum: String,
    /// When, as the server writes a time in UTC.
    pub applied_at: String,
}

/// What was applied, compared with what this version of the host knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// Applied and unchanged.
    pub applied: Vec<Applied>,
    /// Known and not applied.
    pub pending: Vec<Migration>,
    /// Applied and unknown here: a newer version of the host did it.
    pub newer: Vec<Applied>,
    /// Applied with another text than the one known here.
    pub changed: Vec<Applied>,
}

/// Looks at one target before anything is changed.
///
/// # Errors
/// When the database is unavailable, migrated by a newer version or changed.
pub async fn look(database: &Database, target: &Target) -> Result<Status, Error> {
    let mut connection = database
        .connect(&Purpose::Admin)
        .await
        .map_err(|error| error::told(target, error))?;
    let status = status(&mut connection, target).await?;
    refuse_foreign(target, &status)?;
    Ok(status)
}

/// What was applied to a schema and what is to be done; changes nothing.
///
/// # Errors
/// When the database cannot be asked.
pub async fn status(connection: &mut PgConnection, target: &Target) -> Result<Status, Error> {
    let reading = async {
        let applied = steps::applied(connection, target).await?;
        Ok::<_, super::error::Error>(compare(target.part.migrations(), applied))
    };
    bounded("", STATUS_TIMEOUT, reading)
        .await
        .map_err(|error| error::told(target, error))
}

/// Says whether the host may work with a schema as it stands; changes nothing.
///
/// # Errors
/// [`Error::Unmigrated`], [`Error::Newer`], [`Error::Changed`], [`Error::ReadOnly`], or that the database
/// cannot be asked.
pub async fn check(connection: &mut PgConnection, target: &Target) -> Result<(), Error> {
    let status = status(connection, target).await?;
    refuse_foreign(target, &status)?;
    if let Some(first) = status.pending.first() {
        return Err(Error::Unmigrated {
            part: target.part,
            schema: target.schema.clone(),
            pending: status.pending.len(),
            first: first.version,
        });
    }
    match target.part {
        // The host only reads it; the lock, where it lives there, is checked by the election.
        Part::EventStore => Ok(()),
        Part::ReadModel => steps::writable(connection, target).await,
    }
}

/// Applies what is missing and returns it, in order. Safe from several processes at once.
///
/// # Errors
/// When the database is unavailable, read-only, migrated by a newer version or changed, when another
/// process migrates for longer than [`LOCK_WAIT_MAX`], or when a statement fails.
pub async fn up(database: &Database, target: &Target) -> Result<Vec<Migration>, Error> {
    let mut connection = database
        .connect(&Purpose::Admin)
        .await
        .map_err(|error| error::told(target, error))?;
    let mut done = Vec::new();
    loop {
        let status = status(&mut connection, target).await?;
        refuse_foreign(target, &status)?;
        if status.pending.is_empty() {
            return Ok(done);
        }
        steps::writable(&mut connection, target).await?;
        let step = bounded(
            database.name,
            MIGRATION_TIMEOUT + LOCK_WAIT_MAX,
            steps::apply_next(&mut connection, target),
        );
        match step.await.map_err(|error| error::told(target, error))? {
            steps::Step::Applied(migration) => done.push(migration),
            steps::Step::OthersDidIt => {}
            steps::Step::Locked => {
                return Err(Error::Busy {
                    part: target.part,
                    schema: target.schema.clone(),
                });
            }
        }
    }
}

/// All migrations of a target as text, for people who apply them with their own tools.
#[must_use]
pub fn sql(target: &Target) -> String {
    let mut text = steps::preamble(target);
    for migration in target.part.migrations() {
        text.push_str(&steps::script(migration, target));
    }
    text
}

/// Refuses what a newer version or a changed migration left.
///
/// # Errors
/// [`Error::Newer`] or [`Error::Changed`].
pub fn refuse_foreign(target: &Target, status: &Status) -> Result<(), Error> {
    if let Some(newer) = status.newer.last() {
        return Err(Error::Newer {
            part: target.part,
            schema: target.schema.clone(),
            found: newer.version,
            known: target.part.migrations().len(),
        });
    }
    if let Some(changed) = status.changed.first() {
        return Err(Error::Changed {
            part: target.part,
            schema: target.schema.clone(),
            version: changed.version,
            name: changed.name.clone(),
        });
    }
    Ok(())
}

fn compare(known: &'static [Migration], found: Vec<Applied>) -> Status {
    let mut status = Status {
        pending: known
            .iter()
            .filter(|migration| !found.iter().any(|row| row.version == migration.version))
            .copied()
            .collect(),
        ..Status::default()
    };
    for row in found {
        match known
            .iter()
            .find(|migration| migration.version == row.version)
        {
            None => status.newer.push(row),
            Some(migration) if migration.checksum() == row.checksum => status.applied.push(row),
            Some(_) => status.changed.push(row),
        }
    }
    status
}
