//! The steps of the machine as futures, and what their results mean to it.

use std::pin::Pin;

use super::handle::nanos;
use super::{Error, Facts, Input, Moment, Service};
use crate::database::session::Purpose;
use crate::leadership::holder::{self, Holder, Leader};
use crate::leadership::load::Share;
use crate::leadership::session::{Attempt, Beat, Held, Session};
use crate::leadership::term::{Claimant, Claimed, Watcher};

use std::sync::atomic::Ordering;
use std::time::Duration;

/// A follower looks who holds the lock this often, not in every try.
const INSPECT_INTERVAL: Duration = Duration::from_secs(2);

/// A future that the service runs itself, on its own thread.
pub(super) type Background<T> = Pin<Box<dyn Future<Output = T>>>;

/// The lock session, wherever it is at the moment.
pub(super) enum Lane {
    Closed,
    Idle(Session),
    Held(Held),
    /// A step owns it. Dropping the step drops the connection, and with it the lock.
    Busy(Background<SessionDone>),
}

/// What came out of a step on the lock session.
pub(super) enum SessionDone {
    Opened(Result<Session, Error>),
    Tried {
        sent_at: Moment,
        result: Result<Attempt, Error>,
        holder: Option<Option<Holder>>,
        share: Share,
    },
    Beat {
        sent_at: Moment,
        result: Result<(Held, Beat), Error>,
    },
    Released(Result<(), Error>),
}

/// What came out of a step on the term.
pub(super) enum TermDone {
    Claimed(Result<Claimed, Error>),
    Checked(Result<Option<bool>, Error>),
}

/// What the read model knows of a holder.
pub(super) type HolderDone = Result<Option<Leader>, Error>;

impl Lane {
    /// Waits for the step under way; for ever when there is none.
    pub(super) async fn done(&mut self) -> SessionDone {
        match self {
            Self::Busy(step) => {
                let done = step.await;
                *self = Self::Closed;
                done
            }
            _ => std::future::pending().await,
        }
    }

    fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Closed)
    }
}

/// Waits for a step beside the lock session; for ever when there is none.
pub(super) async fn done<T>(step: &mut Option<Background<T>>) -> T {
    match step {
        Some(running) => {
            let done = running.await;
            *step = None;
            done
        }
        None => std::future::pending().await,
    }
}

/// Tries the lock; who leads something already looks first, and lets others go first when it is free.
async fn try_after(mut session: Session, hesitation: Duration) -> Result<Attempt, Error> {
    if !hesitation.is_zero() {
        if session.holder().await?.is_some() {
            return Ok(Attempt::Denied(session));
        }
        tokio::time::sleep(hesitation).await;
    }
    session.try_lock().await
}

impl Service {
    pub(super) fn open(&mut self) {
        self.stands_by = false;
        let site = self.site.clone();
        self.lane = Lane::Busy(Box::pin(async move {
            SessionDone::Opened(Session::open(&site).await)
        }));
    }

    pub(super) fn try_lock(&mut self) {
        let Lane::Idle(session) = self.lane.take() else {
            return;
        };
        let now = self.clock.now();
        let inspect = self
            .inspected_at
            .is_none_or(|at| now.since(at) >= INSPECT_INTERVAL);
        let retry_interval = self.options.timing.retry_interval;
        let (share, hesitation) = self.options.load.add(retry_interval);
        self.lane = Lane::Busy(Box::pin(async move {
            let mut result = try_after(session, hesitation).await;
            let mut holder = None;
            if inspect && let Ok(Attempt::Denied(session)) = &mut result {
                match session.holder().await {
                    Ok(found) => holder = Some(found),
                    Err(error) => result = Err(error),
                }
            }
            SessionDone::Tried {
                sent_at: now,
                result,
                holder,
                share,
            }
        }));
    }

    pub(super) fn beat(&mut self, deep: bool) {
        let Lane::Held(mut held) = self.lane.take() else {
            return;
        };
        let sent_at = self.clock.now();
        let term_id = self.leading.as_ref().map(|(leading, _)| leading.term_id);
        self.lane = Lane::Busy(Box::pin(async move {
            let result = held.beat(term_id, deep).await;
            SessionDone::Beat {
                sent_at,
                result: result.map(|beat| (held, beat)),
            }
        }));
    }

    pub(super) fn release(&mut self, mark: bool) {
        let Lane::Held(held) = self.lane.take() else {
            return;
        };
        let mark = if mark {
            self.claimant().zip(self.claimed.clone())
        } else {
            None
        };
        self.lane = Lane::Busy(Box::pin(async move {
            let released = held.release().await;
            if let Some((claimant, claimed)) = mark
                && let Err(error) = claimant.release(&claimed).await
            {
                tracing::warn!(%error, "could not mark the term as given back; the next claim replaces it");
            }
            SessionDone::Released(released)
        }));
    }

    pub(super) fn claim(&mut self) {
        let Some(claimant) = self.claimant() else {
            return;
        };
        let watcher = Watcher {
            database: self.options.lock_database.clone(),
        };
        self.term_step = Some(Box::pin(async move {
            TermDone::Claimed(claimant.claim(&watcher).await)
        }));
    }

    pub(super) fn check_term(&mut self) {
        let Some((claimant, claimed)) = self.claimant().zip(self.claimed.clone()) else {
            return;
        };
        self.term_step = Some(Box::pin(async move {
            TermDone::Checked(claimant.check(&claimed).await)
        }));
    }

    pub(super) fn session_done(&mut self, done: SessionDone) -> Option<Input> {
        Some(match done {
            SessionDone::Opened(Ok(session)) => {
                self.lane = Lane::Idle(session);
                Input::Opened
            }
            SessionDone::Opened(Err(error)) => {
                let refused = matches!(error, Error::Refused(_));
                self.not_leading_because(&error);
                if refused {
                    Input::OpenRefused
                } else {
                    Input::OpenFailed
                }
            }
            SessionDone::Tried {
                sent_at,
                result,
                holder,
                share,
            } => {
                if matches!(result, Ok(Attempt::Won(_))) {
                    self.share = Some(share);
                }
                self.tried(sent_at, result, holder)
            }
            SessionDone::Beat { sent_at, result } => match result {
                Ok((held, beat)) => {
                    self.lane = Lane::Held(held);
                    self.beat_came_back(sent_at);
                    Input::Beat {
                        sent_at,
                        resign_requested: beat.resign_requested,
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "the heartbeat failed");
                    self.not_leading_because(&error);
                    Input::BeatFailed
                }
            },
            SessionDone::Released(result) => {
                if let Err(error) = result {
                    tracing::warn!(%error, "the lock was not given back in order; its session is closed");
                }
                Input::Released
            }
        })
    }

    fn tried(
        &mut self,
        sent_at: Moment,
        result: Result<Attempt, Error>,
        holder: Option<Option<Holder>>,
    ) -> Input {
        self.stands_by = matches!(result, Ok(Attempt::Denied(_)));
        match result {
            Ok(Attempt::Won(held)) => {
                self.facts = Some(held.facts().clone());
                self.lane = Lane::Held(held);
                Input::Won { sent_at }
            }
            Ok(Attempt::Denied(session)) => {
                self.lane = Lane::Idle(session);
                if let Some(holder) = holder {
                    self.inspected_at = Some(sent_at);
                    self.denied_by(holder);
                }
                Input::Held
            }
            Err(error) => {
                self.not_leading_because(&error);
                Input::TryFailed
            }
        }
    }

    pub(super) fn term_done(&mut self, done: TermDone) -> Option<Input> {
        Some(match done {
            TermDone::Claimed(Ok(claimed)) => {
                let term = claimed.term;
                self.claimed = Some(claimed);
                Input::Claimed(term)
            }
            TermDone::Claimed(Err(error)) => {
                self.not_leading_because(&error);
                if matches!(error, Error::Refused(_)) {
                    Input::ClaimRefused
                } else {
                    Input::ClaimFailed
                }
            }
            TermDone::Checked(Ok(Some(true))) => Input::TermHeld,
            TermDone::Checked(Ok(Some(false))) => Input::TermLost,
            TermDone::Checked(Ok(None)) => Input::TermUnknown,
            TermDone::Checked(Err(error)) => {
                tracing::warn!(%error, "could not look whether the term still stands");
                Input::TermUnknown
            }
        })
    }

    /// Asks the read model for what the lock database cannot know of a holder.
    pub(super) fn look_up(&mut self, backend_pid: i32) {
        let read_model = self.options.read_model.clone();
        let control = self.options.control_schema.clone();
        self.holder_step = Some(Box::pin(async move {
            let mut connection = read_model.connect(&Purpose::Admin).await?;
            let limit = INSPECT_INTERVAL;
            let call = holder::term_of(&mut connection, &control, backend_pid);
            Ok(crate::database::session::bounded(read_model.name, limit, call).await?)
        }));
    }

    fn beat_came_back(&self, sent_at: Moment) {
        let now = self.clock.now();
        let took = now.since(sent_at);
        let late = self.options.timing.heartbeat_interval.mul_f64(1.5);
        if took > late {
            self.shared.late_beats.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(?took, "a heartbeat came back late; the leadership goes on");
        }
        self.shared.last_beat.store(nanos(now), Ordering::Release);
    }

    fn claimant(&self) -> Option<Claimant> {
        let Facts {
            backend_pid,
            lock_database,
            timeline,
            ..
        } = self.facts.clone()?;
        let options = &self.options;
        Some(Claimant {
            read_model: options.read_model.clone(),
            control: options.control_schema.clone(),
            group: options.group.clone(),
            projection: options.projection.clone(),
            node: options.node.clone(),
            host: options.host.clone(),
            lock_key: match options.projection {
                None => options.key.to_string(),
                // Another text, so that the two scopes cannot lead beside each other.
                Some(_) => format!("{} for each projection", options.key),
            },
            lock_database,
            lock_timeline: timeline,
            backend_pid,
        })
    }
}
