//! A projection from its checkpoint on, for as long as this replica leads: run, isolate, wait, run again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::database::backoff;
use crate::error::Class;
use crate::event_store::event::Event;
use crate::event_store::{BatchLimits, Feed};
use crate::guest::engine::Engine;
use crate::guest::thread::GuestThread;
use crate::leadership::Lease;
use crate::read_model::checkpoint::{self, Checkpoint};
use crate::telemetry::metrics::ProjectionMetrics;

use super::commit::Target;
use super::failure::{CRASH, Failure};
use super::isolate::{Isolated, Mode};
use super::pace::Pace;
use super::progress::{Phase, Progress};
use super::session::{Ended, Session};
use super::work::Work;

/// Longest wait for a statement on the control tables.
pub const CONTROL_TIMEOUT: Duration = Duration::from_secs(10);

/// So many starts without a commit, and events are tried one by one.
const STARTS_WITHOUT_COMMIT_MAX: i32 = 3;

/// Events that are tried one by one after that.
const ONE_BY_ONE_EVENTS: usize = 100;

/// Waits between runs that fail for the database's sake.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(10);

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
                    self.run_from(&pace, &checkpoint, deaths, &cancelled).await
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
                    tracing::warn!(
                        projection = self.target.key.projection,
                        error = failure.message,
                        wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
                        "the projection failed for the moment; trying again"
                    );
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
        &self,
        pace: &Pace,
        checkpoint: &Checkpoint,
        deaths: i32,
        cancelled: &CancellationToken,
    ) -> Result<Next, Failure> {
        self.progress.enter(Phase::Running);
        // A thread a run: a guest that hangs in the host's care cannot hold up the next run.
        let thread = match GuestThread::spawn(&self.target.key.projection, &self.engine) {
            Ok(thread) => thread,
            Err(error) => return Err(Failure::transient(error.to_string())),
        };
        let session = Session {
            feed: &self.feed,
            work: &self.work,
            target: &self.target,
            lease: &self.lease,
            pace,
            progress: &self.progress,
            metrics: &self.metrics,
            thread: &thread,
        };
        let ended = if deaths >= STARTS_WITHOUT_COMMIT_MAX {
            self.one_by_one(&session, checkpoint, cancelled).await?
        } else {
            session.run(checkpoint, cancelled).await
        };
        self.judge(&session, ended, cancelled).await
    }

    async fn one_by_one(
        &self,
        session: &Session<'_>,
        checkpoint: &Checkpoint,
        cancelled: &CancellationToken,
    ) -> Result<Ended, Failure> {
        tracing::warn!(
            projection = self.target.key.projection,
            starts = checkpoint.starts_without_commit,
            "no start has led to a commit; trying events one by one"
        );
        let limits = BatchLimits {
            events_max: ONE_BY_ONE_EVENTS,
            bytes_max: self.work.settings.batch_bytes_max,
        };
        let wanted = &self.work.plugin.manifest.subscription;
        let batch = tokio::select! {
            () = cancelled.cancelled() => return Ok(Ended::Cancelled),
            batch = self.feed.next(checkpoint.position, wanted, limits) => batch,
        };
        let batch = batch.map_err(|error| Failure::transient(error.to_string()))?;
        let isolated = session
            .isolate(
                checkpoint,
                &Arc::new(batch),
                None,
                Mode::OneByOne,
                cancelled,
            )
            .await;
        self.isolated(checkpoint, isolated).await
    }

    async fn judge(
        &self,
        session: &Session<'_>,
        ended: Ended,
        cancelled: &CancellationToken,
    ) -> Result<Next, Failure> {
        match ended {
            Ended::Cancelled => Ok(Next::Stop(Stopped::Cancelled)),
            Ended::Fenced => Ok(Next::Stop(Stopped::Fenced)),
            Ended::Changed => Ok(Next::Go),
            Ended::Failed {
                batch: Some(batch),
                failure,
            } if failure.is_isolated() => {
                self.metrics.failed(failure.category);
                let checkpoint = self
                    .target
                    .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                        checkpoints.load(connection, key).await
                    })
                    .await?;
                let Some(checkpoint) = checkpoint else {
                    return Ok(Next::Go);
                };
                if checkpoint.paused
                    || checkpoint.failure.is_some()
                    || checkpoint.position >= batch.upto
                {
                    return Ok(Next::Go);
                }
                tracing::debug!(
                    projection = self.target.key.projection,
                    events = batch.events.len(),
                    error = failure.message,
                    "a batch did not pass; looking for the event"
                );
                let isolated = session
                    .isolate(&checkpoint, &batch, Some(failure), Mode::Split, cancelled)
                    .await;
                let ended = self.isolated(&checkpoint, isolated).await?;
                Box::pin(self.judge(session, ended, cancelled)).await
            }
            Ended::Failed { failure, .. } if failure.class == Class::Transient => Err(failure),
            Ended::Failed { batch, failure } => {
                let event = failure.event.and_then(|at| batch.as_ref()?.events.get(at));
                let revision = self.revision_now().await?;
                self.stop(revision, event, &failure).await?;
                Ok(Next::Go)
            }
        }
    }

    /// The policy `stop`: the projection ends at the event until somebody resumes it.
    async fn isolated(
        &self,
        checkpoint: &Checkpoint,
        isolated: Isolated,
    ) -> Result<Ended, Failure> {
        match isolated {
            Isolated::Passed => Ok(Ended::Changed),
            Isolated::Ended(ended) => Ok(ended),
            Isolated::Blamed { event, failure } => {
                self.stop(checkpoint.revision, Some(&event), &failure)
                    .await?;
                Ok(Ended::Changed)
            }
        }
    }

    async fn stop(
        &self,
        revision: i64,
        event: Option<&Event>,
        failure: &Failure,
    ) -> Result<(), Failure> {
        let message = match event {
            Some(event) if failure.category != CRASH => format!(
                "{} at position {}: {}",
                event.event_type, event.position, failure.message
            ),
            _ => failure.message.clone(),
        };
        let row = checkpoint::Failure {
            category: failure.category,
            position: event.map(|event| event.position),
            event_type: event.map(|event| event.event_type.as_str()),
            event_id: event.map(|event| event.id.as_str()),
            message: &message,
        };
        let stopped = self
            .target
            .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                checkpoints.fail(connection, key, revision, &row).await
            })
            .await?;
        if stopped {
            self.metrics.failed(failure.category);
            tracing::error!(
                projection = self.target.key.projection,
                category = failure.category,
                position = event.map(|event| event.position.0),
                error = message,
                "the projection stopped; mend the cause, then `projector-host resume {}`",
                self.target.key.projection
            );
        }
        Ok(())
    }

    async fn revision_now(&self) -> Result<i64, Failure> {
        let row = self
            .target
            .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                checkpoints.load(connection, key).await
            })
            .await?;
        Ok(row.map_or(0, |row| row.revision))
    }
}
