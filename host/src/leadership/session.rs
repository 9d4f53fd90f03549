//! The lock session: one owned connection that competes for the leader lock and then proves that it lives.
//!
//! Promises: [`Session`] and [`Held`] are different types, so the lock cannot be tried again while it is held
//! (the server would say yes and stack it); every statement has a client-side bound, and an error consumes
//! the session, which closes the socket and frees the lock. Must never: run anything else, open a
//! transaction, or come from a pool.

use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use uuid::Uuid;

use super::error::{Error, Refusal};
use super::holder::{self, Holder};
use crate::advisory_lock::key::Key;
use crate::advisory_lock::probe;
use crate::database::session::{Database, Purpose, bounded};

/// Longest closing of a session; the server has freed the lock by then anyway.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Where and how the lock is taken.
#[derive(Debug, Clone)]
pub struct Site {
    /// The lock database.
    pub database: Database,
    /// The lock.
    pub key: Key,
    /// Bound on each statement, on both sides.
    pub local_lease: Duration,
    /// The server ends the session after this much silence.
    pub server_lease: Duration,
}

/// What stays the same while a session lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The server process behind the session.
    pub backend_pid: i32,
    /// When the server was started, as it writes it.
    pub postmaster_start: String,
    /// System identifier and name of the database: advisory locks are per database.
    pub lock_database: String,
    /// Rises with each promotion; empty in recovery.
    pub timeline: String,
}

/// An open session without the lock.
#[derive(Debug)]
pub struct Session {
    connection: PgConnection,
    facts: Facts,
    site: Site,
}

/// The session that holds the lock.
#[derive(Debug)]
pub struct Held {
    session: Session,
}

/// How a try ended.
#[derive(Debug)]
pub enum Attempt {
    /// The lock is ours.
    Won(Held),
    /// Somebody else has it.
    Denied(Session),
}

/// What a heartbeat found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    /// Somebody holds the resign key of this term.
    pub resign_requested: bool,
}

/// The lock that a person takes to ask the leader of this term to resign. The leader meets it in its next
/// heartbeat; no table is written, and nothing is left behind when the asking process dies.
#[must_use]
pub fn resign_key(key: Key, term_id: Uuid) -> Key {
    Key::derive("projector-leader-resign", &format!("{key}/{term_id}"))
}

/// Notified, with an empty payload, after a leader gave the lock with this key back. Those who compete for one
/// lock listen to one channel, whatever their groups are called.
#[must_use]
pub fn handover_channel(key: Key) -> String {
    let tag = key.tag();
    format!(
        "projector_leader_{:08x}{:08x}_{}",
        tag.classid, tag.objid, tag.objsubid
    )
}

impl Session {
    /// Opens a session and checks that leading is possible on it.
    ///
    /// # Errors
    /// [`Error::Refused`] on a standby, a read-only server or behind a transaction pooler; otherwise what
    /// the database said.
    pub async fn open(site: &Site) -> Result<Self, Error> {
        let purpose = Purpose::Lock {
            server_lease: site.server_lease,
            local_lease: site.local_lease,
        };
        let name = site.database.name;
        let mut connection = site.database.connect(&purpose).await?;
        let facts = check(&mut connection, name, site.local_lease).await?;
        if probe::is_transaction_pooled(&mut connection, &site.database, site.local_lease).await? {
            return Err(Error::Refused(Refusal::pooler(name)));
        }
        Ok(Self {
            connection,
            facts,
            site: site.clone(),
        })
    }

    /// What the session is.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Tries the lock once. A server that went into recovery since does not count.
    ///
    /// # Errors
    /// The session is in doubt and gone.
    pub async fn try_lock(mut self) -> Result<Attempt, Error> {
        let sql = format!(
            "SELECT CASE WHEN NOT pg_is_in_recovery() THEN pg_try_advisory_lock({}) END",
            self.site.key.arguments()
        );
        let won: Option<bool> = bounded(
            self.site.database.name,
            self.site.local_lease,
            sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut self.connection),
        )
        .await?;
        match won {
            Some(true) => Ok(Attempt::Won(Held { session: self })),
            Some(false) => Ok(Attempt::Denied(self)),
            None => Err(Error::Refused(Refusal::standby(
                self.site.database.name,
                false,
            ))),
        }
    }

    /// Who holds the lock at the moment.
    ///
    /// # Errors
    /// The session is in doubt; drop it.
    pub async fn holder(&mut self) -> Result<Option<Holder>, Error> {
        let call = holder::holder_of(&mut self.connection, self.site.key);
        Ok(bounded(self.site.database.name, self.site.local_lease, call).await?)
    }
}

impl Held {
    /// What the session is.
    #[must_use]
    pub const fn facts(&self) -> &Facts {
        &self.session.facts
    }

    /// Proves that the session lives: a session lock cannot vanish while its session does, and nothing else
    /// runs on a connection that we own. `deep` looks into `pg_locks` as well.
    ///
    /// # Errors
    /// Leadership is over; drop this.
    pub async fn beat(&mut self, term_id: Option<Uuid>, deep: bool) -> Result<Beat, Error> {
        let Session {
            connection,
            facts,
            site,
        } = &mut self.session;
        // A shared lock at the end of its own statement: refused only while somebody holds the resign key.
        let resign = term_id.map_or_else(
            || "false".to_owned(),
            |id| {
                let key = resign_key(site.key, id).arguments();
                format!("NOT pg_try_advisory_xact_lock_shared({key})")
            },
        );
        let sql = format!(
            "SELECT pg_backend_pid(), pg_is_in_recovery(), pg_postmaster_start_time()::text, {resign}"
        );
        let row = bounded(
            site.database.name,
            site.local_lease,
            sqlx::query(AssertSqlSafe(sql)).fetch_one(&mut *connection),
        )
        .await?;
        let pid: i32 = get(&row, 0)?;
        let in_recovery: bool = get(&row, 1)?;
        let started: String = get(&row, 2)?;
        if pid != facts.backend_pid {
            return Err(Error::SessionChanged(format!(
                "backend {pid} answered instead of {}; is there a pooler in transaction mode?",
                facts.backend_pid
            )));
        }
        if started != facts.postmaster_start {
            return Err(Error::SessionChanged("the server was restarted".to_owned()));
        }
        if in_recovery {
            return Err(Error::Refused(Refusal::standby(site.database.name, false)));
        }
        if deep && !deep_check(connection, site).await? {
            return Err(Error::LockGone);
        }
        Ok(Beat {
            resign_requested: get(&row, 3)?,
        })
    }

    /// Unlocks, looks at the answer, tells the followers, and closes.
    ///
    /// # Errors
    /// [`Error::LockGone`] when the server says that the lock was not held; or what the database said. The
    /// session is gone in every case, and with it the lock.
    pub async fn release(self) -> Result<(), Error> {
        let Session {
            mut connection,
            site,
            ..
        } = self.session;
        let name = site.database.name;
        let unlock = format!("SELECT pg_advisory_unlock({})", site.key.arguments());
        let was_held: bool = bounded(
            name,
            site.local_lease,
            sqlx::query_scalar(AssertSqlSafe(unlock)).fetch_one(&mut connection),
        )
        .await?;
        let notify = sqlx::query("SELECT pg_notify($1, '')").bind(handover_channel(site.key));
        if let Err(error) = bounded(name, CLOSE_LIMIT, notify.execute(&mut connection)).await {
            tracing::debug!(%error, "could not announce the hand-over");
        }
        // Closing waits for the peer at most a moment; dropping the future closes the socket as well.
        let _closed = tokio::time::timeout(CLOSE_LIMIT, connection.close()).await;
        if was_held {
            Ok(())
        } else {
            Err(Error::LockGone)
        }
    }
}

async fn check(
    connection: &mut PgConnection,
    name: &'static str,
    limit: Duration,
) -> Result<Facts, Error> {
    // The simple protocol: behind a transaction pooler a prepared statement might be on another server.
    let row = bounded(
        name,
        limit,
        sqlx::raw_sql(include_str!("session/facts.sql")).fetch_one(&mut *connection),
    )
    .await?;
    let facts = Facts {
        backend_pid: get(&row, 0)?,
        postmaster_start: get(&row, 3)?,
        lock_database: format!(
            "{}/{}",
            system_identifier(connection, name, limit).await?,
            get::<String>(&row, 4)?
        ),
        timeline: get::<Option<String>>(&row, 5)?.unwrap_or_default(),
    };
    if get::<bool>(&row, 1)? {
        return Err(Error::Refused(Refusal::standby(name, false)));
    }
    if get::<bool>(&row, 2)? {
        return Err(Error::Refused(Refusal::standby(name, true)));
    }
    Ok(facts)
}

/// Some managed servers do not let everybody read it; then the name of the database has to do.
async fn system_identifier(
    connection: &mut PgConnection,
    name: &'static str,
    limit: Duration,
) -> Result<String, Error> {
    let read = sqlx::raw_sql("SELECT system_identifier::text FROM pg_control_system()")
        .fetch_one(connection);
    match bounded(name, limit, read).await {
        Ok(row) => Ok(get(&row, 0)?),
        Err(error) if error.sqlstate() == Some("42501") => Ok("unknown".to_owned()),
        Err(error) => Err(error.into()),
    }
}

async fn deep_check(connection: &mut PgConnection, site: &Site) -> Result<bool, Error> {
    let tag = site.key.tag();
    let check = sqlx::query_scalar(include_str!("session/deep_check.sql"))
        .bind(tag.classid)
        .bind(tag.objid)
        .bind(tag.objsubid)
        .fetch_one(connection);
    Ok(bounded(site.database.name, site.local_lease, check).await?)
}

fn get<'r, T>(row: &'r sqlx::postgres::PgRow, index: usize) -> Result<T, Error>
where
    T: sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
{
    row.try_get(index)
        .map_err(|error| Error::Database(error.into()))
}

#[cfg(test)]
mod tests;
