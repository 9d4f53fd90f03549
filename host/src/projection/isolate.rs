//! Finding the event to blame: a batch that failed is split until a single event fails, and the policy decides
//! what becomes of that one.
//!
//! Good parts commit on their own, in order, so nothing is done twice and a batch of n events with one bad one
//! costs O(log n) calls. An event that the guest names is tried alone before it is blamed. Dead letters commit
//! with the next part that passes, or with the checkpoint alone.

mod attempt;
mod parts;

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::error::Class;
use crate::event_store::event::{Batch, Event, Position};
use crate::read_model::checkpoint::Checkpoint;
use crate::read_model::dead_letter::Letter;

use super::failure::{CRASH, Failure, told};
use super::parked::{Parked, Waiting};
use super::session::{Ended, Session};
use super::settings::OnError;

use attempt::Attempt;
use parts::{Part, piece, singles, split};

/// Log line of an event that the policy passes over.
const BURIED: &str = "an event went to the dead letters";

/// Letters that wait for the next commit.
const LETTERS_MAX: usize = 100;

/// What became of the batch.
#[derive(Debug)]
pub enum Isolated {
    /// Everything passed in the end, or went to the dead letters; the checkpoint stands behind the batch.
    Passed,
    /// This event cannot pass, and the policy is to stop, or the plugin wants it; everything before it is committed.
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

/// A batch that is being taken apart.
struct Isolation<'a> {
    session: &'a Session<'a>,
    checkpoint: &'a Checkpoint,
    batch: &'a Batch,
    mode: Mode,
    cancelled: &'a CancellationToken,
    /// Streams that wait, with those that began to in this batch.
    parked: Parked,
    /// Where the checkpoint stands.
    from: Position,
    /// Up to here everything is committed or stands in `letters`.
    upto: Position,
    letters: Vec<Letter>,
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
        let isolation = Isolation {
            session: self,
            checkpoint,
            batch,
            mode,
            cancelled,
            parked: self.parked.clone(),
            from: checkpoint.position,
            upto: checkpoint.position,
            letters: Vec::new(),
        };
        isolation.run(known).await
    }
}

impl Isolation<'_> {
    async fn run(mut self, known: Option<Failure>) -> Isolated {
        let whole = Part::after(self.batch, self.from);
        let mut todo = match (self.mode, known) {
            (Mode::Split, Some(failure)) => split(whole, failure.event),
            _ => singles(whole),
        };
        while let Some(part) = todo.pop() {
            if self.cancelled.is_cancelled() {
                return Isolated::Ended(Ended::Cancelled);
            }
            if !self.session.lease.is_valid() {
                return Isolated::Ended(Ended::Fenced);
            }
            let piece = Arc::new(piece(self.batch, part, self.upto));
            let failure = match self.attempt(&piece, self.mode).await {
                Ok(()) => continue,
                Err(Attempt::Ended(ended)) => return Isolated::Ended(ended),
                Err(Attempt::Failed(failure)) => failure,
            };
            if failure.is_isolated() && part.events() > 1 {
                let named = failure.event.map(|event| part.first + event);
                todo.extend(split(part, named));
                continue;
            }
            if let Some(end) = self.single(&piece, failure).await {
                return end;
            }
        }
        match self.flush().await {
            Ok(()) => Isolated::Passed,
            Err(end) => end,
        }
    }

    /// A single event that did not pass, or a failure that is no event's. None: the next part is due.
    async fn single(&mut self, piece: &Arc<Batch>, mut failure: Failure) -> Option<Isolated> {
        let mut attempts = 1;
        let counted = failure.counted;
        if counted {
            (failure, attempts) = match self.again(piece, failure).await {
                Ok(()) => return None,
                Err((Attempt::Ended(ended), _)) => return Some(Isolated::Ended(ended)),
                Err((Attempt::Failed(last), attempts)) => (last, attempts),
            };
        }
        let event = piece.events.first().filter(|_| failure.is_isolated());
        let Some(event) = event else {
            return Some(Isolated::Ended(Ended::Failed {
                batch: None,
                failure,
            }));
        };
        let policy = match self.session.work.settings.on_error {
            // The plugin said that its projection must stop.
            _ if failure.class == Class::Fatal => OnError::Stop,
            // A whole store of waiting streams helps nobody.
            OnError::Park if !self.parked.has_room() => {
                failure.message = format!(
                    "{}: {} (as many streams as may wait do so already)",
                    crate::error::Code(814),
                    failure.message
                );
                OnError::Stop
            }
            policy => policy,
        };
        if policy == OnError::Stop {
            if let Err(end) = self.flush().await {
                return Some(end);
            }
            return Some(Isolated::Blamed {
                event: Box::new(event.clone()),
                failure,
            });
        }
        self.bury(event, &failure, attempts, policy == OnError::Park);
        self.upto = piece.upto;
        // What took long, or ended the process, is not risked again.
        let dear = counted || self.mode == Mode::OneByOne;
        if dear || self.letters.len() >= LETTERS_MAX {
            return self.flush().await.err();
        }
        None
    }

    fn bury(&mut self, event: &Event, failure: &Failure, attempts: i32, parked: bool) {
        let message = told(event, failure);
        let mut letter = Letter::new(event, failure.category, message, parked);
        letter.attempts = match failure.category {
            CRASH => self.checkpoint.attempts.map_or(1, |(_, attempts)| attempts),
            _ => attempts,
        };
        if let Some(place) = &failure.place {
            letter.table = Some(place.table.clone());
            letter.column.clone_from(&place.column);
        }
        let projection = &self.session.target.key.projection;
        self.session.metrics.failed(failure.category);
        if self.session.progress.repeats().admit(BURIED) {
            tracing::warn!(
                projection,
                position = event.position.0,
                stream = event.stream,
                category = failure.category,
                error = letter.message,
                parked,
                "{BURIED}; `projector-host dead-letter list {projection}` shows them"
            );
        }
        if parked {
            self.parked.park(&event.stream);
        }
        self.letters.push(letter);
    }

    /// Commits letters behind which no part has passed.
    async fn flush(&mut self) -> Result<(), Isolated> {
        if self.letters.is_empty() {
            return Ok(());
        }
        let nothing = Batch {
            after: self.from,
            upto: self.upto,
            anchor: None,
            events: Vec::new(),
        };
        self.commit(&nothing, None, Waiting::default())
            .await
            .map_err(|attempt| match attempt {
                Attempt::Ended(ended) => Isolated::Ended(ended),
                Attempt::Failed(failure) => Isolated::Ended(Ended::Failed {
                    batch: None,
                    failure,
                }),
            })
    }
}
