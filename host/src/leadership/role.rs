//! The role machine: `FOLLOWER → CLAIMING → LEADING → DRAINING → FOLLOWER` or `STOPPED`.
//!
//! Owns every decision of the election and no I/O: time and results go in, steps come out. So the same code
//! runs against PostgreSQL, in property tests and in the simulation.
//!
//! Promises: one step at a time on the lock session; no try while the lock is held, so it never stacks; no
//! leading past `trusted_until`; no state without a next wake-up, so no path stops competing for ever. Must
//! never: wait, block, or read a clock.

pub(in crate::leadership) mod dice;
mod timing;

pub use timing::Timing;

use std::fmt;

use super::Term;
use super::clock::Moment;
use dice::Dice;

/// Why a leadership ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// An error on the lock session.
    SessionLost,
    /// No heartbeat came back within the local lease.
    LeaseRanOut,
    /// Another leader claimed a newer term.
    TermLost,
    /// Asked to by a person or by this replica itself.
    Resigned,
    /// The loops showed no progress for the stall limit.
    Stalled,
    /// The process is going down.
    Shutdown,
}

impl Cause {
    /// The word used in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SessionLost => "session-lost",
            Self::LeaseRanOut => "lease-ran-out",
            Self::TermLost => "term-lost",
            Self::Resigned => "resigned",
            Self::Stalled => "stalled",
            Self::Shutdown => "shutdown",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SessionLost => "the lock session was lost",
            Self::LeaseRanOut => "no heartbeat came back within the local lease",
            Self::TermLost => "another leader claimed a newer term",
            Self::Resigned => "asked to resign",
            Self::Stalled => "no progress within the stall limit",
            Self::Shutdown => "shutting down",
        })
    }
}

/// What the machine is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// The session is open and passed its checks.
    Opened,
    /// No session.
    OpenFailed,
    /// A session, but leading is forbidden on it.
    OpenRefused,
    /// The lock was won by a try sent at this moment.
    Won {
        /// Before the statement left.
        sent_at: Moment,
    },
    /// Somebody else holds the lock.
    Held,
    /// The try failed; the session is in doubt.
    TryFailed,
    /// A heartbeat came back.
    Beat {
        /// Before the statement left.
        sent_at: Moment,
        /// Somebody asked this leader to resign.
        resign_requested: bool,
    },
    /// The heartbeat failed or met another session.
    BeatFailed,
    /// The lock was given back, or the session was closed in doubt.
    Released,
    /// The term was claimed.
    Claimed(Term),
    /// The claim did not work this time.
    ClaimFailed,
    /// The claim is forbidden.
    ClaimRefused,
    /// The term is still ours.
    TermHeld,
    /// The term is not ours any more.
    TermLost,
    /// The read-model database could not say.
    TermUnknown,
    /// A batch of this term matched no row: somebody claimed a newer one.
    Fenced(Term),
    /// All work of this term has ended.
    Drained(Term),
    /// Resign, if leading.
    Resign,
    /// Stop for good.
    Shutdown,
    /// The lock may have become free just now.
    Hint,
    /// The loops were alive at this moment.
    Progress(Moment),
}

/// What the machine wants done. `Open`, `Try`, `Beat` and `Release` run on the lock session, one at a time;
/// `Claim` and `CheckTerm` beside it, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Open a lock session and check it.
    Open,
    /// Try the lock, once.
    Try,
    /// Prove that the session lives; `deep` proves the lock too.
    Beat {
        /// Look into `pg_locks`.
        deep: bool,
    },
    /// Unlock, check that it was locked, tell the others, mark the term as released, close.
    Release {
        /// The term to mark.
        term: Option<Term>,
    },
    /// Drop the session and whatever runs on it.
    Drop,
    /// Claim the next term.
    Claim,
    /// Check that the term is still ours.
    CheckTerm,
    /// Forget the running claim or check.
    DropTermStep,
}

/// The state, as others see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Competing, or waiting to.
    Follower,
    /// The lock is held, the term is not.
    Claiming,
    /// May work.
    Leading {
        /// Under this term.
        term: Term,
        /// Until then, unless a heartbeat comes back.
        trusted_until: Moment,
    },
    /// Must not start work.
    Draining {
        /// The term that ends.
        term: Term,
        /// Why.
        cause: Cause,
    },
    /// The end.
    Stopped,
}

#[derive(Debug, Clone, Copy)]
enum Lane {
    Closed,
    Idle,
    Busy { deadline: Moment },
}

/// What goes with holding the lock.
#[derive(Debug, Clone, Copy)]
struct Held {
    trusted_until: Moment,
    next_beat: Moment,
    next_deep: Moment,
    /// The deep check has passed at least once.
    proven: bool,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Follower,
    Claiming {
        held: Held,
        give_up_at: Moment,
        next_claim: Moment,
    },
    Leading {
        term: Term,
        held: Held,
        next_check: Moment,
        progress: Moment,
    },
    Draining {
        term: Term,
        cause: Cause,
        held: Option<Held>,
        deadline: Moment,
        /// All work has ended, or the time for it is over.
        drained: bool,
    },
    Releasing {
        ending: Option<(Term, Cause)>,
    },
    Stopped,
}

/// The machine of one replica.
#[derive(Debug)]
pub struct Machine {
    timing: Timing,
    dice: Dice,
    state: State,
    lane: Lane,
    term_busy: bool,
    /// A follower's next step.
    next_at: Moment,
    failures: u32,
    /// The lock became free while a try was under way, which may have been sent before that.
    hinted: bool,
    stopping: bool,
}

impl Machine {
    /// A follower that competes at once. The seed drives the jitter.
    #[must_use]
    pub fn new(timing: Timing, now: Moment, seed: u64) -> Self {
        Self {
            timing,
            dice: Dice::new(seed),
            state: State::Follower,
            lane: Lane::Closed,
            term_busy: false,
            next_at: now,
            failures: 0,
            hinted: false,
            stopping: false,
        }
    }

    /// The state, as others see it.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        match self.state {
            State::Follower => Phase::Follower,
            State::Claiming { .. } | State::Releasing { ending: None } => Phase::Claiming,
            State::Leading { term, held, .. } => Phase::Leading {
                term,
                trusted_until: held.trusted_until,
            },
            State::Draining { term, cause, .. }
            | State::Releasing {
                ending: Some((term, cause)),
            } => Phase::Draining { term, cause },
            State::Stopped => Phase::Stopped,
        }
    }

    /// Takes a result or an event, and whatever became due, and says what to do now.
    pub fn step(&mut self, now: Moment, input: Option<Input>) -> Vec<Action> {
        let mut actions = Vec::new();
        if let Some(input) = input {
            self.take(now, input, &mut actions);
        }
        self.advance(now, &mut actions);
        actions
    }

    /// When [`Machine::step`] has to be called again, if nothing comes in before. `None` once stopped.
    #[must_use]
    pub fn wake_at(&self) -> Option<Moment> {
        let mut due = Vec::with_capacity(6);
        if let Lane::Busy { deadline } = self.lane {
            due.push(deadline);
        }
        let idle = matches!(self.lane, Lane::Idle);
        let beat = |held: &Held, due: &mut Vec<Moment>| {
            due.push(held.trusted_until);
            if idle {
                due.push(held.next_beat);
            }
        };
        match &self.state {
            State::Follower if !matches!(self.lane, Lane::Busy { .. }) => due.push(self.next_at),
            State::Follower | State::Releasing { .. } => {}
            State::Claiming {
                held,
                give_up_at,
                next_claim,
            } => {
                beat(held, &mut due);
                due.push(*give_up_at);
                if held.proven && !self.term_busy {
                    due.push(*next_claim);
                }
            }
            State::Leading {
                held,
                next_check,
                progress,
                ..
            } => {
                beat(held, &mut due);
                due.push(*progress + self.timing.stall_limit);
                if !self.term_busy {
                    due.push(*next_check);
                }
            }
            State::Draining {
                held,
                deadline,
                drained,
                ..
            } => {
                if let Some(held) = held {
                    beat(held, &mut due);
                }
                if !drained {
                    due.push(*deadline);
                }
            }
            State::Stopped => return None,
        }
        due.into_iter().min()
    }

    fn take(&mut self, now: Moment, input: Input, out: &mut Vec<Action>) {
        match input {
            Input::Opened => {
                self.lane = Lane::Idle;
                self.next_at = now;
            }
            Input::OpenFailed => self.closed(self.backoff(), now),
            Input::OpenRefused => self.closed(self.timing.refusal_retry, now),
            Input::TryFailed => {
                out.push(Action::Drop);
                self.closed(self.backoff(), now);
            }
            Input::Held => {
                self.lane = Lane::Idle;
                self.failures = 0;
                self.next_at = now + self.dice.around(self.timing.retry_interval);
                if std::mem::take(&mut self.hinted) {
                    self.hint(now);
                }
            }
            Input::Won { sent_at } => self.won(now, sent_at),
            Input::Beat {
                sent_at,
                resign_requested,
            } => self.beat(now, sent_at, resign_requested, out),
            Input::BeatFailed => {
                // A process that stood still finds both at once: the lease ran out first.
                let cause = match self.held_mut() {
                    Some(held) if now >= held.trusted_until => Cause::LeaseRanOut,
                    _ => Cause::SessionLost,
                };
                self.lose(now, cause, out);
            }
            Input::Released => self.released(now),
            Input::Claimed(term) => self.claimed(now, term),
            Input::ClaimFailed | Input::TermHeld | Input::TermUnknown => self.term_step_done(now),
            Input::ClaimRefused => {
                self.term_busy = false;
                self.release(now, None, self.timing.refusal_retry, out);
            }
            Input::TermLost => {
                self.term_busy = false;
                self.drain(now, Cause::TermLost, out);
            }
            Input::Fenced(fenced) => {
                if matches!(self.state, State::Leading { term, .. } if term == fenced) {
                    self.drain(now, Cause::TermLost, out);
                }
            }
            Input::Drained(ended) => {
                if let State::Draining { term, drained, .. } = &mut self.state
                    && ended >= *term
                {
                    *drained = true;
                }
            }
            Input::Resign => self.drain(now, Cause::Resigned, out),
            Input::Shutdown => {
                self.stopping = true;
                self.drain(now, Cause::Shutdown, out);
            }
            Input::Hint => self.hint(now),
            Input::Progress(at) => {
                if let State::Leading { progress, .. } = &mut self.state {
                    *progress = (*progress).max(at);
                }
            }
        }
    }
}

mod due;
mod transition;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
