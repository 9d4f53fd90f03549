//! One attempt at a part of a batch, and how attempts are counted.

use std::sync::Arc;

use crate::database::backoff;
use crate::error::Class;
use crate::event_store::event::{Anchor, Batch, Event, Position};
use crate::read_model::checkpoint::Missed;

use super::{Isolation, Mode};
use crate::projection::commit::NotCommitted;
use crate::projection::failure::{CRASH, Failure};
use crate::projection::parked::Waiting;
use crate::projection::pending::Pending;
use crate::projection::progress::Phase;
use crate::projection::runner::CONTROL_TIMEOUT;
use crate::projection::session::{Ended, step};
use crate::projection::work::Outcome;

/// Log line of a single event that is tried again.
const AGAIN: &str = "the event did not pass; trying again";

/// Why an attempt did not commit.
pub(super) enum Attempt {
    Failed(Failure),
    Ended(Ended),
}

impl Isolation<'_> {
    /// A single event whose failure may pass with time: tried again, each attempt written down. The number of
    /// attempts comes with the last failure.
    pub(super) async fn again(
        &mut self,
        piece: &Arc<Batch>,
        mut failure: Failure,
    ) -> Result<(), (Attempt, i32)> {
        let retry = self.session.work.settings.retry;
        let again_max = usize::try_from(retry.attempts_max.saturating_sub(1)).unwrap_or(usize::MAX);
        let waits = backoff::waits(retry.initial, retry.max).take(again_max);
        let mut attempts = 1;
        for wait in waits {
            let projection = &self.session.target.key.projection;
            if self.session.progress.repeats().admit(AGAIN) {
                tracing::warn!(
                    projection,
                    position = piece.events.first().map(|event| event.position.0),
                    attempts,
                    error = failure.message,
                    "{AGAIN}"
                );
            }
            let progress = self.session.progress;
            progress.enter(Phase::Retrying);
            progress.failed(failure.message.clone());
            self.session.metrics.retried(failure.class);
            tokio::select! {
                () = self.cancelled.cancelled() => return Err((Attempt::Ended(Ended::Cancelled), attempts)),
                () = tokio::time::sleep(wait) => {}
            }
            attempts += 1;
            match self.attempt(piece, Mode::OneByOne).await {
                Ok(()) => {
                    progress.enter(Phase::Running);
                    return Ok(());
                }
                Err(Attempt::Failed(next)) if next.counted => failure = next,
                Err(other) => return Err((other, attempts)),
            }
        }
        self.session.progress.enter(Phase::Running);
        failure.message = format!("{} (after {attempts} attempts)", failure.message);
        Err((Attempt::Failed(failure), attempts))
    }

    pub(super) async fn attempt(&mut self, piece: &Arc<Batch>, mode: Mode) -> Result<(), Attempt> {
        let event = piece.events.first().filter(|_| mode == Mode::OneByOne);
        if let Some(event) = event {
            self.count(event).await?;
        }
        let tried = self.try_piece(piece).await;
        if let (Some(event), Err(Attempt::Failed(failure))) = (event, &tried)
            && !failure.is_isolated()
        {
            self.forget(event).await;
        }
        tried
    }

    async fn try_piece(&mut self, piece: &Arc<Batch>) -> Result<(), Attempt> {
        let (work, events) = (self.session.work.clone(), Arc::clone(piece));
        let (parked, metrics) = (self.parked.clone(), self.session.metrics.clone());
        let projecting = move || {
            let none = Pending::default();
            let (outcome, waiting, _) =
                parked.project(&work, &mut None, &events.events, &none, &metrics);
            (outcome, waiting)
        };
        let called = self.session.thread.call(projecting).await;
        let (outcome, waiting) = called.map_err(|error| Attempt::Failed(error.into()))?;
        let outcome = outcome.map_err(Attempt::Failed)?;
        self.commit(piece, outcome.as_ref(), waiting).await
    }

    /// Commits a part, with the letters of what stands before it.
    pub(super) async fn commit(
        &mut self,
        piece: &Batch,
        outcome: Option<&Outcome>,
        mut waiting: Waiting,
    ) -> Result<(), Attempt> {
        let mut step = step(piece, self.from, self.checkpoint.revision);
        if step.last_event.is_none() {
            let last = self.letters.last();
            step.last_event = last.map(|letter| Anchor {
                position: letter.position,
                id: letter.event_id.clone(),
            });
        }
        let before = self.letters.len();
        self.letters.append(&mut waiting.letters);
        let folded = outcome.map(|outcome| &*outcome.folded);
        let committed = self
            .session
            .target
            .commit(&step, folded, &self.letters)
            .await;
        match committed {
            Ok(_rows) => {
                let letters = std::mem::take(&mut self.letters);
                self.from = step.to;
                self.upto = step.to;
                self.session.progress.reached(step.to);
                if !letters.is_empty() {
                    self.session.progress.letters_changed();
                }
                self.session.metrics.committed(piece.events.len(), step.to);
                Ok(())
            }
            Err(NotCommitted::Missed(Missed::Fenced)) => {
                self.session.metrics.fenced();
                Err(Attempt::Ended(Ended::Fenced))
            }
            Err(NotCommitted::Missed(Missed::Changed)) => Err(Attempt::Ended(Ended::Changed)),
            Err(NotCommitted::Failed(failure)) => {
                waiting.letters = self.letters.split_off(before);
                Err(Attempt::Failed(waiting.name(failure)))
            }
        }
    }

    /// Writes an attempt down before it is made. Too many that were never finished blame the event.
    async fn count(&self, event: &Event) -> Result<(), Attempt> {
        let (position, revision) = (event.position, self.checkpoint.revision);
        let number = self
            .session
            .target
            .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                checkpoints
                    .attempt(connection, key, position, revision)
                    .await
            })
            .await
            .map_err(|error| Attempt::Failed(error.into()))?;
        let Some(number) = number else {
            return Err(Attempt::Ended(Ended::Changed));
        };
        let attempts_max = self.session.work.settings.retry.attempts_max.max(1);
        if u32::try_from(number).unwrap_or(u32::MAX) <= attempts_max.saturating_add(1) {
            return Ok(());
        }
        Err(Attempt::Failed(Failure {
            class: Class::Poison,
            counted: false,
            category: CRASH,
            event: Some(0),
            place: None,
            message: format!(
                "{}: {} attempts at this event were begun and none ended: the process died each time",
                crate::error::Code(801),
                number - 1
            ),
        }))
    }

    /// An attempt that ended, and for the database's sake, is none that could blame the event. If the database
    /// does not take even that, it is counted: once for each outage.
    async fn forget(&self, event: &Event) {
        let position: Position = event.position;
        let forgotten = self
            .session
            .target
            .with(CONTROL_TIMEOUT, async |connection, checkpoints, key| {
                checkpoints.forget_attempts(connection, key, position).await
            })
            .await;
        if let Err(error) = forgotten {
            tracing::debug!(%error, "an attempt stays counted");
        }
    }
}
