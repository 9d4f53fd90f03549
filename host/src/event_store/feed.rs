//! Reading below the mark: the handle that every projection has.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::database::session::{Database, Purpose, bounded};

use super::BatchLimits;
use super::error::Error;
use super::event::{Batch, Position, Subscription};
use super::layout::Layout;
use super::mark::Mark;
use super::ring::Ring;
use super::rows;

/// Longest wait for one batch's rows. The server's own `statement_timeout` is shorter.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Reads settled events. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    pub(super) mark: watch::Receiver<Mark>,
    pub(super) shared: Arc<Shared>,
}

/// What the feed shares with the service.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) layout: Layout,
    pub(super) database: Database,
    pub(super) ring: Mutex<Ring>,
    /// One session for all projections that are too far behind for the ring.
    pub(super) reading: AsyncMutex<Option<PgConnection>>,
}

impl Feed {
    /// What is known of the store, and its changes.
    #[must_use]
    pub fn mark(&self) -> watch::Receiver<Mark> {
        self.mark.clone()
    }

    /// Waits until the head has been proven once since the service began; returns the mark.
    ///
    /// # Errors
    /// When the service has ended.
    pub async fn proven(&self) -> Result<Position, Error> {
        let mut mark = self.mark.clone();
        let proven = mark
            .wait_for(|mark| mark.proven)
            .await
            .map_err(|_| Error::Ended)?;
        Ok(proven.settled_upto)
    }

    /// Waits until something after `after` is settled, then returns a batch of it at once. Safe to cancel.
    ///
    /// The batch may be empty: then nothing wanted stands between `after` and its `upto`.
    ///
    /// # Errors
    /// When the store cannot be read, or the service has ended.
    pub async fn next(
        &self,
        after: Position,
        subscription: &Subscription,
        limits: BatchLimits,
    ) -> Result<Batch, Error> {
        let mut mark = self.mark.clone();
        let settled = mark
            .wait_for(|mark| mark.settled_upto > after)
            .await
            .map_err(|_| Error::Ended)?
            .settled_upto;
        let near = self
            .shared
            .ring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .batch(after, subscription, limits);
        match near {
            Some(batch) => Ok(batch),
            None => self.read(after, settled, subscription, limits).await,
        }
    }

    async fn read(
        &self,
        after: Position,
        upto: Position,
        subscription: &Subscription,
        limits: BatchLimits,
    ) -> Result<Batch, Error> {
        let mut slot = self.shared.reading.lock().await;
        // Taken out: if this call is cancelled or fails, the session closes with whatever is owed on it.
        let mut connection = match slot.take() {
            Some(connection) => connection,
            None => self.shared.database.connect(&Purpose::Read).await?,
        };
        let name = self.shared.database.name;
        let types = (!subscription.types.is_empty()).then_some(&subscription.types);
        let prefixes: Vec<String> = subscription
            .stream_prefixes
            .iter()
            .map(|prefix| like(prefix))
            .collect();
        let prefixes = (!prefixes.is_empty()).then_some(prefixes);
        let events_max = limits.events_max.max(1);
        let reading = sqlx::query(AssertSqlSafe(
            self.shared.layout.render(include_str!("sql/below.sql")),
        ))
        .bind(after.0)
        .bind(upto.0)
        .bind(types)
        .bind(prefixes)
        .bind(i64::try_from(events_max).unwrap_or(i64::MAX))
        .bind(i64::try_from(limits.bytes_max).unwrap_or(i64::MAX))
        .fetch_all(&mut connection);
        let found = bounded(name, READ_TIMEOUT, reading).await?;
        *slot = Some(connection);
        drop(slot);
        let all: usize = match found.first() {
            Some(row) => usize::try_from(row.try_get::<i64, _>(9)?).unwrap_or(usize::MAX),
            None => 0,
        };
        let events = found
            .iter()
            .map(rows::event)
            .collect::<Result<Vec<_>, _>>()?;
        // Cut short by a bound: more wanted events may stand behind the last one.
        let cut = events.len() < all || all >= events_max;
        let upto = match events.last() {
            Some(last) if cut => last.position,
            _ => upto,
        };
        Ok(Batch {
            after,
            upto,
            events,
        })
    }
}

/// A LIKE pattern for a beginning.
fn like(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for c in prefix.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
