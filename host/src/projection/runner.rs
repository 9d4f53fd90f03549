//! A projection from its checkpoint on, for as long as this replica leads: run, isolate, wait, run again.

mod judge;

use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::database::backoff;
use crate::event_store::Feed;
use crate::guest::engine::Engine;
use crate::guest::thread::GuestThread;
use crate::leadership::Lease;
use crate::read_model::checkpoint::Checkpoint;
use crate::telemetry::metrics::ProjectionMetrics;

use super::commit::Target;
use super::failure::Failure;
use super::pace::Pace;
use super::progress::{Phase, Progress};
use super::redrive::Letters;
use super::session::{Ended, Session};
use super::work::Work;

/// Longest wait for a statement on the control tables.
pub const CONTROL_TIMEOUT: Duration = Duration::from_secs(10);

/// So many starts without a commit, and events are tried one by one.
const STARTS_WITHOUT_COMMIT_MAX: i32 = 3;

/// Waits between runs that fail for the database's sake.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Log line of a run that failed for the database's sake.
const AGAIN: &str = "the projection failed for the moment; trying again";

/// Runs one projection.
#[derive(Debug)]
pub struct Runner {
    /// Where events come from.
    pub feed: Feed,
    /// Runs the guest.
    pub engine: Engine,
    /// Guest, checks and fold.
    pub work: Work,
    /// Where batches go.
    pub target: Target,
    /// Whether this replica still leads.
    pub lease: Lease,
    /// For everybody to see.
    pub progress: Progress,
    /// For everybody to count.
    pub metrics: ProjectionMetrics,
    /// The checkpoint row's revision, as the supervisor last saw it.
    pub revision: watch::Receiver<i64>,
    /// Whether this start was counted.
    pub counted: bool,
    /// Streams that wait, and letters that are to be tried again.
    pub letters: Letters,
}

/// Why a runner ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// Told to.
    Cancelled,
    /// Another leader has taken over.
    Fenced,
    /// What may run has changed, or what somebody allows: to be asked again.
    Changed,
    /// A task died of a bug in the host.
    Died,
}

enum Next {
    Go,
    Wait,
    Stop(Stopped),
}

/// What a run begins with.
enum Begun {
    /// Events may be projected from here.
    Run {
        checkpoint: Box<Checkpoint>,
        /// Starts before this one that led to no commit.
        deaths: i32,
    },
    /// There is nothing to run.
    Not(Next),
}

impl Runner {
    /// Runs until cancelled or fenced.
    pub async fn run(mut self, cancelled: CancellationToken) -> Stopped {
        let stopped = self.run_on(&cancelled).await;
        self.progress
            .tell_repeats(&self.target.key.projection, true);
        stopped
    }

    async fn run_on(&mut self, cancelled: &CancellationToken) -> Stopped {
        let waits = || backoff::waits(RETRY_MIN, RETRY_MAX);
        let mut pauses = waits();
        let pace = Pace::new(self.work.settings.batch_events_max);
        loop {
            let before = self.progress.position();
            let begun = tokio::select! {
                biased;
                () = cancelled.cancelled() => return Stopped::Cancelled,
                begun = self.begin() => begun,
            };
            let next = match begun {
                // Not dropped from outside: it ends by itself, behind the batch that is being committed.
                Ok(Begun::Run { checkpoint, deaths }) => {
                    self.run_from(&pace, &checkpoint, deaths, cancelled).await
                }
                Ok(Begun::Not(next)) => Ok(next),
                Err(failure) => Err(failure),
            };
            match next {
                Ok(Next::Go) => pauses = waits(),
                Ok(Next::Stop(stopped)) => return stopped,
                Ok(Next::Wait) => {
                    pauses = waits();
                    tokio::select! {
                        () = cancelled.cancelled() => return Stopped::Cancelled,
                        changed = self.revision.changed() => if changed.is_err() { return Stopped::Cancelled },
                    }
                }
                Err(failure) => {
                    if self.progress.position() > before {
                        pauses = waits();
                    }
                    self.progress.enter(Phase::Retrying);
                    self.progress.failed(failure.message.clone());
                    self.metrics.retried(failure.class);
                    let wait = pauses.next().unwrap_or(RETRY_MAX);
                    if self.progress.repeats().admit(AGAIN) {
                        tracing::warn!(
                            projection = self.target.key.projection,
                            error = failure.message,
                            wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                            "{AGAIN}"
                        );
                    }
                    tokio::select! {
                        () = cancelled.cancelled() => return Stopped::Cancelled,
                        () = tokio::time::sleep(wait) => {}
                    }
                }
            }
        }
    }

    /// Reads the checkpoint and counts the start. An error is transient.
    async fn begin(&mut self) -> Result<Begun, Failure> {
        self.revision.mark_unchanged();
        let loaded = self
            .target
            .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                checkpoints.load(connection, key).await
            })
            .await?;
        let fence = self.target.checkpoints.fence();
        let Some(checkpoint) =
            loaded.filter(|row| row.term == fence.term && row.term_id == fence.term_id)
        else {
            return Ok(Begun::Not(Next::Stop(Stopped::Fenced)));
        };
        self.progress.reached(checkpoint.position);
        // Came after this run was admitted.
        if checkpoint.accepted.is_some() {
            return Ok(Begun::Not(Next::Stop(Stopped::Changed)));
        }
        if let Some((category, position, _)) = &checkpoint.failure {
            tracing::info!(
                projection = self.target.key.projection,
                category,
                position,
                "the projection stays stopped"
            );
            self.progress.enter(Phase::Stopped);
            return Ok(Begun::Not(Next::Wait));
        }
        if checkpoint.paused {
            self.progress.enter(Phase::Paused);
            return Ok(Begun::Not(Next::Wait));
        }
        // Only a start of this leader counts, not a run that follows a failure of the database: that is
        // nobody's event.
        let deaths = if self.counted {
            0
        } else {
            checkpoint.starts_without_commit
        };
        if !self.counted {
            self.counted = self
                .target
                .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                    checkpoints.start(connection, key).await
                })
                .await?;
            if !self.counted {
                return Ok(Begun::Not(Next::Go));
            }
        }
        let checkpoint = Box::new(checkpoint);
        Ok(Begun::Run { checkpoint, deaths })
    }

    /// From the checkpoint to the next end. An error is transient.
    async fn run_from(
        &mut self,
        pace: &Pace,
        checkpoint: &Checkpoint,
        deaths: i32,
        cancelled: &CancellationToken,
    ) -> Result<Next, Failure> {
        self.progress.enter(Phase::Running);
        self.target.connections.has_new_tables();
        self.work.lookups.connections.has_new_tables();
        // A thread a run: a guest that hangs in the host's care cannot hold up the next run.
        let thread = match GuestThread::spawn(&self.target.key.projection, &self.engine) {
            Ok(thread) => thread,
            Err(error) => return Err(Failure::transient(error.to_string())),
        };
        // The first look-up waits for the opening of no session; what fails here fails again where it matters.
        let _opening = self.work.plugin.manifest.reads.then(|| {
            let lookups = self.work.lookups.connections.clone();
            AbortOnDropHandle::new(tokio::spawn(async move {
                if let Ok(loan) = lookups.lend().await {
                    loan.give_back();
                }
            }))
        });
        self.read_letters(checkpoint).await?;
        if let Some(ended) = self.redrive(&thread, checkpoint, cancelled).await? {
            return Ok(match ended {
                Ended::Fenced => Next::Stop(Stopped::Fenced),
                Ended::Cancelled => Next::Stop(Stopped::Cancelled),
                _ => Next::Go,
            });
        }
        let parked = self.letters.parked.clone();
        let session = Session {
            feed: &self.feed,
            work: &self.work,
            target: &self.target,
            lease: &self.lease,
            parked: &parked,
            pace,
            progress: &self.progress,
            metrics: &self.metrics,
            thread: &thread,
        };
        let one_by_one = deaths >= STARTS_WITHOUT_COMMIT_MAX;
        let ended = if one_by_one {
            self.one_by_one(&session, checkpoint, cancelled).await?
        } else {
            self.until_asked(&session, checkpoint, cancelled).await
        };
        let isolates = one_by_one || matches!(&ended, Ended::Failed { batch: Some(_), .. });
        if let Ended::Failed {
            batch: Some(batch),
            failure,
        } = &ended
            && failure.is_isolated()
            && failure.event.is_none()
        {
            pace.failed(batch.events.len());
        }
        let next = self.judge(&session, ended, cancelled).await;
        if isolates {
            self.letters.forget();
        }
        next
    }

    /// Runs until something ends it, a command changed the row, or a dead letter is to be tried.
    async fn until_asked(
        &self,
        session: &Session<'_>,
        checkpoint: &Checkpoint,
        cancelled: &CancellationToken,
    ) -> Ended {
        let mut revision = self.revision.clone();
        let asked = async {
            let due = async {
                match self.letters.due {
                    Some(due) => tokio::time::sleep_until(due.into()).await,
                    None => std::future::pending().await,
                }
            };
            let changed = async {
                let seen = revision.wait_for(|seen| *seen > checkpoint.revision);
                if seen.await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                () = due => {}
                () = changed => {}
            }
        };
        let stop = cancelled.child_token();
        let running = session.run(checkpoint, &stop);
        tokio::pin!(running);
        tokio::select! {
            ended = &mut running => ended,
            () = asked => {
                // It ends by itself, behind the batch that is being committed.
                stop.cancel();
                match running.await {
                    Ended::Cancelled if !cancelled.is_cancelled() => Ended::Changed,
                    ended => ended,
                }
            }
        }
    }
}
