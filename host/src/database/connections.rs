//! A bounded set of sessions of one purpose.
//!
//! A session goes back only when its user says that it is clean; whatever else happens to it (an error, a
//! time-out, a cancelled task) closes it. So a session that still has a transaction or a late answer on it is
//! never used again.
//!
//! A statement is planned once a session and not before each use, which would cost more than its work. But a plan that
//! was made when a table was empty may choose any index of it, and would stay. So a session forgets its plans before its
//! second, fourth, eighth use and so on: a table has at most twice as many batches behind it as when its plan was made.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::Executor as _;
use sqlx::postgres::PgConnection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::Error;
use super::session::{CONNECT_TIMEOUT, Database, Purpose, bounded};

/// Opens sessions up to a bound and lends them out.
#[derive(Debug, Clone)]
pub struct Connections {
    database: Database,
    purpose: Purpose,
    slots: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<Session>>>,
    /// Raised when there are tables that no plan knows.
    tables: Arc<AtomicU64>,
}

/// An open session, and how often it was lent since there were new tables.
#[derive(Debug)]
struct Session {
    connection: PgConnection,
    uses: u64,
    tables: u64,
}

/// A session on loan. Dropping it closes it; [`Loan::give_back`] keeps it open for the next user.
#[derive(Debug)]
pub struct Loan {
    session: Session,
    home: Arc<Mutex<Vec<Session>>>,
    _slot: OwnedSemaphorePermit,
}

impl Connections {
    /// At most `connections_max` sessions at a time.
    #[must_use]
    pub fn new(database: Database, purpose: Purpose, connections_max: usize) -> Self {
        Self {
            database,
            purpose,
            slots: Arc::new(Semaphore::new(connections_max)),
            idle: Arc::new(Mutex::new(Vec::new())),
            tables: Arc::default(),
        }
    }

    /// Where sessions are opened.
    #[must_use]
    pub const fn reach(&self) -> &Database {
        &self.database
    }

    /// The database's name in messages.
    #[must_use]
    pub fn database(&self) -> &'static str {
        self.database.name
    }

    /// A session that is clean, waiting for a free slot.
    ///
    /// # Errors
    /// When no session can be opened.
    pub async fn lend(&self) -> Result<Loan, Error> {
        let slot = Arc::clone(&self.slots)
            .acquire_owned()
            .await
            .map_err(|error| Error::Driver(error.to_string()))?;
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let again = match idle {
            Some(session) => self.again(session).await,
            None => None,
        };
        let session = match again {
            Some(session) => session,
            None => Session {
                connection: self.database.connect(&self.purpose).await?,
                uses: 1,
                tables: self.tables.load(Ordering::Relaxed),
            },
        };
        Ok(Loan {
            session,
            home: Arc::clone(&self.idle),
            _slot: slot,
        })
    }

    /// There are tables that are new, or about to be filled: whatever is planned for them now is soon out of date.
    pub fn has_new_tables(&self) {
        self.tables.fetch_add(1, Ordering::Relaxed);
    }

    /// A session that was used before. None when it is lost.
    async fn again(&self, mut session: Session) -> Option<Session> {
        let tables = self.tables.load(Ordering::Relaxed);
        if session.tables != tables {
            session.tables = tables;
            session.uses = 0;
        }
        session.uses += 1;
        if session.uses.is_power_of_two() {
            let forgetting = session.connection.execute("DISCARD PLANS");
            let name = self.database.name;
            bounded(name, CONNECT_TIMEOUT, forgetting).await.ok()?;
        }
        Some(session)
    }

    /// Closes the sessions that nobody uses.
    pub fn close_idle(&self) {
        self.idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

impl Loan {
    /// Returns a session on which nothing is open and no answer is owed.
    pub fn give_back(self) {
        self.home
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(self.session);
    }
}

impl Deref for Loan {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.session.connection
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.session.connection
    }
}
