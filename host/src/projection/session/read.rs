//! The first stage: reads what is wanted from a position on.
//!
//! Promises: a batch goes on at once; a stretch without a wanted event disturbs nobody, since it waits for the next one
//! that has some, or until its time to be told alone. Must never: give up a read under way for the sake of telling.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::event_store::event::{Batch, Position, Subscription};
use crate::event_store::{BatchLimits, Feed};
use crate::projection::failure::Failure;
use crate::projection::pace::Pace;
use crate::telemetry::metrics::ProjectionMetrics;

/// A stretch without a wanted event is told at most this often: a projection that wants nothing of a busy store costs a
/// statement a second.
const ALONE_INTERVAL: Duration = Duration::from_secs(1);

/// Reads for one run.
pub(super) struct Reader {
    pub(super) feed: Feed,
    pub(super) subscription: Subscription,
    pub(super) pace: Pace,
    pub(super) bytes_max: usize,
    pub(super) metrics: ProjectionMetrics,
}

impl Reader {
    /// Reads until it is stopped, a read fails, or nobody takes what was read.
    pub(super) async fn run(
        self,
        after: Position,
        read: mpsc::Sender<Result<Batch, Failure>>,
        stop: CancellationToken,
    ) {
        tokio::select! {
            () = stop.cancelled() => {}
            _nobody = self.read(after, &read) => {}
        }
    }

    /// None when nobody takes what was read, or a read failed.
    async fn read(
        &self,
        mut after: Position,
        read: &mpsc::Sender<Result<Batch, Failure>>,
    ) -> Option<()> {
        let mut passed: Option<Batch> = None;
        // As if long ago: what comes first is told at once.
        let mut next_alone = Instant::now();
        loop {
            // Waits for room first, so that a batch is as fresh and as full as it can be.
            let mut room = Some(read.reserve().await.ok()?);
            let limits = BatchLimits {
                events_max: self.pace.events(),
                bytes_max: self.bytes_max,
            };
            let next = self.feed.next(after, &self.subscription, limits);
            tokio::pin!(next);
            let next = loop {
                tokio::select! {
                    biased;
                    next = &mut next => break next,
                    () = tokio::time::sleep_until(next_alone.into()), if passed.is_some() && room.is_some() => {
                        if let (Some(batch), Some(room)) = (passed.take(), room.take()) {
                            room.send(Ok(batch));
                        }
                        next_alone = Instant::now() + ALONE_INTERVAL;
                    }
                    // Beside the read, which may hold the session that others wait for.
                    free = read.reserve(), if room.is_none() => room = Some(free.ok()?),
                }
            };
            let room = match room {
                Some(room) => room,
                None => read.reserve().await.ok()?,
            };
            let mut batch = match next {
                Ok(batch) => batch,
                Err(error) => {
                    room.send(Err(error.into()));
                    return None;
                }
            };
            after = batch.upto;
            if let Some(before) = passed.take() {
                batch.after = before.after;
                batch.anchor = batch.anchor.or(before.anchor);
            }
            if batch.events.is_empty() && Instant::now() < next_alone {
                passed = Some(batch);
                continue;
            }
            self.metrics.batch_read(batch.events.len());
            room.send(Ok(batch));
            next_alone = Instant::now() + ALONE_INTERVAL;
        }
    }
}
