//! A bounded set of sessions of one purpose.
//!
//! A session goes back only when its user says that it is clean; whatever else happens to it (an error, a
//! time-out, a cancelled task) closes it. So a session that still has a transaction or a late answer on it is
//! never used again.

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::postgres::PgConnection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::Error;
use super::session::{Database, Purpose};

/// Opens sessions up to a bound and lends them out.
#[derive(Debug, Clone)]
pub struct Connections {
    database: Database,
    purpose: Purpose,
    slots: Arc<Semaphore>,
    idle: Arc<Mutex<Vec<PgConnection>>>,
}

/// A session on loan. Dropping it closes it; [`Loan::give_back`] keeps it open for the next user.
#[derive(Debug)]
pub struct Loan {
    connection: PgConnection,
    home: Arc<Mutex<Vec<PgConnection>>>,
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
        let connection = match idle {
            Some(connection) => connection,
            None => self.database.connect(&self.purpose).await?,
        };
        Ok(Loan {
            connection,
            home: Arc::clone(&self.idle),
            _slot: slot,
        })
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
            .push(self.connection);
    }
}

impl Deref for Loan {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.connection
    }
}

impl DerefMut for Loan {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.connection
    }
}
