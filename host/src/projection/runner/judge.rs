//! What a run's end means: isolate, wait, stop, or go on.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::error::Class;
use crate::event_store::BatchLimits;
use crate::event_store::event::Event;
use crate::read_model::checkpoint::{self, Checkpoint};

use super::{CONTROL_TIMEOUT, Next, Runner, Stopped};
use crate::projection::failure::{Failure, told};
use crate::projection::isolate::{Isolated, Mode};
use crate::projection::session::{Ended, Session};

/// Events that are tried one by one after starts without a commit.
const ONE_BY_ONE_EVENTS: usize = 100;

impl Runner {
    pub(super) async fn one_by_one(
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
        let batch = batch.map_err(Failure::from)?;
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

    pub(super) async fn judge(
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

    /// What comes after isolating. The policy `stop`: the projection ends at the event until somebody resumes it.
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
        let message = event.map_or_else(|| failure.message.clone(), |event| told(event, failure));
        let place = failure.place.as_ref();
        let row = checkpoint::Failure {
            category: failure.category,
            position: event.map(|event| event.position),
            event_type: event.map(|event| event.event_type.as_str()),
            event_id: event.map(|event| event.id.as_str()),
            stream: event.map(|event| event.stream.as_str()),
            table: place.map(|place| place.table.as_str()),
            column: place.and_then(|place| place.column.as_deref()),
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
