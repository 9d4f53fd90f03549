//! The reading service: finds out how far the store is settled and publishes the mark.
//!
//! Near the head it reads the rows themselves and keeps them for the feed. Far behind it proves the head once
//! and lets the projections run through. Every error closes the session, throws the running proof away and
//! begins again after a wait; the mark itself stays, since what was settled is settled. Must never: end because
//! of an outage, or move the mark without a proof.

mod edits;
mod look;
mod session;

use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tokio::sync::{Mutex as AsyncMutex, Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::database::backoff;
use crate::database::listener::{Listener, ListenerState};
use crate::error::Class;
use crate::telemetry::metrics::StoreMetrics;

use super::Options;
use super::error::Error;
use super::event::{Anchor, Position};
use super::feed::{Feed, Rows, Shared};
use super::layout::Layout;
use super::mark::{Mark, SourceState};
use super::preflight::StoreIdentity;
use super::ring::Ring;
use look::Look;
use session::Session;

/// How often an open gap is looked at after a wake-up, and for how long so often.
const GAP_INTERVAL: Duration = Duration::from_millis(10);
const GAP_HURRY: Duration = Duration::from_secs(1);

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
    /// Which store is read: the one of the first session, or the expected one.
    identity: watch::Sender<Option<StoreIdentity>>,
    metrics: StoreMetrics,
}

impl Service {
    /// A service and the handle to read through. `settled_upto` is what is remembered of this store.
    #[must_use]
    pub fn new(options: Options, settled_upto: Position) -> (Self, Feed) {
        let layout = Layout::Projector {
            schema: options.schema.clone(),
        };
        let (mark, seen) = watch::channel(Mark::starting(settled_upto));
        let (identity, known) = watch::channel(None);
        let shared = Arc::new(Shared {
            layout: layout.clone(),
            database: options.database.clone(),
            identity: known,
            ring: Mutex::new(Ring::new(settled_upto)),
            careful: AtomicU32::new(0),
            reading: AsyncMutex::new(None),
        });
        let feed = Feed {
            mark: seen,
            shared: Arc::clone(&shared),
            rows: Rows::unlimited(),
            tolerated: Arc::default(),
        };
        let service = Self {
            options,
            layout,
            mark,
            shared,
            identity,
            metrics: StoreMetrics::default(),
        };
        (service, feed)
    }

    /// Reads this store only: what is remembered belongs to it. Without this, the first session decides.
    #[must_use]
    pub fn expecting(self, identity: StoreIdentity) -> Self {
        self.identity.send_replace(Some(identity));
        self
    }

    /// Begins only where this event, the last one that was read, still stands.
    #[must_use]
    pub fn anchored(self, anchor: Anchor) -> Self {
        self.mark.send_modify(|mark| mark.anchor = Some(anchor));
        self
    }

    /// Counts here what others may want to know.
    #[must_use]
    pub fn counting(mut self, metrics: StoreMetrics) -> Self {
        self.metrics = metrics;
        self
    }

    /// Reads until shut down. An outage of the database only delays.
    ///
    /// # Errors
    /// When the store cannot be read safely at all.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), Error> {
        let wake = Arc::new(Notify::new());
        let (state, listener_state) = watch::channel(ListenerState::PollingOnly);
        let listening = self.options.notify.then(|| {
            let listener = Listener {
                database: self.options.database.clone(),
                channel: self.layout.channel(),
                wake: Arc::clone(&wake),
                state,
                reconnects: self.metrics.reconnects.clone(),
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
        &self,
        shutdown: &CancellationToken,
        wake: &Notify,
        listener: &watch::Receiver<ListenerState>,
    ) -> Result<(), Error> {
        let waits = || backoff::waits(RECONNECT_MIN, RECONNECT_MAX);
        let mut pauses = waits();
        loop {
            let lost = tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                lost = self.session(wake, listener) => lost,
            };
            let Err(error) = lost;
            let failed_before = self.failing(&error);
            if error.class() == Class::Fatal {
                return Err(error);
            }
            if !failed_before {
                pauses = waits();
            }
            tracing::warn!(%error, "cannot read the event store; trying again");
            tokio::select! {
                () = shutdown.cancelled() => return Ok(()),
                () = tokio::time::sleep(pauses.next().unwrap_or(RECONNECT_MAX)) => {}
            }
        }
    }

    /// Publishes a failure; returns whether the store was failing already.
    fn failing(&self, error: &Error) -> bool {
        let mut already = false;
        self.mark.send_modify(|mark| {
            mark.held = None;
            // Whoever listens on a store that cannot be read hears nothing, or is about to be told so.
            mark.listener = ListenerState::PollingOnly;
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
        &self,
        wake: &Notify,
        listener: &watch::Receiver<ListenerState>,
    ) -> Result<std::convert::Infallible, Error> {
        let (mark, anchor) = {
            let mark = self.mark.borrow();
            (mark.settled_upto, mark.anchor.clone())
        };
        let mut session = Session::open(
            &self.options,
            &self.layout,
            mark,
            anchor.as_ref(),
            &self.identity,
        )
        .await?;
        if anchor.is_none() && mark > Position(0) {
            let anchor = session.anchor().cloned();
            self.mark.send_modify(|mark| mark.anchor = anchor);
        }
        self.begin(&mut session).await?;
        loop {
            let begun = Instant::now();
            let mut look = Look::More;
            while look == Look::More {
                let listening = *listener.borrow();
                look = self.look(&mut session, listening).await?;
                let settled = self.mark.borrow().settled_upto;
                let late = session.look_for_edits(settled).await?;
                self.found_late(&late)?;
            }
            let hurry = session
                .proof()
                .is_some_and(|proof| proof.begun.elapsed() < GAP_HURRY);
            let wait = if hurry {
                GAP_INTERVAL.min(self.options.poll_interval)
            } else {
                self.options.poll_interval
            };
            // From look to look, unless looking itself takes long.
            let looked = begun.elapsed().min(wait / 2);
            tokio::select! {
                () = wake.notified() => {}
                () = tokio::time::sleep(wait - looked) => {}
            }
        }
    }

    /// Events that no reader will find where they stand: whoever has passed them stops, and who comes to them
    /// later finds them in the table, no more in the ring.
    pub(super) fn found_late(&self, positions: &[Position]) -> Result<(), Error> {
        if positions.is_empty() {
            return Ok(());
        }
        self.ring().restart(self.mark.borrow().settled_upto)?;
        let find = |mark: &mut Mark| mark.late.find(positions);
        if self.mark.send_if_modified(find) {
            let error = Error::late(positions);
            tracing::error!(%error, "projections that have passed them stop");
        }
        Ok(())
    }

    fn ring(&self) -> std::sync::MutexGuard<'_, Ring> {
        self.shared
            .ring
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}
