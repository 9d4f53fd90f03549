//! Locks that outlive a transaction: a guard that owns its connection.
//!
//! Promises: the connection is opened for the guard and closed with it, so the lock can leak into no pool and
//! cannot be taken twice on one session (the server would say yes, and one unlock would not be enough);
//! giving it back checks the server's answer; whatever is in doubt is closed, which frees the lock. Dropping
//! the guard closes the connection too. Must never: lend the connection to anybody else.
//!
//! The holder has to call [`SessionLock::check`] more often than `local_lease`; a holder that stays silent
//! for `server_lease` loses the lock, so a frozen process keeps nobody out for ever.

use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::error::Error;
use super::key::Key;
use super::probe;
use crate::database::session::{Database, Purpose, bounded};
use crate::leadership::holder::holder_of;

/// What a slow network may add to a wait in line before the connection counts as dead.
const WAIT_SLACK: Duration = Duration::from_secs(3);

/// Longest wait of any other statement for a lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest closing of a session.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

/// Bounds of a session lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leases {
    /// Bound on each answer of the server; a check that takes longer means that the lock is lost.
    pub local_lease: Duration,
    /// The server frees the lock after this much silence.
    pub server_lease: Duration,
}

impl Default for Leases {
    fn default() -> Self {
        Self {
            local_lease: Duration::from_secs(10),
            server_lease: Duration::from_secs(30),
        }
    }
}

/// An open session that holds nothing yet.
#[derive(Debug)]
pub struct Session {
    connection: PgConnection,
    database: Database,
    leases: Leases,
    backend_pid: i32,
}

/// A held lock, and the connection that holds it.
#[derive(Debug)]
pub struct SessionLock {
    session: Session,
    key: Key,
}

/// How a try ended.
#[derive(Debug)]
pub enum Attempt {
    /// It is ours.
    Won(SessionLock),
    /// Somebody else has it; the session can be used for another try.
    Denied(Session),
}

impl Session {
    /// Opens a session and makes sure that locks count on it: no standby, no transaction pooler.
    ///
    /// # Errors
    /// [`Error::Refused`], or what the database said.
    pub async fn open(database: &Database, leases: Leases) -> Result<Self, Error> {
        let purpose = Purpose::Lock {
            server_lease: leases.server_lease,
            local_lease: leases.local_lease,
        };
        let mut connection = database.connect(&purpose).await?;
        let backend_pid = probe::check(&mut connection, database, leases.local_lease).await?;
        let mut session = Self {
            connection,
            database: database.clone(),
            leases,
            backend_pid,
        };
        // Neither keep-alives nor the user time-out may free the lock before the lease does.
        let seconds = leases.server_lease.as_secs().max(4);
        let socket = format!(
            "SET tcp_user_timeout = '{seconds}s'; SET tcp_keepalives_idle = {}; \
             SET tcp_keepalives_interval = 1; SET tcp_keepalives_count = 3",
            seconds - 3
        );
        session.set(socket, true).await?;
        Ok(session)
    }

    /// Sends settings; a server that may refuse them keeps its own.
    async fn set(&mut self, settings: String, may_be_refused: bool) -> Result<(), Error> {
        let call = sqlx::raw_sql(AssertSqlSafe(settings)).execute(&mut self.connection);
        match bounded(self.database.name, self.leases.local_lease, call).await {
            Err(error) if may_be_refused && error.sqlstate().is_some() => {
                tracing::debug!(%error, "the server refused optional settings");
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(_) => Ok(()),
        }
    }

    /// Takes the lock if it is free.
    ///
    /// # Errors
    /// The session is in doubt and closed.
    pub async fn try_lock(mut self, key: Key) -> Result<Attempt, Error> {
        let sql = format!("SELECT pg_try_advisory_lock({})", key.arguments());
        let call = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(&mut self.connection);
        let won: bool = bounded(self.database.name, self.leases.local_lease, call).await?;
        Ok(match won {
            true => Attempt::Won(SessionLock { session: self, key }),
            false => Attempt::Denied(self),
        })
    }

    /// Takes the lock; waits in line, first come first served, for at most `limit`.
    ///
    /// # Errors
    /// [`Error::Held`] (SQLSTATE 55P03) when the wait is over. A server that does not answer at all is
    /// [`TimedOut`](crate::database::error::Error::TimedOut) instead, since nobody knows then whether the lock is held.
    pub async fn lock(mut self, key: Key, limit: Duration) -> Result<SessionLock, Error> {
        if limit.is_zero() {
            return match self.try_lock(key).await? {
                Attempt::Won(lock) => Ok(lock),
                Attempt::Denied(mut session) => Err(session.held(key, limit).await),
            };
        }
        let name = self.database.name;
        // A waiter must not be cut off by the bound on statements (57014) before its own wait is over, and one
        // that died must leave the line.
        self.set_bounds(limit, limit + WAIT_SLACK).await?;
        self.set(
            "SET client_connection_check_interval = '500ms'".to_owned(),
            true,
        )
        .await?;
        let sql = format!("SELECT pg_advisory_lock({})", key.arguments());
        let wait = sqlx::query(AssertSqlSafe(sql));
        let wait = wait.execute(&mut self.connection);
        match bounded(name, limit + WAIT_SLACK * 2, wait).await {
            Ok(_) => {}
            Err(error) if error.sqlstate() == Some("55P03") => {
                return Err(self.held(key, limit).await);
            }
            Err(error) => return Err(error.into()),
        }
        self.set_bounds(LOCK_TIMEOUT, self.leases.local_lease)
            .await?;
        Ok(SessionLock { session: self, key })
    }

    async fn set_bounds(&mut self, lock: Duration, statement: Duration) -> Result<(), Error> {
        let settings = format!(
            "SET lock_timeout = '{}ms'; SET statement_timeout = '{}ms'",
            lock.as_millis().max(1),
            statement.as_millis().max(1)
        );
        self.set(settings, false).await
    }

    /// The error of a lock that is held, with its holder where that can be found out.
    async fn held(&mut self, key: Key, waited: Duration) -> Error {
        let call = holder_of(&mut self.connection, key);
        let holder = match bounded(self.database.name, self.leases.local_lease, call).await {
            Ok(Some(holder)) => holder.describe(),
            Ok(None) => "somebody who gave it back just now".to_owned(),
            Err(_) => "somebody else".to_owned(),
        };
        Error::Held {
            key: key.to_string(),
            holder,
            waited,
        }
    }

    pub(super) const fn parts(&mut self) -> (&mut PgConnection, &Database, Duration) {
        (
            &mut self.connection,
            &self.database,
            self.leases.local_lease,
        )
    }
}

impl SessionLock {
    /// What is held.
    #[must_use]
    pub const fn key(&self) -> Key {
        self.key
    }

    /// The server process that holds it.
    #[must_use]
    pub const fn backend_pid(&self) -> i32 {
        self.session.backend_pid
    }

    /// Proves that the session lives, and with it the lock. Does not take the lock again.
    ///
    /// # Errors
    /// [`Error::Lost`]: drop the guard, and stop what the lock protects.
    pub async fn check(&mut self) -> Result<(), Error> {
        let (connection, database, limit) = self.session.parts();
        let call =
            sqlx::query("SELECT pg_backend_pid(), pg_is_in_recovery()").fetch_one(connection);
        let row = bounded(database.name, limit, call).await;
        let reason = match row {
            Ok(row) => {
                let pid: i32 = row.try_get(0)?;
                match (pid == self.session.backend_pid, row.try_get(1)?) {
                    (true, false) => return Ok(()),
                    (false, _) => format!("another session answers (backend {pid})"),
                    (true, true) => "the server is in recovery".to_owned(),
                }
            }
            Err(error) => error.to_string(),
        };
        Err(Error::Lost {
            key: self.key.to_string(),
            reason,
        })
    }

    /// Gives the lock back, looks at the answer, and closes the connection.
    ///
    /// # Errors
    /// [`Error::NotHeld`] when the server says that this session did not hold it; the connection is closed in
    /// every case.
    pub async fn release(self) -> Result<(), Error> {
        self.unlock().await?.close().await;
        Ok(())
    }

    /// Gives the lock back and keeps the session for another try.
    pub(super) async fn unlock(mut self) -> Result<Session, Error> {
        let sql = format!("SELECT pg_advisory_unlock({})", self.key.arguments());
        let (connection, database, limit) = self.session.parts();
        let call = sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(connection);
        let was_held: bool = bounded(database.name, limit, call).await?;
        if was_held {
            Ok(self.session)
        } else {
            Err(Error::NotHeld {
                key: self.key.to_string(),
            })
        }
    }

    /// Another statement of the toolkit under the lock, such as the row of a cron run.
    pub(super) const fn parts(&mut self) -> (&mut PgConnection, &Database, Duration) {
        self.session.parts()
    }
}

impl Session {
    /// Ends the session in an orderly way; dropping it ends it too.
    pub async fn close(self) {
        // A peer that does not answer has the socket closed on it.
        let _closed = tokio::time::timeout(CLOSE_LIMIT, self.connection.close()).await;
    }
}

/// Opens a session and takes the lock on it, waiting for at most `wait`.
///
/// # Errors
/// As for [`Session::open`] and [`Session::lock`].
pub async fn acquire(
    database: &Database,
    key: Key,
    wait: Duration,
    leases: Leases,
) -> Result<SessionLock, Error> {
    Session::open(database, leases).await?.lock(key, wait).await
}

#[cfg(test)]
mod tests;
