//! The reading service: finds out how far the store is settled and publishes the mark.
//!
//! Near the head it reads the rows themselves and keeps them for the feed. Far behind it proves the head once
//! and lets the projections run through. Every error closes the session, throws the running proof away and
//! begins again with a wait; the mark itself stays, since what was settled is settled.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use backon::BackoffBuilder as _;
use sqlx::postgres::PgConnection;
use sqlx::postgres::types::Oid;
use sqlx::{AssertSqlSafe, Row as _};
use tokio::sync::{Mutex as AsyncMutex, Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::database::micros::Micros;
use crate::database::session::{Purpose, bounded};
use crate::error::Class;

use super::error::Error;
use super::event::{Event, Position};
use super::feed::{Feed, Shared};
use super::gap::{Holder, Proof, deliverable};
use super::layout::Layout;
use super::mark::{Held, ListenerState, Mark, SourceState, Writer};
use super::preflight::{self, StoreIdentity};
use super::ring::Ring;
use super::wakeup::Listener;
use super::{GapProof, Options, rows};

/// Rows of one look near the head, and positions of one look far behind it.
const NEAR_EVENTS: i64 = 500;
const FAR_POSITIONS: i64 = 20_000;

/// Farther behind than this, rows are not read here.
const NEAR_DISTANCE: i64 = 5_000;

/// How often an open gap is looked at after a wake-up, and for how long so often.
const GAP_INTERVAL: Duration = Duration::from_millis(10);
const GAP_HURRY: Duration = Duration::from_secs(1);

/// Longest wait for one statement.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(35);

/// Waits between sessions.
const RECONNECT_MIN: Duration = Duration::from_millis(100);
const RECONNECT_MAX: Duration = Duration::from_secs(10);

/// Reads the store's end for as long as it runs.
#[derive(Debug)]
pub struct Service {
    options: Options,
    layout: Layout,
    mark: watch::Sender<Mark>,
    shared: Arc<Shared>,
    identity: Option<StoreIdentity>,
}

/// What one session knows beside the mark.
struct Session {
    connection: PgConnection,
    table: Oid,
    /// Everything up to here is settled, though perhaps not read yet.
    floor: Position,
    proof: Option<Running>,
}

struct Running {
    proof: Proof,
    since: SystemTime,
    begun: Instant,
    /// Whether it covers everything up to the head, so that nothing needs to be read before.
    whole: bool,
}

/// What one look found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    /// There may be more at once.
    More,
    /// At the end, or at a gap.
    Waiting,
}

impl Service {
    /// A service and the handle to read through. `settled_upto` is what is remembered of this store.
    #[must_use]
    pub fn new(options: Options, settled_upto: Position) -> (Self, Feed) {
        let layout = Layout::Projector {
            schema: options.schema.clone(),
        };
        let (mark, seen) = watch::channel(Mark::starting(settled_upto));
        let shared = Arc::new(Shared {
            layout: layout.clone(),
            database: options.database.clone(),
            ring: Mutex::new(Ring::new(settled_upto)),
            reading: AsyncMutex::new(None),
        });
        let feed = Feed {
            mark: seen,
            shared: Arc::clone(&shared),
        };
        (
            Self {
                options,
                layout,
                mark,
                shared,
                identity: None,
            },
            feed,
        )
    }

    /// Reads until shut down. An outage of the database only delays.
    ///
    /// # Errors
    /// When the store cannot be read safely at all.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), Error> {
        let wake = Arc::new(Notify::new());
        let (state, listener_state) = watch::channel(ListenerState::PollingOnly);
        let listening = self.options.notify.then(|| {
            let listener = Listener {
                database: self.options.database.clone(),
                channel: self.layout.channel(),
                wake: Arc::clone(&wake),
                state,
            };
            tokio::spawn(listener.run(shutdown.child_token()))
        });
        let ended = self.sessions(&shutdown, &wake, &listener_state).await;
        if let Some(task) = listening {
            task.abort();
        }
        ended
    }

    async fn sessions(
        &mut self,
        shutdown: &CancellationToken,
        wake: &Notify,
        listener: &watch::Receiver<ListenerState>,
    ) -> Result<(), Error> {
        let waits = || {
            let builder = backon::ExponentialBuilder::default();
            builder
                .with_min_delay(RECONNECT_MIN)
                .with_max_delay(RECONNECT_MAX)
                .with_jitter()
                .without_max_times()
                .build()
        };
        let mut backoff = waits();
        loop {
            let lost = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                lost = self.session(wake, listener) => lost,
            };
            let Err(error) = lost else { continue };
            if error.class() == Class::Fatal {
                self.failing(&error);
                return Err(error);
            }
            if !self.failing(&error) {
                backoff = waits();
            }
            tracing::warn!(%error, "cannot read the event store; trying again");
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = tokio::time::sleep(backoff.next().unwrap_or(RECONNECT_MAX)) => {}
            }
        }
    }

    /// Publishes a failure; returns whether the store was failing already.
    fn failing(&self, error: &Error) -> bool {
        let mut already = false;
        self.mark.send_modify(|mark| {
            mark.held = None;
            match &mut mark.source {
                SourceState::Failing { error: text, .. } => {
                    already = true;
                    *text = error.to_string();
                }
                SourceState::Ok => {
                    mark.source = SourceState::Failing {
                        since: SystemTime::now(),
                        error: error.to_string(),
                    };
                }
            }
        });
        already
    }

    /// One session: looks again and again until it fails.
    async fn session(
        &mut self,
        wake: &Notify,
        listener: &watch::Receiver<ListenerState>,
    ) -> Result<(), Error> {
        let mut connection = self.options.database.connect(&Purpose::Read).await?;
        let name = self.options.database.name;
        let checking = preflight::check(&mut connection, &self.layout);
        let checked = tokio::time::timeout(STATEMENT_TIMEOUT, checking)
            .await
            .map_err(|_| Error::Database(format!("no answer from the {name} database")))??;
        if let Some(known) = &self.identity
            && *known != checked.identity
        {
            return Err(Error::OtherStore(format!(
                "system {} timeline {} instead of system {} timeline {}",
                checked.identity.system_identifier,
                checked.identity.timeline,
                known.system_identifier,
                known.timeline
            )));
        }
        self.identity = Some(checked.identity);
        let floor = self.mark.borrow().settled_upto;
        let mut session = Session {
            connection,
            table: checked.table,
            floor,
            proof: None,
        };
        self.begin(&mut session).await?;
        loop {
            let mut look = Look::More;
            while look == Look::More {
                let listening = *listener.borrow();
                look = self.look(&mut session, listening).await?;
            }
            let wait = match &session.proof {
                Some(running) if running.begun.elapsed() < GAP_HURRY => {
                    GAP_INTERVAL.min(self.options.poll_interval)
                }
                _ => self.options.poll_interval,
            };
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// A session's first step: when the head is far away, it is proven once and for all that lies before.
    async fn begin(&self, session: &mut Session) -> Result<(), Error> {
        let head = self.head(session).await?;
        if head.0 - self.mark.borrow().settled_upto.0 > NEAR_DISTANCE {
            self.begin_proof(session, head, true).await?;
        }
        Ok(())
    }

    async fn look(&self, session: &mut Session, listener: ListenerState) -> Result<Look, Error> {
        if session.proof.is_some() {
            self.observe(session).await?;
        }
        let mark = self.mark.borrow().settled_upto;
        let far = session.proof.as_ref().is_some_and(|running| running.whole)
            || session.floor.0 - mark.0 > NEAR_DISTANCE;
        if far {
            self.look_far(session, mark, listener).await
        } else {
            self.look_near(session, mark, listener).await
        }
    }

    async fn look_near(
        &self,
        session: &mut Session,
        mark: Position,
        listener: ListenerState,
    ) -> Result<Look, Error> {
        let statement = self.layout.render(include_str!("sql/tail.sql"));
        let reading = sqlx::query(AssertSqlSafe(statement))
            .bind(mark.0)
            .bind(NEAR_EVENTS)
            .fetch_all(&mut session.connection);
        let found = bounded(self.options.database.name, STATEMENT_TIMEOUT, reading).await?;
        let mut events = found
            .iter()
            .map(rows::event)
            .collect::<Result<Vec<Event>, _>>()?;
        let full = events.len() as i64 >= NEAR_EVENTS;
        let last = events.last().map(|event| event.position);
        let count = deliverable(
            mark,
            session.floor,
            events.iter().map(|event| event.position),
        );
        let gap = count < events.len();
        events.truncate(count);
        let mut settled = events.last().map_or(mark, |event| event.position);
        if !gap && !full {
            settled = settled.max(session.floor);
        }
        if settled > mark {
            self.shared
                .ring
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(events, settled);
        }
        if let (true, None, Some(last)) = (gap, &session.proof, last) {
            self.begin_proof(session, last, false).await?;
            // Nobody held it open: look again at once, in a new snapshot.
            if session.floor >= last {
                self.publish(session, settled, last, listener);
                return Ok(Look::More);
            }
        }
        self.publish(session, settled, last.unwrap_or(settled), listener);
        if full && !gap {
            let head = self.head(session).await?;
            if head.0 - settled.0 > NEAR_DISTANCE && session.proof.is_none() {
                self.begin_proof(session, head, true).await?;
            }
            return Ok(Look::More);
        }
        Ok(Look::Waiting)
    }

    /// Positions only. Everything up to the floor is settled at once; beyond it, what has no gap.
    async fn look_far(
        &self,
        session: &mut Session,
        mark: Position,
        listener: ListenerState,
    ) -> Result<Look, Error> {
        let settled = if session.floor > mark {
            session.floor
        } else {
            let statement = self.layout.render(include_str!("sql/positions.sql"));
            let reading = sqlx::query(AssertSqlSafe(statement))
                .bind(mark.0)
                .bind(FAR_POSITIONS)
                .fetch_all(&mut session.connection);
            let found = bounded(self.options.database.name, STATEMENT_TIMEOUT, reading).await?;
            let positions = found
                .iter()
                .map(|row| row.try_get(0).map(Position))
                .collect::<Result<Vec<Position>, _>>()?;
            let count = deliverable(mark, session.floor, positions.iter().copied());
            count.checked_sub(1).map_or(mark, |last| positions[last])
        };
        if settled > mark {
            self.shared
                .ring
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .restart(settled);
        }
        let head = self.head(session).await?;
        self.publish(session, settled, head, listener);
        Ok(if settled > mark {
            Look::More
        } else {
            Look::Waiting
        })
    }

    fn publish(
        &self,
        session: &Session,
        settled: Position,
        head: Position,
        listener: ListenerState,
    ) {
        // Proven: no row above the mark is left whose predecessors are in doubt.
        let at_head = session.proof.is_none() && settled >= head;
        self.mark.send_if_modified(|mark| {
            let held = session.proof.as_ref().map(|running| Held {
                position: Position(settled.0 + 1),
                since: running.since,
                waiting_for: mark
                    .held
                    .as_ref()
                    .map(|held| held.waiting_for.clone())
                    .unwrap_or_default(),
            });
            let next = Mark {
                settled_upto: settled.max(mark.settled_upto),
                head: head.max(mark.head),
                proven: mark.proven || at_head,
                held,
                listener,
                source: SourceState::Ok,
            };
            let changed = *mark != next;
            *mark = next;
            changed
        });
    }

    /// Begins a proof that everything up to `upto`, which is visible, is settled.
    async fn begin_proof(
        &self,
        session: &mut Session,
        upto: Position,
        whole: bool,
    ) -> Result<(), Error> {
        let (holders, writers) = self.holders(session).await?;
        let proof = Proof::begin(upto, &holders);
        if let Some(settled) = proof.settled() {
            session.floor = session.floor.max(settled);
            return Ok(());
        }
        let running = Running {
            proof,
            since: SystemTime::now(),
            begun: Instant::now(),
            whole,
        };
        self.name_writers(&running, &holders, writers);
        session.proof = Some(running);
        Ok(())
    }

    async fn observe(&self, session: &mut Session) -> Result<(), Error> {
        let (holders, writers) = self.holders(session).await?;
        let Some(running) = &mut session.proof else {
            return Ok(());
        };
        running.proof.observe(&holders);
        match running.proof.settled() {
            Some(settled) => {
                session.floor = session.floor.max(settled);
                session.proof = None;
            }
            None => self.name_writers(running, &holders, writers),
        }
        Ok(())
    }

    fn name_writers(&self, running: &Running, holders: &[Holder], writers: Vec<Writer>) {
        let waiting_for: Vec<Writer> = holders
            .iter()
            .zip(writers)
            .filter(|(holder, _)| running.proof.waits_for(holder))
            .map(|(_, w)| w)
            .collect();
        self.mark.send_if_modified(|mark| {
            let position = Position(mark.settled_upto.0 + 1);
            mark.held = Some(Held {
                position,
                since: running.since,
                waiting_for,
            });
            // Told with the next mark; names alone wake nobody.
            false
        });
    }

    async fn holders(&self, session: &mut Session) -> Result<(Vec<Holder>, Vec<Writer>), Error> {
        let statement = match self.options.gap_proof {
            GapProof::Writers => include_str!("sql/writers.sql"),
            GapProof::AllTransactions => include_str!("sql/transactions.sql"),
        };
        let reading = sqlx::query(statement)
            .bind(session.table)
            .fetch_all(&mut session.connection);
        let found = bounded(self.options.database.name, STATEMENT_TIMEOUT, reading).await?;
        let mut holders = Vec::with_capacity(found.len());
        let mut writers = Vec::with_capacity(found.len());
        for row in &found {
            let pid: Option<i32> = row.try_get(1)?;
            holders.push(Holder {
                virtual_transaction: row.try_get(0)?,
                pid,
            });
            writers.push(Writer {
                pid,
                application_name: row.try_get(2)?,
                user: row.try_get(3)?,
                since: row.try_get::<Option<Micros>, _>(4)?.map(|micros| micros.0),
            });
        }
        Ok((holders, writers))
    }

    async fn head(&self, session: &mut Session) -> Result<Position, Error> {
        let statement = self.layout.render(include_str!("sql/head.sql"));
        let reading = sqlx::query(AssertSqlSafe(statement)).fetch_one(&mut session.connection);
        let row = bounded(self.options.database.name, STATEMENT_TIMEOUT, reading).await?;
        Ok(Position(row.try_get(0)?))
    }
}
