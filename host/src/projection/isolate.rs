//! Finding the event to blame: a batch that failed is split until a single event fails.
//!
//! Good parts commit on their own, in order, so nothing is done twice and a batch of n events with one bad
//! one costs O(log n) calls. An event that the guest names is tried alone before it is blamed.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::database::backoff;
use crate::error::Class;
use crate::event_store::event::{Batch, Event, Position};
use crate::read_model::checkpoint::{Checkpoint, Missed};

use super::commit::NotCommitted;
use super::failure::{CRASH, Failure};
use super::pending::Pending;
use super::session::{Ended, Session, step};

/// What became of the batch.
#[derive(Debug)]
pub enum Isolated {
    /// Everything passed in the end; the checkpoint stands behind the batch.
    Passed,
    /// This event cannot pass; everything before it is committed.
    Blamed {
        /// The event.
        event: Box<Event>,
        /// Why.
        failure: Failure,
    },
    /// The run ended for another reason.
    Ended(Ended),
}

/// How a batch is taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Halves.
    Split,
    /// One event after the other, each attempt written down first: an event may end the whole process.
    OneByOne,
}

/// A stretch of the batch that is still to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    first: usize,
    end: usize,
}

impl Session<'_> {
    /// Takes a failed batch apart, from where the checkpoint stands now.
    pub async fn isolate(
        &self,
        checkpoint: &Checkpoint,
        batch: &Arc<Batch>,
        known: Option<Failure>,
        mode: Mode,
        cancelled: &CancellationToken,
    ) -> Isolated {
        let mut from = checkpoint.position;
        let first = batch.events.partition_point(|event| event.position <= from);
        let whole = Part {
            first,
            end: batch.events.len(),
        };
        let mut todo = match (mode, known) {
            (Mode::Split, Some(failure)) => split(whole, failure.event),
            _ => singles(whole),
        };
        while let Some(part) = todo.pop() {
            if cancelled.is_cancelled() {
                return Isolated::Ended(Ended::Cancelled);
            }
            if !self.lease.is_valid() {
                return Isolated::Ended(Ended::Fenced);
            }
            let piece = Arc::new(piece(batch, part, from));
            let mut failure = match self.attempt(&piece, from, checkpoint.revision, mode).await {
                Ok(()) => {
                    from = piece.upto;
                    continue;
                }
                Err(Attempt::Ended(ended)) => return Isolated::Ended(ended),
                Err(Attempt::Failed(failure)) => failure,
            };
            if !failure.is_isolated() {
                return Isolated::Ended(Ended::Failed {
                    batch: None,
                    failure,
                });
            }
            if part.end - part.first > 1 {
                let named = failure.event.map(|event| part.first + event);
                todo.extend(split(part, named));
                continue;
            }
            if failure.counted {
                match self
                    .again(&piece, from, checkpoint.revision, failure, cancelled)
                    .await
                {
                    Ok(()) => {
                        from = piece.upto;
                        continue;
                    }
                    Err(Attempt::Ended(ended)) => return Isolated::Ended(ended),
                    Err(Attempt::Failed(last)) => failure = last,
                }
                if !failure.is_isolated() {
                    return Isolated::Ended(Ended::Failed {
                        batch: None,
                        failure,
                    });
                }
            }
            match piece.events.first() {
                Some(event) => {
                    return Isolated::Blamed {
                        event: Box::new(event.clone()),
                        failure,
                    };
                }
                None => {
                    return Isolated::Ended(Ended::Failed {
                        batch: None,
                        failure,
                    });
                }
            }
        }
        Isolated::Passed
    }

    /// A single event whose failure may pass with time: tried again, each attempt written down.
    async fn again(
        &self,
        piece: &Arc<Batch>,
        from: Position,
        revision: i64,
        mut failure: Failure,
        cancelled: &CancellationToken,
    ) -> Result<(), Attempt> {
        let retry = self.work.settings.retry;
        let again_max = usize::try_from(retry.attempts_max.saturating_sub(1)).unwrap_or(usize::MAX);
        let waits = backoff::waits(retry.initial, retry.max).take(again_max);
        let mut attempts = 1;
        for wait in waits {
            tracing::warn!(
                projection = self.target.key.projection,
                position = %piece.upto,
                attempts,
                error = failure.message,
                "the event did not pass; trying again"
            );
            tokio::select! {
                () = cancelled.cancelled() => return Err(Attempt::Ended(Ended::Cancelled)),
                () = tokio::time::sleep(wait) => {}
            }
            attempts += 1;
            match self.attempt(piece, from, revision, Mode::OneByOne).await {
                Err(Attempt::Failed(next)) if next.counted => failure = next,
                other => return other,
            }
        }
        failure.message = format!("{} (after {attempts} attempts)", failure.message);
        Err(Attempt::Failed(failure))
    }

    async fn attempt(
        &self,
        piece: &Arc<Batch>,
        from: Position,
        revision: i64,
        mode: Mode,
    ) -> Result<(), Attempt> {
        let event = piece.events.first().filter(|_| mode == Mode::OneByOne);
        if let Some(event) = event {
            self.count(event, revision).await?;
        }
        let tried = self.try_piece(piece, from, revision).await;
        if let (Some(event), Err(Attempt::Failed(failure))) = (event, &tried)
            && !failure.is_isolated()
        {
            self.forget(event).await;
        }
        tried
    }

    /// An attempt that ended, and for the database's sake, is none that could blame the event. If the database
    /// does not take even that, it is counted: once for each outage.
    async fn forget(&self, event: &Event) {
        let position = event.position;
        let forgotten = self
            .target
            .with(
                super::runner::CONTROL_TIMEOUT,
                async |connection, checkpoints, key| {
                    checkpoints.forget_attempts(connection, key, position).await
                },
            )
            .await;
        if let Err(error) = forgotten {
            tracing::debug!(%error, "an attempt stays counted");
        }
    }

    async fn try_piece(
        &self,
        piece: &Arc<Batch>,
        from: Position,
        revision: i64,
    ) -> Result<(), Attempt> {
        let outcome = if piece.events.is_empty() {
            None
        } else {
            let (work, events) = (self.work.clone(), Arc::clone(piece));
            let projecting = move || work.project(&events.events, &Pending::default());
            match self.thread.call(projecting).await {
                Ok(Ok(outcome)) => Some(outcome),
                Ok(Err(failure)) => return Err(Attempt::Failed(failure)),
                Err(error) => return Err(Attempt::Failed(error.into())),
            }
        };
        let step = step(piece, from, revision);
        match self
            .target
            .commit(&step, outcome.as_ref().map(|outcome| &*outcome.folded))
            .await
        {
            Ok(_rows) => {
                self.progress.reached(step.to);
                self.metrics.committed(piece.events.len(), step.to);
                Ok(())
            }
            Err(NotCommitted::Missed(Missed::Fenced)) => Err(Attempt::Ended(Ended::Fenced)),
            Err(NotCommitted::Missed(Missed::Changed)) => Err(Attempt::Ended(Ended::Changed)),
            Err(NotCommitted::Failed(failure)) => Err(Attempt::Failed(failure)),
        }
    }

    /// Writes an attempt down before it is made. Too many that were never finished blame the event.
    async fn count(&self, event: &Event, revision: i64) -> Result<(), Attempt> {
        let position = event.position;
        let number = self
            .target
            .with(
                super::runner::CONTROL_TIMEOUT,
                async |connection, checkpoints, key| {
                    checkpoints
                        .attempt(connection, key, position, revision)
                        .await
                },
            )
            .await
            .map_err(|error| Attempt::Failed(error.into()))?;
        let Some(number) = number else {
            return Err(Attempt::Ended(Ended::Changed));
        };
        let attempts_max = self.work.settings.retry.attempts_max.max(1);
        if u32::try_from(number).unwrap_or(u32::MAX) <= attempts_max.saturating_add(1) {
            return Ok(());
        }
        Err(Attempt::Failed(Failure {
            class: Class::Poison,
            counted: false,
            category: CRASH,
            event: Some(0),
            message: format!(
                "{}: {} attempts at this event were begun and none ended: the process died each time",
                crate::error::Code(801),
                number - 1
            ),
        }))
    }
}

enum Attempt {
    Failed(Failure),
    Ended(Ended),
}

/// Halves, or the parts around a named event. The first part stands last, where `pop` takes it.
fn split(part: Part, named: Option<usize>) -> Vec<Part> {
    let Part { first, end } = part;
    let named = named.filter(|at| (first..end).contains(at) && end - first > 1);
    let cuts = match named {
        Some(at) => vec![first, at, at + 1, end],
        None if end - first > 1 => vec![first, first + (end - first) / 2, end],
        None => vec![first, end],
    };
    let mut parts: Vec<Part> = cuts
        .windows(2)
        .map(|cut| Part {
            first: cut[0],
            end: cut[1],
        })
        .collect();
    // An empty part would commit a checkpoint of its own for nothing, unless it is all there is.
    if parts.len() > 1 {
        parts.retain(|part| part.end > part.first);
    }
    parts.reverse();
    parts
}

fn singles(part: Part) -> Vec<Part> {
    if part.first == part.end {
        return vec![part];
    }
    (part.first..part.end)
        .rev()
        .map(|at| Part {
            first: at,
            end: at + 1,
        })
        .collect()
}

/// The stretch of the store that belongs to a part: up to the next one, and for the last part to the end.
fn piece(batch: &Batch, part: Part, after: Position) -> Batch {
    let events = batch.events[part.first..part.end].to_vec();
    // Everything before the next wanted event was scanned.
    let upto = match batch.events.get(part.end) {
        Some(next) => Position(next.position.0 - 1),
        None => batch.upto,
    };
    Batch {
        after,
        upto,
        events,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(first: usize, end: usize, named: Option<usize>, expected: &[(usize, usize)]) {
        let mut parts = split(Part { first, end }, named);
        parts.reverse();
        let parts: Vec<_> = parts
            .into_iter()
            .map(|part| (part.first, part.end))
            .collect();
        assert_eq!(parts, expected, "{first}..{end} named {named:?}");
    }

    #[test]
    fn parts_cover_the_batch_in_order_and_a_named_event_stands_alone() {
        check(0, 8, None, &[(0, 4), (4, 8)]);
        check(0, 3, None, &[(0, 1), (1, 3)]);
        check(0, 1, None, &[(0, 1)]);
        check(0, 8, Some(3), &[(0, 3), (3, 4), (4, 8)]);
        check(0, 8, Some(0), &[(0, 1), (1, 8)]);
        check(0, 8, Some(7), &[(0, 7), (7, 8)]);
        check(2, 4, Some(9), &[(2, 3), (3, 4)]);
        check(5, 5, None, &[(5, 5)]);
    }
}
