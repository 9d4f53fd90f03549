//! Reading below the mark: the handle that every projection has.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};
use tokio::sync::{Mutex as AsyncMutex, watch};

use crate::database::error::Error as DatabaseError;
use crate::database::session::{Database, Purpose, attended, bounded};

use super::BatchLimits;
use super::anchor::{self, Anchor, Sight};
use super::error::Error;
use super::event::{Batch, Position, Subscription, check_order};
use super::layout::Layout;
use super::mark::Mark;
use super::preflight::{self, StoreIdentity};
use super::ring::Ring;
use super::rows::{self, Found};

/// Longest wait for one batch's rows. The server's own `statement_timeout` is shorter.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Positions that one statement looks at, at most.
const STRETCH_POSITIONS_MAX: i64 = 200_000;

/// Rows that are asked for at least, however large the last ones were.
const ROWS_MIN: i64 = 16;

/// Reads after a large payload that expect another one.
pub(super) const CAREFUL_READS: u32 = 16;

/// Reads settled events. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    pub(super) mark: watch::Receiver<Mark>,
    pub(super) shared: Arc<Shared>,
    pub(super) rows: Rows,
    /// How many finds of late events are behind it: it reads those events, or somebody said to go on without them.
    pub(super) tolerated: Arc<AtomicU64>,
}

/// How many rows are worth asking for: the server turns each payload into text before it knows which ones fit,
/// so with large events it should not find ten thousand of them for a batch that holds fifty.
#[derive(Debug)]
pub(super) struct Rows(AtomicI64);

/// What the feed shares with the service.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) layout: Layout,
    pub(super) database: Database,
    /// Which store is read; none before the service's first session.
    pub(super) identity: watch::Receiver<Option<StoreIdentity>>,
    pub(super) ring: Mutex<Ring>,
    /// Reads that weigh payloads before they ask for them, from here on.
    pub(super) careful: AtomicU32,
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

    /// A handle for one projection, which alone goes on after [`Feed::tolerate`].
    #[must_use]
    pub fn for_one(&self) -> Self {
        Self {
            tolerated: Arc::default(),
            ..self.clone()
        }
    }

    /// Goes on without the late events that were found so far, as somebody allowed.
    pub fn tolerate(&self) {
        let times = self.mark.borrow().late.times;
        self.tolerated.store(times, Ordering::Relaxed);
    }

    /// What stands at one position, and which event is the last one up to another.
    ///
    /// # Errors
    /// When the store cannot be read, or the service has ended.
    pub async fn look(&self, at: Position, upto: Position) -> Result<Sight, Error> {
        let mut connection = self.shared.connect().await?;
        self.shared.look(&mut connection, at, upto).await
    }

    /// Late events that a projection at `after` has not read and that nobody has put up with.
    fn missed(&self, mark: &Mark, after: Position) -> Vec<Position> {
        mark.late
            .missed_by(after, self.tolerated.load(Ordering::Relaxed))
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
        let (settled, anchor) = {
            let mark = mark
                .wait_for(|mark| mark.settled_upto > after || !self.missed(mark, after).is_empty())
                .await
                .map_err(|_| Error::Ended)?;
            let missed = self.missed(&mark, after);
            if !missed.is_empty() {
                return Err(Error::late(&missed));
            }
            // All that was found so far stands after this position, and is read like any other event.
            self.tolerated.store(mark.late.times, Ordering::Relaxed);
            (mark.settled_upto, mark.anchor.clone())
        };
        let near = self
            .shared
            .ring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .batch(after, subscription, limits);
        match near {
            Some(batch) => Ok(batch),
            None => {
                let mark = (settled, anchor);
                self.read(after, mark, subscription, limits).await
            }
        }
    }

    async fn read(
        &self,
        after: Position,
        (settled, anchor): (Position, Option<Anchor>),
        subscription: &Subscription,
        limits: BatchLimits,
    ) -> Result<Batch, Error> {
        // A stretch that is not too long, so that a rare type cannot make one statement run for minutes.
        let upto = settled.min(Position(after.0.saturating_add(STRETCH_POSITIONS_MAX)));
        let events_max = i64::try_from(limits.events_max.max(1)).unwrap_or(i64::MAX);
        let rows_max = self.rows.ask(events_max);
        let mut slot = self.shared.reading.lock().await;
        // Taken out: if this call is cancelled or fails, the session closes with whatever is owed on it.
        let idle = slot.take();
        let reused = idle.is_some();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.shared.connect().await?,
        };
        let mut found = self
            .shared
            .stretch(&mut connection, after, upto, subscription, rows_max, limits)
            .await;
        if reused && found.as_ref().is_err_and(was_closed) {
            // It was closed while nobody used it.
            connection = self.shared.connect().await?;
            found = self
                .shared
                .stretch(&mut connection, after, upto, subscription, rows_max, limits)
                .await;
        }
        let found = found?;
        let upto = match found.cut {
            true => found.cut_at,
            // Nothing wanted so far: where positions were jumped over there is nothing to scan.
            false if found.events.is_empty() && upto < settled => {
                self.shared
                    .before_next(&mut connection, upto, settled)
                    .await?
            }
            false => upto,
        };
        check_order(after, &found.events, upto)?;
        // After the rows: if the store is the one that was proven even now, it was when they were read.
        let known = anchor.as_ref().map_or(upto, |anchor| anchor.position);
        let sight = self.shared.look(&mut connection, known, upto).await?;
        if let Some(anchor) = &anchor {
            anchor.stands(sight.found.as_deref())?;
        }
        *slot = Some(connection);
        drop(slot);
        self.rows.learn(found.events.len(), found.cut, rows_max);
        Ok(Batch {
            after,
            upto,
            anchor: sight.last.filter(|last| last.position > after),
            events: found.events,
        })
    }
}

impl Rows {
    /// As many as a batch may hold.
    pub(super) const fn unlimited() -> Self {
        Self(AtomicI64::new(i64::MAX))
    }

    fn ask(&self, events_max: i64) -> i64 {
        self.0.load(Ordering::Relaxed).min(events_max)
    }

    /// Next time twice as many as fitted, so that the number grows again when it was the limit.
    fn learn(&self, fitted: usize, cut: bool, asked: i64) {
        let fitted = i64::try_from(fitted).unwrap_or(i64::MAX);
        let next = if cut { fitted } else { asked };
        self.0
            .store(next.saturating_mul(2).max(ROWS_MIN), Ordering::Relaxed);
    }
}

impl Clone for Rows {
    fn clone(&self) -> Self {
        Self(AtomicI64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Shared {
    /// A session to the very store that the service reads: the mark means nothing on another.
    async fn connect(&self) -> Result<PgConnection, Error> {
        let mut identity = self.identity.clone();
        let known = identity
            .wait_for(Option::is_some)
            .await
            .map_err(|_| Error::Ended)?
            .clone();
        let mut connection = self.database.connect(&Purpose::Read).await?;
        let name = self.database.name;
        let preparing = async {
            preflight::check_known(&mut connection, &self.layout, known.as_ref()).await?;
            // The best plan depends on which types are wanted.
            connection
                .execute("SET plan_cache_mode = force_custom_plan")
                .await?;
            Ok::<(), Error>(())
        };
        tokio::time::timeout(READ_TIMEOUT, preparing)
            .await
            .map_err(|_| Error::Database(format!("no answer from the {name} database")))??;
        Ok(connection)
    }

    async fn look(
        &self,
        connection: &mut PgConnection,
        at: Position,
        upto: Position,
    ) -> Result<Sight, Error> {
        tokio::time::timeout(
            READ_TIMEOUT,
            anchor::look(connection, &self.layout, at, upto),
        )
        .await
        .map_err(|_| {
            Error::Database(format!(
                "no answer from the {} database",
                self.database.name
            ))
        })?
    }

    /// The last position before the next event after `after`, wanted or not; `settled` when there is none.
    async fn before_next(
        &self,
        connection: &mut PgConnection,
        after: Position,
        settled: Position,
    ) -> Result<Position, DatabaseError> {
        let statement = self.layout.render(include_str!("sql/next.sql"));
        let reading = sqlx::query(AssertSqlSafe(statement))
            .bind(after.0)
            .bind(settled.0)
            .fetch_one(connection);
        let next: Option<i64> = bounded(self.database.name, READ_TIMEOUT, reading)
            .await?
            .try_get(0)?;
        Ok(next.map_or(settled, |next| Position(next - 1)))
    }

    async fn stretch(
        &self,
        connection: &mut PgConnection,
        after: Position,
        upto: Position,
        subscription: &Subscription,
        rows_max: i64,
        limits: BatchLimits,
    ) -> Result<Found, DatabaseError> {
        let types = (!subscription.types.is_empty()).then_some(&subscription.types);
        let prefixes: Vec<String> = subscription
            .stream_prefixes
            .iter()
            .map(|prefix| like(prefix))
            .collect();
        let prefixes = (!prefixes.is_empty()).then_some(prefixes);
        let bytes_max = i64::try_from(limits.bytes_max).unwrap_or(i64::MAX);
        let mut read = async |statement: String| {
            let reading = sqlx::query(AssertSqlSafe(statement))
                .bind(after.0)
                .bind(rows_max)
                .bind(bytes_max)
                .bind(upto.0)
                .bind(types)
                .bind(&prefixes)
                .fetch_all(&mut *connection);
            let rows = attended(&self.database, READ_TIMEOUT, reading).await??;
            rows::found(&rows, rows_max, limits.bytes_max).map_err(DatabaseError::from)
        };
        let below = include_str!("sql/below.sql");
        let careful = self.careful.load(Ordering::Relaxed);
        if careful == 0 {
            let found = read(rows::small(&self.layout, below)).await?;
            if !found.withheld {
                return Ok(found);
            }
            self.careful.store(CAREFUL_READS, Ordering::Relaxed);
        } else {
            self.careful.store(careful - 1, Ordering::Relaxed);
        }
        read(rows::sized(&self.layout, below)).await
    }
}

/// Whether the session had ended before the statement, or with it.
fn was_closed(error: &DatabaseError) -> bool {
    let ended = |state: &str| state.starts_with("57P");
    matches!(error, DatabaseError::Lost(_)) || error.sqlstate().is_some_and(ended)
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
