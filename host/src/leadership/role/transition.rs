//! Changes of state, each in one place.

use std::time::Duration;

use super::{Action, Cause, Held, Lane, Machine, Moment, State};
use crate::leadership::Term;

impl Machine {
    /// The lock may have become free just now. A replica that waits after a resignation, an error or a refusal has
    /// no session, and goes on waiting.
    pub(super) fn hint(&mut self, now: Moment) {
        match (&self.state, &self.lane) {
            (State::Follower, Lane::Idle) => {
                let soon = now + self.dice.below(self.timing.hint_delay_max);
                self.next_at = self.next_at.min(soon);
            }
            (State::Follower, Lane::Busy { .. }) => self.hinted = true,
            _ => {}
        }
    }

    pub(super) fn won(&mut self, now: Moment, sent_at: Moment) {
        self.lane = Lane::Idle;
        self.failures = 0;
        self.hinted = false;
        self.state = State::Claiming {
            held: Held {
                trusted_until: sent_at + self.timing.local_lease,
                next_beat: now,
                next_deep: now,
                proven: false,
            },
            give_up_at: now + self.timing.claim_limit,
            next_claim: now,
        };
    }

    pub(super) fn beat(
        &mut self,
        now: Moment,
        sent_at: Moment,
        resign_requested: bool,
        out: &mut Vec<Action>,
    ) {
        self.lane = Lane::Idle;
        let timing = self.timing;
        if let Some(held) = self.held_mut() {
            held.trusted_until = held.trusted_until.max(sent_at + timing.local_lease);
            held.next_beat = (sent_at + timing.heartbeat_interval).max(now);
            held.proven = true;
        }
        if resign_requested && matches!(self.state, State::Leading { .. }) {
            self.drain(now, Cause::Resigned, out);
        }
    }

    pub(super) fn claimed(&mut self, now: Moment, term: Term) {
        self.term_busy = false;
        if let State::Claiming { held, .. } = self.state {
            self.state = State::Leading {
                term,
                held,
                next_check: now + self.timing.check_interval,
                progress: now,
            };
        }
    }

    pub(super) fn term_step_done(&mut self, now: Moment) {
        self.term_busy = false;
        let retry = self.dice.around(self.timing.claim_retry);
        match &mut self.state {
            State::Claiming { next_claim, .. } => *next_claim = now + retry,
            State::Leading { next_check, .. } => *next_check = now + self.timing.check_interval,
            _ => {}
        }
    }

    /// The session is gone or in doubt: nothing is held any more.
    pub(super) fn lose(&mut self, now: Moment, cause: Cause, out: &mut Vec<Action>) {
        out.push(Action::Drop);
        self.drop_term_step(out);
        let wait = self.backoff();
        self.closed(wait, now);
        match &mut self.state {
            State::Claiming { .. } => self.state = State::Follower,
            State::Leading { term, .. } => {
                self.state = State::Draining {
                    term: *term,
                    cause,
                    held: None,
                    deadline: now + self.timing.drain_timeout,
                    drained: false,
                };
            }
            State::Draining { held, .. } => *held = None,
            State::Follower | State::Releasing { .. } | State::Stopped => {}
        }
    }

    /// Stops work in an orderly way, while the lock is still held.
    pub(super) fn drain(&mut self, now: Moment, cause: Cause, out: &mut Vec<Action>) {
        match self.state {
            State::Claiming { .. } => {
                let pause = if cause == Cause::Shutdown {
                    Duration::ZERO
                } else {
                    self.timing.cooldown
                };
                self.release(now, None, pause, out);
            }
            State::Leading { term, held, .. } => {
                self.drop_term_step(out);
                self.state = State::Draining {
                    term,
                    cause,
                    held: Some(held),
                    deadline: now + self.timing.drain_timeout,
                    drained: false,
                };
            }
            State::Follower | State::Draining { .. } | State::Releasing { .. } | State::Stopped => {
            }
        }
    }

    /// Gives the lock back. A heartbeat that is still under way is dropped together with its session, which
    /// frees the lock as well.
    pub(super) fn release(
        &mut self,
        now: Moment,
        ending: Option<(Term, Cause)>,
        pause: Duration,
        out: &mut Vec<Action>,
    ) {
        self.drop_term_step(out);
        self.next_at = now + pause;
        if matches!(self.lane, Lane::Idle) {
            out.push(Action::Release {
                term: ending.map(|(term, _)| term),
            });
            self.lane = Lane::Busy {
                deadline: now + self.timing.release_limit,
            };
            self.state = State::Releasing { ending };
        } else {
            out.push(Action::Drop);
            self.lane = Lane::Closed;
            self.state = State::Follower;
        }
    }

    pub(super) fn released(&mut self, now: Moment) {
        self.lane = Lane::Closed;
        self.next_at = self.next_at.max(now);
        self.state = State::Follower;
    }

    /// A follower without a session, for a while.
    pub(super) fn closed(&mut self, wait: Duration, now: Moment) {
        self.lane = Lane::Closed;
        self.hinted = false;
        self.failures = self.failures.saturating_add(1);
        self.next_at = now + self.dice.around(wait);
    }

    pub(super) fn backoff(&self) -> Duration {
        let doubled = 1_u32 << self.failures.min(16);
        (self.timing.backoff_initial * doubled).min(self.timing.backoff_max)
    }

    /// How long a replica waits before it competes again after such an end.
    pub(super) fn pause_after(&self, cause: Cause) -> Duration {
        match cause {
            Cause::Resigned | Cause::Stalled => self.timing.cooldown,
            Cause::TermLost => self.timing.retry_interval,
            Cause::SessionLost | Cause::LeaseRanOut | Cause::Shutdown => Duration::ZERO,
        }
    }

    pub(super) fn held_mut(&mut self) -> Option<&mut Held> {
        match &mut self.state {
            State::Claiming { held, .. } | State::Leading { held, .. } => Some(held),
            State::Draining { held, .. } => held.as_mut(),
            State::Follower | State::Releasing { .. } | State::Stopped => None,
        }
    }

    fn drop_term_step(&mut self, out: &mut Vec<Action>) {
        if self.term_busy {
            self.term_busy = false;
            out.push(Action::DropTermStep);
        }
    }
}
