//! Dead letters that somebody wants to be tried again, through the plugin as it is now.
//!
//! It happens between two runs, so no batch of the projection is under way; each letter has a transaction of
//! its own, with its rows. A counted failure comes again after a pause, and meanwhile the projection goes on.

use std::time::{Duration, Instant};

use sqlx::Executor as _;
use tokio_util::sync::CancellationToken;

use crate::database::backoff;
use crate::database::error::Error as DatabaseError;
use crate::database::session::{attended, bounded};
use crate::error::{Class, Code};
use crate::event_store::BatchLimits;
use crate::event_store::event::{Event, Position};
use crate::read_model::checkpoint::{Checkpoint, Missed};
use crate::read_model::dead_letter::{self, Due, Outcome};
use crate::read_model::write;

use super::commit::{COMMIT_ANSWER_TIMEOUT, COMMIT_TIMEOUT, NotCommitted};
use super::failure::{CRASH, Failure, STORE_CHANGED, told};
use super::parked::Parked;
use super::pending::Pending;
use super::runner::{CONTROL_TIMEOUT, Runner};
use super::session::Ended;
use super::work;
use crate::guest::thread::GuestThread;

/// Longest time for letters before the projection goes on.
const TURN: Duration = Duration::from_secs(1);

/// Shortest time for the projection before it is the letters' turn again.
const RUN_MIN: Duration = Duration::from_secs(1);

/// So many attempts that were begun and not ended, and the event is known to end the process.
const DEATHS_MAX: i32 = 3;

/// What a runner knows of its letters. Read again when the checkpoint's revision differs.
#[derive(Debug, Default)]
pub struct Letters {
    /// The revision at which the rest was read.
    seen: Option<i64>,
    /// Streams that wait.
    pub parked: Parked,
    /// When a letter is to be tried.
    pub due: Option<Instant>,
}

impl Letters {
    /// They may have changed.
    pub fn forget(&mut self) {
        self.seen = None;
    }
}

impl Runner {
    /// Reads what waits, if it may have changed since.
    pub(super) async fn read_letters(&mut self, checkpoint: &Checkpoint) -> Result<(), Failure> {
        if self.letters.seen == Some(checkpoint.revision) {
            return Ok(());
        }
        let (streams, due) = self
            .target
            .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                let streams = dead_letter::parked(&mut *connection, checkpoints, key).await?;
                let due = checkpoints.next_due(connection, key).await?;
                Ok((streams, due))
            })
            .await?;
        self.letters = Letters {
            seen: Some(checkpoint.revision),
            parked: streams.into_iter().collect(),
            due: due.map(|due| Instant::now() + due.wait),
        };
        Ok(())
    }

    /// Tries letters whose time has come. None: the projection may go on.
    pub(super) async fn redrive(
        &mut self,
        thread: &GuestThread,
        checkpoint: &Checkpoint,
        cancelled: &CancellationToken,
    ) -> Result<Option<Ended>, Failure> {
        let begun = Instant::now();
        if self.letters.due.is_none_or(|due| due > begun) {
            return Ok(None);
        }
        // Whatever happens, what is known is no longer so.
        self.letters.forget();
        let next = loop {
            if cancelled.is_cancelled() {
                return Ok(Some(Ended::Cancelled));
            }
            if !self.lease.is_valid() {
                return Ok(Some(Ended::Fenced));
            }
            let due = self
                .target
                .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                    checkpoints.next_due(connection, key).await
                })
                .await?;
            let Some(due) = due else { break None };
            if !due.wait.is_zero() || begun.elapsed() > TURN {
                break Some(due.wait.max(RUN_MIN));
            }
            match self.letter(thread, checkpoint, &due).await {
                Ok(()) => self.progress.letters_changed(),
                Err(NotCommitted::Missed(Missed::Fenced)) => return Ok(Some(Ended::Fenced)),
                Err(NotCommitted::Missed(Missed::Changed)) => return Ok(Some(Ended::Changed)),
                Err(NotCommitted::Failed(failure)) => return Err(failure),
            }
        };
        self.read_letters(checkpoint).await?;
        self.letters.due = next.map(|wait| Instant::now() + wait);
        Ok(None)
    }

    /// One attempt, written down before and after. An error is the database's, or the fence's.
    async fn letter(
        &self,
        thread: &GuestThread,
        checkpoint: &Checkpoint,
        due: &Due,
    ) -> Result<(), NotCommitted> {
        let deaths = self
            .target
            .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                checkpoints.begin_retry(connection, key, due.id).await
            })
            .await?;
        let Some(deaths) = deaths else {
            return Err(NotCommitted::Missed(Missed::Changed));
        };
        let tried = if deaths > DEATHS_MAX {
            Err(NotCommitted::Failed(crashed(deaths - 1)))
        } else {
            self.attempt(thread, checkpoint, due).await
        };
        let failure = match tried {
            Ok(()) => {
                tracing::info!(
                    projection = self.target.key.projection,
                    dead_letter = due.id,
                    position = due.position.0,
                    "a dead letter passed"
                );
                return Ok(());
            }
            Err(NotCommitted::Failed(failure)) => failure,
            Err(missed) => {
                self.forget_attempt(due).await;
                return Err(missed);
            }
        };
        if failure.class == Class::Transient && !failure.counted {
            self.forget_attempt(due).await;
            return Err(NotCommitted::Failed(failure));
        }
        self.failed(due, &failure).await.map_err(Into::into)
    }

    async fn attempt(
        &self,
        thread: &GuestThread,
        checkpoint: &Checkpoint,
        due: &Due,
    ) -> Result<(), NotCommitted> {
        let event = self.event_of(due).await.map_err(NotCommitted::Failed)?;
        let outcome = match event {
            None => None,
            Some(event) => {
                let (work, metrics) = (self.work.clone(), self.metrics.clone());
                let at = event.clone();
                let projecting = move || {
                    let nobody = Parked::default();
                    nobody
                        .project(&work, &mut None, &[event], &Pending::default(), &metrics)
                        .0
                };
                let called = thread.call(projecting).await;
                let outcome = called.map_err(|error| NotCommitted::Failed(error.into()))?;
                outcome.map_err(|failure| {
                    let message = told(&at, &failure);
                    NotCommitted::Failed(Failure { message, ..failure })
                })?
            }
        };
        if !self.lease.is_valid() {
            return Err(NotCommitted::Missed(Missed::Fenced));
        }
        self.resolve(checkpoint, due, outcome.as_ref()).await
    }

    /// The letter's event, or none when the plugin does not want it any more: then it passes as it is.
    async fn event_of(&self, due: &Due) -> Result<Option<Event>, Failure> {
        let wanted = &self.work.plugin.manifest.subscription;
        let limits = BatchLimits {
            events_max: 1,
            bytes_max: self.work.settings.batch_bytes_max,
        };
        let before = Position(due.position.0 - 1);
        let batch = self.feed.next(before, wanted, limits).await;
        let first = batch?.events.into_iter().next();
        let found = first.filter(|event| event.position == due.position);
        let id = match &found {
            Some(event) => Some(event.id.clone()),
            None => self.feed.look(due.position, due.position).await?.found,
        };
        if id.as_deref() == Some(&due.event_id) {
            return Ok(found);
        }
        let there = match id {
            Some(id) => format!("the event {id} stands there"),
            None => "no event stands there".to_owned(),
        };
        Err(Failure {
            class: Class::Poison,
            category: STORE_CHANGED,
            ..Failure::transient(format!(
                "{}: position {} of the event store does not hold the event {} any more; {there}",
                Code(815),
                due.position,
                due.event_id
            ))
        })
    }

    /// The letter's rows, its resolution and the stream's release, or none of them.
    async fn resolve(
        &self,
        checkpoint: &Checkpoint,
        due: &Due,
        outcome: Option<&work::Outcome>,
    ) -> Result<(), NotCommitted> {
        let (target, name) = (&self.target, self.target.connections.database());
        let (checkpoints, key) = (&target.checkpoints, &target.key);
        let mut loan = target.connections.lend().await?;
        let begin = "BEGIN ISOLATION LEVEL READ COMMITTED";
        let whole = async {
            loan.execute(begin).await.map_err(DatabaseError::from)?;
            if !checkpoints.hold_term(&mut loan).await? {
                return Err(NotCommitted::Missed(Missed::Fenced));
            }
            if !checkpoints
                .touch(&mut loan, key, (checkpoint.revision, checkpoint.position))
                .await?
            {
                return Err(NotCommitted::Missed(Missed::Changed));
            }
            if let Some(outcome) = outcome {
                write::apply(&mut loan, &target.schema, &target.shapes, &outcome.folded)
                    .await
                    .map_err(|error| NotCommitted::Failed(error.into()))?;
            }
            if !checkpoints.resolve(&mut loan, key, due).await? {
                return Err(NotCommitted::Missed(Missed::Changed));
            }
            bounded(name, COMMIT_ANSWER_TIMEOUT, loan.execute("COMMIT")).await?;
            Ok(())
        };
        // After an error the session closes, which rolls back.
        attended(target.connections.reach(), COMMIT_TIMEOUT, whole).await??;
        loan.give_back();
        Ok(())
    }

    async fn failed(&self, due: &Due, failure: &Failure) -> Result<(), DatabaseError> {
        let retry = self.work.settings.retry;
        let ended = u32::try_from(due.attempts).unwrap_or(u32::MAX);
        let again = backoff::waits(retry.initial, retry.max)
            .take(usize::try_from(retry.attempts_max.saturating_sub(1)).unwrap_or(usize::MAX))
            .nth(usize::try_from(ended).unwrap_or(usize::MAX))
            .filter(|_| failure.counted);
        let place = failure.place.as_ref();
        let outcome = Outcome {
            category: failure.category,
            message: &failure.message,
            place: (
                place.map(|place| place.table.as_str()),
                place.and_then(|place| place.column.as_deref()),
            ),
            again,
        };
        self.metrics.failed(failure.category);
        tracing::warn!(
            projection = self.target.key.projection,
            dead_letter = due.id,
            position = due.position.0,
            category = failure.category,
            error = failure.message,
            again = again.is_some(),
            "a dead letter did not pass"
        );
        self.target
            .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                checkpoints
                    .retry_failed(connection, key, due.id, &outcome)
                    .await
            })
            .await
    }

    async fn forget_attempt(&self, due: &Due) {
        let forgotten = self
            .target
            .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                checkpoints.forget_retry(connection, key, due.id).await
            })
            .await;
        if let Err(error) = forgotten {
            tracing::debug!(%error, "an attempt at a dead letter stays counted");
        }
    }
}

fn crashed(deaths: i32) -> Failure {
    Failure {
        class: Class::Poison,
        category: CRASH,
        ..Failure::transient(format!(
            "{}: {deaths} attempts at this event were begun and none ended: the process died each time",
            Code(801)
        ))
    }
}
