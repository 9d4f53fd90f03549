//! One batch's transaction: checkpoint first, then rows, then COMMIT. A small batch is one statement, in that order.

use std::time::Duration;

use sqlx::Executor as _;
use sqlx::postgres::PgConnection;

use crate::database::connections::Connections;
use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::database::session::{attended, bounded};
use crate::read_model::check::Shapes;
use crate::read_model::checkpoint::{Checkpoints, GenerationKey, Missed, Step};
use crate::read_model::dead_letter::{self, Letter};
use crate::read_model::fold::Folded;
use crate::read_model::write::{self, Single};

use super::failure::Failure;

/// Longest transaction. The server's own `statement_timeout` is shorter, so this only catches dead peers.
pub(super) const COMMIT_TIMEOUT: Duration = Duration::from_secs(90);

/// Longest wait for the answer to COMMIT. It may have been obeyed all the same: the checkpoint is read again.
pub(super) const COMMIT_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a projection's batches go.
#[derive(Debug, Clone)]
pub struct Target {
    /// Sessions for batches.
    pub connections: Connections,
    /// The fence and the checkpoints.
    pub checkpoints: Checkpoints,
    /// Which generation.
    pub key: GenerationKey,
    /// Its schema.
    pub schema: Identifier,
    /// Its tables.
    pub shapes: Shapes,
}

/// Why a batch was not committed. Its transaction is gone.
#[derive(Debug)]
pub enum NotCommitted {
    /// The checkpoint did not stand where it was expected.
    Missed(Missed),
    /// A write or the database failed.
    Failed(Failure),
}

impl From<DatabaseError> for NotCommitted {
    fn from(error: DatabaseError) -> Self {
        Self::Failed(error.into())
    }
}

impl Target {
    /// Commits a batch with its checkpoint and its dead letters; returns the number of rows that were touched.
    ///
    /// After an error the caller knows nothing of the batch's fate (the reply to COMMIT may be lost) and must
    /// read the checkpoint again.
    ///
    /// # Errors
    /// When the checkpoint moved, a write is refused, or the database fails.
    pub async fn commit(
        &self,
        step: &Step,
        folded: Option<&Folded>,
        letters: &[Letter],
    ) -> Result<u64, NotCommitted> {
        let mut loan = self.connections.lend().await?;
        let whole = async {
            match self.transaction(&mut loan, step, folded, letters).await {
                Err(NotCommitted::Missed(_)) => {
                    loan.execute("ROLLBACK")
                        .await
                        .map_err(DatabaseError::from)?;
                    let missed = self.checkpoints.missed(&mut loan, &self.key).await?;
                    Err(NotCommitted::Missed(missed))
                }
                other => other,
            }
        };
        match attended(self.connections.reach(), COMMIT_TIMEOUT, whole).await {
            Ok(Ok(touched)) => {
                loan.give_back();
                Ok(touched)
            }
            Ok(Err(NotCommitted::Missed(missed))) => {
                loan.give_back();
                Err(NotCommitted::Missed(missed))
            }
            // The session closes here, which rolls back.
            Ok(Err(failed)) => Err(failed),
            Err(error) => Err(error.into()),
        }
    }

    async fn transaction(
        &self,
        connection: &mut PgConnection,
        step: &Step,
        folded: Option<&Folded>,
        letters: &[Letter],
    ) -> Result<u64, NotCommitted> {
        if folded.is_none() && letters.is_empty() {
            // A checkpoint alone is its own transaction.
            let advancing = self.checkpoints.advance_alone(connection, &self.key, step);
            return match advancing.await? {
                true => Ok(0),
                false => Err(NotCommitted::Missed(Missed::Changed)),
            };
        }
        if let Some(done) = self.at_once(connection, step, folded, letters).await? {
            return done
                .then_some(0)
                .ok_or(NotCommitted::Missed(Missed::Changed));
        }
        connection
            .execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            .await
            .map_err(DatabaseError::from)?;
        if !self
            .checkpoints
            .advance(connection, &self.key, step)
            .await?
        {
            return Err(NotCommitted::Missed(Missed::Changed));
        }
        let touched = match folded {
            Some(folded) => write::apply(connection, &self.schema, &self.shapes, folded)
                .await
                .map_err(|error| NotCommitted::Failed(error.into()))?,
            None => 0,
        };
        dead_letter::insert(connection, &self.checkpoints, &self.key, letters).await?;
        let name = self.connections.database();
        bounded(name, COMMIT_ANSWER_TIMEOUT, connection.execute("COMMIT")).await?;
        Ok(touched)
    }

    /// A small batch in one statement. None when it is none, or when it has to be applied statement by statement, which
    /// says what is wrong with it; false when the checkpoint did not stand where it was expected.
    async fn at_once(
        &self,
        connection: &mut PgConnection,
        step: &Step,
        folded: Option<&Folded>,
        letters: &[Letter],
    ) -> Result<Option<bool>, DatabaseError> {
        let Some(folded) = folded.filter(|_| letters.is_empty()) else {
            return Ok(None);
        };
        let fence = self.checkpoints.advancing(&self.key, step)?;
        let Some(single) = Single::new(fence, &self.schema, &self.shapes, folded) else {
            return Ok(None);
        };
        // The whole batch's work: bounded like that of a transaction, by the caller and by the server.
        match single.commit(connection).await {
            Ok(stood) => Ok(Some(stood)),
            Err(error) if refused(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs a short statement on a session of its own.
    ///
    /// # Errors
    /// When the database does not answer in time.
    pub async fn with<T>(
        &self,
        limit: Duration,
        call: impl AsyncFnOnce(
            &mut PgConnection,
            &Checkpoints,
            &GenerationKey,
        ) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let mut loan = self.connections.lend().await?;
        let done = bounded(
            self.connections.database(),
            limit,
            call(&mut loan, &self.checkpoints, &self.key),
        )
        .await?;
        loan.give_back();
        Ok(done)
    }
}

/// Whether the server refused what a statement says; not when it is the server's own state, or its silence.
fn refused(error: &DatabaseError) -> bool {
    const OWN_STATE: [&str; 5] = ["40", "53", "55", "57", "58"];
    match error {
        DatabaseError::Statement { sqlstate, .. } => {
            !OWN_STATE.iter().any(|class| sqlstate.starts_with(class))
        }
        _ => false,
    }
}
