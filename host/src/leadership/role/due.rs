//! What became due by the passing of time.

use std::time::Duration;

use super::{Action, Cause, Held, Lane, Machine, Moment, State};

impl Machine {
    /// Runs until nothing changes; each turn either emits a step or moves the state on, so it ends.
    pub(super) fn advance(&mut self, now: Moment, out: &mut Vec<Action>) {
        while self.advance_once(now, out) {}
    }

    fn advance_once(&mut self, now: Moment, out: &mut Vec<Action>) -> bool {
        if let Lane::Busy { deadline } = self.lane
            && now >= deadline
        {
            self.overdue(now, out);
            return true;
        }
        match self.state {
            State::Follower => self.follow(now, out),
            State::Claiming {
                held,
                give_up_at,
                next_claim,
            } => {
                if now >= held.trusted_until {
                    self.lose(now, Cause::LeaseRanOut, out);
                    return true;
                }
                if now >= give_up_at {
                    self.release(now, None, self.timing.cooldown, out);
                    return true;
                }
                if self.beat_if_due(now, held, out) {
                    return true;
                }
                if held.proven && !self.term_busy && now >= next_claim {
                    self.term_busy = true;
                    out.push(Action::Claim);
                    return true;
                }
                false
            }
            State::Leading {
                held,
                next_check,
                progress,
                ..
            } => {
                if now >= held.trusted_until {
                    self.lose(now, Cause::LeaseRanOut, out);
                    return true;
                }
                if now >= progress + self.timing.stall_limit {
                    self.drain(now, Cause::Stalled, out);
                    return true;
                }
                if self.beat_if_due(now, held, out) {
                    return true;
                }
                if !self.term_busy && now >= next_check {
                    self.term_busy = true;
                    out.push(Action::CheckTerm);
                    return true;
                }
                false
            }
            State::Draining {
                term,
                cause,
                held,
                deadline,
                drained,
            } => {
                if let Some(held) = held
                    && now >= held.trusted_until
                {
                    self.lose(now, Cause::LeaseRanOut, out);
                    return true;
                }
                if !drained && now >= deadline {
                    self.set_drained();
                    return true;
                }
                if drained {
                    let pause = self.pause_after(cause);
                    match (held, self.lane) {
                        // The heartbeat under way ends within the lease; unlocking waits for it.
                        (Some(_), Lane::Busy { .. }) => return false,
                        (Some(_), _) => self.release(now, Some((term, cause)), pause, out),
                        (None, _) => {
                            self.next_at = self.next_at.max(now + pause);
                            self.state = State::Follower;
                        }
                    }
                    return true;
                }
                match held {
                    Some(held) => self.beat_if_due(now, held, out),
                    None => false,
                }
            }
            State::Releasing { .. } | State::Stopped => false,
        }
    }

    fn follow(&mut self, now: Moment, out: &mut Vec<Action>) -> bool {
        if self.stopping {
            if !matches!(self.lane, Lane::Closed) {
                out.push(Action::Drop);
                self.lane = Lane::Closed;
            }
            self.state = State::Stopped;
            return true;
        }
        if now < self.next_at {
            return false;
        }
        match self.lane {
            Lane::Closed => {
                out.push(Action::Open);
                self.busy(now + self.timing.open_limit);
                true
            }
            Lane::Idle => {
                out.push(Action::Try);
                self.busy(now + self.timing.local_lease);
                true
            }
            Lane::Busy { .. } => false,
        }
    }

    fn beat_if_due(&mut self, now: Moment, held: Held, out: &mut Vec<Action>) -> bool {
        if !matches!(self.lane, Lane::Idle) || now < held.next_beat {
            return false;
        }
        let deep = now >= held.next_deep;
        if deep {
            self.next_deep(now + self.timing.deep_interval);
        }
        out.push(Action::Beat { deep });
        self.busy(held.trusted_until);
        true
    }

    /// A step took longer than its bound: its session is in doubt.
    fn overdue(&mut self, now: Moment, out: &mut Vec<Action>) {
        match self.state {
            State::Follower => {
                out.push(Action::Drop);
                let wait = self.backoff();
                self.closed(wait, now);
            }
            State::Releasing { .. } => {
                out.push(Action::Drop);
                self.released(now);
            }
            State::Claiming { .. }
            | State::Leading { .. }
            | State::Draining { .. }
            | State::Stopped => self.lose(now, Cause::LeaseRanOut, out),
        }
    }

    const fn set_drained(&mut self) {
        if let State::Draining { drained, .. } = &mut self.state {
            *drained = true;
        }
    }

    const fn busy(&mut self, deadline: Moment) {
        self.lane = Lane::Busy { deadline };
    }

    fn next_deep(&mut self, at: Moment) {
        let next = at.max(Moment(Duration::ZERO));
        match &mut self.state {
            State::Claiming { held, .. }
            | State::Leading { held, .. }
            | State::Draining {
                held: Some(held), ..
            } => held.next_deep = next,
            _ => {}
        }
    }
}
