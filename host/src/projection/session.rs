//! One run of the three stages, from a checkpoint until something ends it.
//!
//! read task → channel → guest thread → channel → commit (this task). While batch n commits, batch n+1 is in
//! the guest and n+2 is read. Whatever ends the run throws away everything that is not committed.

mod read;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::sync::CancellationToken;

use crate::event_store::Feed;
use crate::event_store::event::{Batch, Position};
use crate::guest::thread::GuestThread;
use crate::leadership::Lease;
use crate::read_model::checkpoint::{Checkpoint, Missed, Step};
use crate::read_model::fold::Folded;
use crate::telemetry::metrics::{ProjectionMetrics, Stage};

use super::commit::{NotCommitted, Target};
use super::failure::Failure;
use super::pace::{Pace, Share};
use super::parked::{Parked, Waiting};
use super::pending::{Pending, PendingBatch};
use super::progress::{Progress, Station};
use super::work::{Outcome, Work};
use read::Reader;

/// Batches that wait between two stages.
const STAGE_BATCHES_MAX: usize = 1;

/// Events of a batch after which the next one will probably not be there at once.
const SMALL_BATCH_EVENTS: RangeInclusive<usize> = 1..=64;

/// Why a run ended.
#[derive(Debug)]
pub enum Ended {
    /// Told to.
    Cancelled,
    /// The term or its lease is over.
    Fenced,
    /// A command changed the checkpoint's row: read it again.
    Changed,
    /// A batch did not pass.
    Failed {
        /// The batch, when it is one that can be split.
        batch: Option<Arc<Batch>>,
        /// Why.
        failure: Failure,
    },
}

/// The parts of a run.
#[derive(Debug)]
pub struct Session<'a> {
    /// Where events come from.
    pub feed: &'a Feed,
    /// Guest, checks and fold.
    pub work: &'a Work,
    /// Where batches go.
    pub target: &'a Target,
    /// Whether this replica still leads.
    pub lease: &'a Lease,
    /// Streams that wait, as the run begins.
    pub parked: &'a Parked,
    /// Size of batches.
    pub pace: &'a Pace,
    /// For everybody to see.
    pub progress: &'a Progress,
    /// For everybody to count.
    pub metrics: &'a ProjectionMetrics,
    /// The guest's thread.
    pub thread: &'a GuestThread,
}

/// Where the commits of a run stand.
struct Standing {
    from: Position,
    revision: i64,
}

/// Between guest and commit.
struct Projected {
    batch: Arc<Batch>,
    outcome: Result<Option<Outcome>, Failure>,
    waiting: Waiting,
    seconds: f64,
}

impl Session<'_> {
    /// Runs until something ends it.
    pub async fn run(&self, checkpoint: &Checkpoint, cancelled: &CancellationToken) -> Ended {
        let stop = cancelled.child_token();
        // Ends the other stages however this function is left.
        let _guard = stop.clone().drop_guard();
        let (read, batches) = mpsc::channel::<Result<Batch, Failure>>(STAGE_BATCHES_MAX);
        let (projected, mut ready) = mpsc::channel::<Projected>(STAGE_BATCHES_MAX);
        let reader = Reader {
            feed: self.feed.clone(),
            subscription: self.work.plugin.manifest.subscription.clone(),
            pace: self.pace.clone(),
            bytes_max: self.work.settings.batch_bytes_max,
            metrics: self.metrics.clone(),
        };
        let reader = tokio::spawn(reader.run(checkpoint.position, read, stop.clone()));
        let pending = Pending::default();
        let guest = self.thread.call(guest_stage(
            self.work.clone(),
            self.parked.clone(),
            self.metrics.clone(),
            self.progress.clone(),
            pending.clone(),
            batches,
            projected,
        ));
        let committing = self.commits(checkpoint, &mut ready, &pending, cancelled);
        tokio::pin!(guest, committing);
        let ended = tokio::select! {
            ended = &mut committing => ended,
            broken = &mut guest => match broken {
                // The stage is over; what it sent last is still to be judged.
                Ok(()) => committing.await,
                Err(error) => Ended::Failed { batch: None, failure: error.into() },
            },
        };
        reader.abort();
        ended
    }

    async fn commits(
        &self,
        checkpoint: &Checkpoint,
        ready: &mut mpsc::Receiver<Projected>,
        pending: &Pending,
        cancelled: &CancellationToken,
    ) -> Ended {
        let mut standing = Standing {
            from: checkpoint.position,
            revision: checkpoint.revision,
        };
        loop {
            let next = tokio::select! {
                biased;
                () = cancelled.cancelled() => return Ended::Cancelled,
                next = ready.recv() => next,
            };
            let Some(Projected {
                batch,
                outcome,
                waiting,
                seconds,
            }) = next
            else {
                return Ended::Failed {
                    batch: None,
                    failure: Failure::transient("the stages before ended"),
                };
            };
            let outcome = match outcome {
                Ok(outcome) => outcome,
                // A batch that was never read carries no stretch of the store.
                Err(failure) => {
                    let batch = (batch.upto > batch.after).then_some(batch);
                    return Ended::Failed { batch, failure };
                }
            };
            if let Some(outcome) = &outcome {
                self.metrics.projected(outcome.fuel, outcome.memory_peak);
                self.metrics.took(Stage::Guest, seconds);
            }
            let begun = Instant::now();
            let folded = outcome.as_ref().map(|outcome| &*outcome.folded);
            if let Err(ended) = self
                .commit(&mut standing, &batch, folded, &waiting, pending)
                .await
            {
                return ended;
            }
            let time = begun.elapsed();
            self.metrics.took(Stage::Commit, time.as_secs_f64());
            self.pace.took(
                batch.events.len(),
                time.max(Duration::from_secs_f64(seconds)),
                Share {
                    used: outcome.map_or(0, |outcome| outcome.memory_peak),
                    max: self.work.plugin.limits.memory_max,
                },
            );
        }
    }

    async fn commit(
        &self,
        standing: &mut Standing,
        batch: &Arc<Batch>,
        folded: Option<&Folded>,
        waiting: &Waiting,
        pending: &Pending,
    ) -> Result<(), Ended> {
        if !self.lease.is_valid() {
            return Err(Ended::Fenced);
        }
        let step = step(batch, standing.from, standing.revision);
        let _busy = self.progress.busy(Station::Commit);
        match self.target.commit(&step, folded, &waiting.letters).await {
            Ok(_rows) => {
                standing.from = step.to;
                pending.committed(step.to);
                self.progress.reached(step.to);
                self.metrics.committed(batch.events.len(), step.to);
                Ok(())
            }
            Err(NotCommitted::Missed(Missed::Fenced)) => {
                self.metrics.fenced();
                Err(Ended::Fenced)
            }
            Err(NotCommitted::Missed(Missed::Changed)) => Err(Ended::Changed),
            Err(NotCommitted::Failed(failure)) => Err(Ended::Failed {
                batch: Some(Arc::clone(batch)),
                failure: waiting.name(failure),
            }),
        }
    }
}

/// Where a batch takes the checkpoint.
#[must_use]
pub fn step(batch: &Batch, from: Position, revision: i64) -> Step {
    Step {
        from,
        to: batch.upto,
        last_event: batch.anchor.clone(),
        revision,
    }
}

/// The guest's stage: blocks on both channels, so it lives on the guest's thread.
fn guest_stage(
    work: Work,
    parked: Parked,
    metrics: ProjectionMetrics,
    progress: Progress,
    pending: Pending,
    mut batches: mpsc::Receiver<Result<Batch, Failure>>,
    projected: mpsc::Sender<Projected>,
) -> impl FnOnce() + Send + 'static {
    move || {
        let mut ready = None;
        // What making one ahead came to once, it comes to each time.
        let mut is_worth_it = true;
        while let Some(read) = batches.blocking_recv() {
            let begun = Instant::now();
            let mut waiting = Waiting::default();
            // Outlives the batch's way to the next stage, which does not wait for it.
            let mut spent = None;
            let (batch, outcome) = match read {
                Err(failure) => {
                    let nothing = Batch {
                        after: Position(0),
                        upto: Position(0),
                        anchor: None,
                        events: Vec::new(),
                    };
                    (nothing, Err(failure))
                }
                Ok(batch) if batch.events.is_empty() => (batch, Ok(None)),
                Ok(batch) => {
                    let _busy = progress.busy(Station::Guest);
                    let (outcome, apart, left) =
                        parked.project(&work, &mut ready, &batch.events, &pending, &metrics);
                    waiting = apart;
                    spent = left;
                    (batch, outcome)
                }
            };
            let failed = outcome.is_err();
            let is_small = SMALL_BATCH_EVENTS.contains(&batch.events.len());
            if let Ok(Some(outcome)) = &outcome {
                pending.push(PendingBatch {
                    to: batch.upto,
                    folded: Arc::<Folded>::clone(&outcome.folded),
                });
            }
            let item = Projected {
                batch: Arc::new(batch),
                outcome,
                waiting,
                seconds: begun.elapsed().as_secs_f64(),
            };
            let left = match projected.try_send(item) {
                Err(TrySendError::Full(item)) => {
                    // There is time: an instance less while it waits.
                    drop(spent.take());
                    projected.blocking_send(item).is_err()
                }
                sent => sent.is_err(),
            };
            if left || failed {
                return;
            }
            drop(spent);
            // In live operation nobody waits now; the next event will. In catch-up the next batch waits already.
            if is_worth_it && is_small && ready.is_none() {
                let _busy = progress.busy(Station::Guest);
                ready = work.ready();
                is_worth_it = ready.is_some();
            }
        }
    }
}
