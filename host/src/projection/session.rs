//! One run of the three stages, from a checkpoint until something ends it.
//!
//! read task → channel → guest thread → channel → commit (this task). While batch n commits, batch n+1 is in
//! the guest and n+2 is read. Whatever ends the run throws away everything that is not committed.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::event_store::event::{Batch, Position};
use crate::event_store::{BatchLimits, Feed};
use crate::guest::thread::GuestThread;
use crate::leadership::Lease;
use crate::read_model::checkpoint::{Checkpoint, Missed, Step};
use crate::read_model::fold::Folded;
use crate::telemetry::metrics::{ProjectionMetrics, Stage};

use super::commit::{NotCommitted, Target};
use super::failure::Failure;
use super::pace::Pace;
use super::pending::{Pending, PendingBatch};
use super::progress::{Progress, Station};
use super::work::{Outcome, Work};

/// Batches that wait between two stages.
const STAGE_BATCHES_MAX: usize = 1;

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
    /// Size of batches.
    pub pace: &'a Pace,
    /// For everybody to see.
    pub progress: &'a Progress,
    /// For everybody to count.
    pub metrics: &'a ProjectionMetrics,
    /// The guest's thread.
    pub thread: &'a GuestThread,
}

/// Between guest and commit.
struct Projected {
    batch: Arc<Batch>,
    outcome: Result<Option<Outcome>, Failure>,
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
        let reader = tokio::spawn(self.reader(checkpoint.position, read, stop.clone()));
        let pending = Pending::default();
        let guest = self.thread.call(guest_stage(
            self.work.clone(),
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

    fn reader(
        &self,
        mut after: Position,
        read: mpsc::Sender<Result<Batch, Failure>>,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (feed, pace, metrics) = (self.feed.clone(), self.pace.clone(), self.metrics.clone());
        let subscription = self.work.plugin.manifest.subscription.clone();
        let bytes_max = self.work.settings.batch_bytes_max;
        async move {
            loop {
                // Waits for room first, so that a batch is as fresh and as full as it can be.
                let Ok(room) = read.reserve().await else {
                    return;
                };
                let limits = BatchLimits {
                    events_max: pace.events(),
                    bytes_max,
                };
                let next = tokio::select! {
                    () = stop.cancelled() => return,
                    next = feed.next(after, &subscription, limits) => next,
                };
                match next {
                    Ok(batch) => {
                        after = batch.upto;
                        metrics.batch_read(batch.events.len());
                        room.send(Ok(batch));
                    }
                    Err(error) => {
                        room.send(Err(Failure {
                            class: error.class(),
                            ..Failure::transient(error.to_string())
                        }));
                        return;
                    }
                }
            }
        }
    }

    async fn commits(
        &self,
        checkpoint: &Checkpoint,
        ready: &mut mpsc::Receiver<Projected>,
        pending: &Pending,
        cancelled: &CancellationToken,
    ) -> Ended {
        let mut from = checkpoint.position;
        loop {
            let next = tokio::select! {
                biased;
                () = cancelled.cancelled() => return Ended::Cancelled,
                next = ready.recv() => next,
            };
            let Some(Projected {
                batch,
                outcome,
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
            if !self.lease.is_valid() {
                return Ended::Fenced;
            }
            if let Some(outcome) = &outcome {
                self.metrics.projected(outcome.fuel, outcome.memory_peak);
                self.metrics.took(Stage::Guest, seconds);
            }
            let step = step(&batch, from, checkpoint.revision);
            let begun = Instant::now();
            let folded = outcome.as_ref().map(|outcome| &*outcome.folded);
            let _busy = self.progress.busy(Station::Commit);
            match self.target.commit(&step, folded).await {
                Ok(_rows) => {
                    let time = begun.elapsed();
                    from = step.to;
                    pending.committed(step.to);
                    self.progress.reached(step.to);
                    self.metrics.took(Stage::Commit, time.as_secs_f64());
                    self.metrics.committed(batch.events.len(), step.to);
                    self.pace.took(
                        batch.events.len(),
                        time.max(std::time::Duration::from_secs_f64(seconds)),
                    );
                }
                Err(NotCommitted::Missed(Missed::Fenced)) => {
                    self.metrics.fenced();
                    return Ended::Fenced;
                }
                Err(NotCommitted::Missed(Missed::Changed)) => return Ended::Changed,
                Err(NotCommitted::Failed(failure)) => {
                    return Ended::Failed {
                        batch: Some(batch),
                        failure,
                    };
                }
            }
        }
    }
}

/// Where a batch takes the checkpoint.
#[must_use]
pub fn step(batch: &Batch, from: Position, revision: i64) -> Step {
    let last_event = batch
        .events
        .last()
        .map(|event| (event.position, event.id.clone()));
    Step {
        from,
        to: batch.upto,
        last_event,
        revision,
    }
}

/// The guest's stage: blocks on both channels, so it lives on the guest's thread.
fn guest_stage(
    work: Work,
    progress: Progress,
    pending: Pending,
    mut batches: mpsc::Receiver<Result<Batch, Failure>>,
    projected: mpsc::Sender<Projected>,
) -> impl FnOnce() + Send + 'static {
    move || {
        while let Some(read) = batches.blocking_recv() {
            let begun = Instant::now();
            let (batch, outcome) = match read {
                Err(failure) => {
                    let nothing = Batch {
                        after: Position(0),
                        upto: Position(0),
                        events: Vec::new(),
                    };
                    (nothing, Err(failure))
                }
                Ok(batch) if batch.events.is_empty() => (batch, Ok(None)),
                Ok(batch) => {
                    let _busy = progress.busy(Station::Guest);
                    let outcome = work.project(&batch.events, &pending);
                    (batch, outcome.map(Some))
                }
            };
            let failed = outcome.is_err();
            if let Ok(Some(outcome)) = &outcome {
                pending.push(PendingBatch {
                    to: batch.upto,
                    folded: Arc::<Folded>::clone(&outcome.folded),
                });
            }
            let item = Projected {
                batch: Arc::new(batch),
                outcome,
                seconds: begun.elapsed().as_secs_f64(),
            };
            if projected.blocking_send(item).is_err() || failed {
                return;
            }
        }
    }
}
