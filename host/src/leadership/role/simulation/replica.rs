//! A replica: a real role machine, its one session, and the batches it works on.

use super::network::{Reply, Request};
use super::world::{Event, World, at};
use crate::leadership::Term;
use crate::leadership::role::{Action, Cause, Input, Machine, Phase, Timing};

/// A claim or check is given up by its caller after this long.
const TERM_STEP_LIMIT: u64 = 8_000;

pub(super) struct Replica {
    pub(super) machine: Machine,
    /// Raised by a crash: what belongs to an earlier life is dead.
    pub(super) life: u32,
    /// Frozen until then, as by SIGSTOP.
    pub(super) paused_until: u64,
    pub(super) cut_lock: bool,
    pub(super) cut_store: bool,
    pub(super) stalled: bool,
    pub(super) asked_to_resign: bool,
    session: Option<usize>,
    /// The step on the session, by number; answers to others are dropped.
    lane: u64,
    term_step: u64,
    steps: u64,
    claimed: (i64, u64),
    batch: Option<Batch>,
    /// The end of work under this term was told.
    drained: Term,
    /// What came in while frozen.
    inbox: Vec<Event>,
    wake_planned: Option<u64>,
    phase: Phase,
}

#[derive(Debug, Clone, Copy)]
struct Batch {
    term: (i64, u64),
    old: u64,
    events: u64,
}

impl Replica {
    pub(super) fn new(timing: Timing, now: u64, seed: u64, life: u32) -> Self {
        Self {
            machine: Machine::new(timing, at(now), seed),
            life,
            paused_until: 0,
            cut_lock: false,
            cut_store: false,
            stalled: false,
            asked_to_resign: false,
            session: None,
            lane: 0,
            term_step: 0,
            steps: 0,
            claimed: (0, 0),
            batch: None,
            drained: Term(0),
            inbox: Vec::new(),
            wake_planned: None,
            phase: Phase::Follower,
        }
    }

    pub(super) const fn session(&self) -> Option<usize> {
        self.session
    }

    const fn next_step(&mut self) -> u64 {
        self.steps += 1;
        self.steps
    }
}

impl World {
    /// Hands something to a machine and does what it wants.
    pub(super) fn poke(&mut self, number: usize, input: Option<Input>) {
        if self.now < self.replicas[number].paused_until {
            let left = self.replicas[number].paused_until - self.now;
            self.schedule(left, Event::Wake(number));
            return;
        }
        let now = at(self.now);
        for event in std::mem::take(&mut self.replicas[number].inbox) {
            self.schedule(0, event);
        }
        let actions = self.replicas[number].machine.step(now, input);
        for action in actions {
            self.perform(number, action);
        }
        self.observe(number);
        self.work(number);
        let replica = &mut self.replicas[number];
        let wake = replica
            .machine
            .wake_at()
            .map(|wake| u64::try_from(wake.0.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX));
        if wake != replica.wake_planned {
            replica.wake_planned = wake;
            if let Some(wake) = wake {
                self.schedule(wake.saturating_sub(self.now).max(1), Event::Wake(number));
            }
        }
    }

    fn perform(&mut self, number: usize, action: Action) {
        let replica = &mut self.replicas[number];
        match action {
            Action::Drop => {
                replica.lane = 0;
                if let Some(session) = replica.session.take()
                    && !replica.cut_lock
                {
                    let way = self.latency();
                    self.schedule(way, Event::Fin(session));
                }
            }
            Action::DropTermStep => replica.term_step = 0,
            Action::Open | Action::Try | Action::Beat { .. } | Action::Release { .. } => {
                replica.lane = replica.next_step();
                let step = replica.lane;
                self.send(number, step, action);
            }
            Action::Claim | Action::CheckTerm => {
                replica.term_step = replica.next_step();
                let (step, life) = (replica.term_step, replica.life);
                self.send(number, step, action);
                let input = if action == Action::Claim {
                    Input::ClaimFailed
                } else {
                    Input::TermUnknown
                };
                let given_up = Reply {
                    life,
                    step,
                    session: None,
                    claimed: None,
                    input,
                };
                self.schedule(TERM_STEP_LIMIT, Event::Answer(number, given_up));
            }
        }
    }

    fn send(&mut self, number: usize, step: u64, action: Action) {
        let replica = &self.replicas[number];
        let request = Request {
            life: replica.life,
            step,
            sent_at: self.now,
            session: replica.session,
            action,
            term_id: replica.claimed.1,
        };
        let way = self.latency();
        self.schedule(way, Event::Arrive(number, request));
    }

    pub(super) fn answer(&mut self, number: usize, reply: Reply) {
        let on_store = reply.claimed.is_some()
            || matches!(
                reply.input,
                Input::ClaimFailed | Input::TermUnknown | Input::TermHeld | Input::TermLost
            );
        let replica = &mut self.replicas[number];
        let cut = if on_store {
            replica.cut_store
                && reply.input != Input::ClaimFailed
                && reply.input != Input::TermUnknown
        } else {
            replica.cut_lock
        };
        if reply.life != replica.life || cut {
            return;
        }
        if self.now < replica.paused_until {
            // The kernel keeps it; it is read after the freeze.
            replica.inbox.push(Event::Answer(number, reply));
            self.poke(number, None);
            return;
        }
        if reply.step == replica.lane {
            replica.lane = 0;
            replica.session = match reply.input {
                Input::OpenFailed | Input::Released => None,
                _ => reply.session,
            };
        } else if reply.step == replica.term_step {
            replica.term_step = 0;
            if let Some(claimed) = reply.claimed {
                replica.claimed = claimed;
            }
        } else {
            return;
        }
        self.poke(number, Some(reply.input));
    }

    fn observe(&mut self, number: usize) {
        let phase = self.replicas[number].machine.phase();
        let before = std::mem::replace(&mut self.replicas[number].phase, phase);
        if std::mem::discriminant(&before) == std::mem::discriminant(&phase) {
            return;
        }
        self.note(format!("replica {number} is {phase:?}"));
        match phase {
            Phase::Leading { .. } => self.coverage.leaderships += 1,
            Phase::Draining { cause, .. } => match cause {
                Cause::LeaseRanOut => self.coverage.leases_run_out += 1,
                Cause::SessionLost => self.coverage.sessions_lost += 1,
                Cause::Resigned => self.coverage.resigned += 1,
                Cause::Stalled => self.coverage.stalled += 1,
                Cause::TermLost => self.coverage.terms_lost += 1,
                Cause::Shutdown => {}
            },
            Phase::Follower | Phase::Claiming | Phase::Stopped => {}
        }
    }

    /// Starts a batch if the lease allows it; says that work has ended when it has.
    fn work(&mut self, number: usize) {
        let replica = &self.replicas[number];
        if replica.batch.is_some() {
            return;
        }
        match replica.machine.phase() {
            Phase::Leading {
                term,
                trusted_until,
            } if at(self.now) < trusted_until && !self.store.down && !replica.cut_store => {
                debug_assert_eq!(term, Term(replica.claimed.0));
                let batch = Batch {
                    term: replica.claimed,
                    old: self.store.position,
                    events: 1 + self.dice.next() % 5,
                };
                let (took, life) = (10 + self.dice.next() % 400, replica.life);
                self.replicas[number].batch = Some(batch);
                let event = Event::BatchEnd {
                    replica: number,
                    life,
                };
                self.schedule(took, event);
            }
            // The machine is not re-entered from here; the word arrives a moment later.
            Phase::Draining { term, .. } if replica.drained != term => {
                let (life, input) = (replica.life, Input::Drained(term));
                self.replicas[number].drained = term;
                let word = Event::Word {
                    replica: number,
                    life,
                    input,
                };
                self.schedule(1, word);
            }
            _ => {}
        }
    }

    /// The transaction of a batch reaches the store. A frozen replica sends it when it wakes: the zombie.
    pub(super) fn batch_end(&mut self, number: usize, life: u32) {
        let replica = &self.replicas[number];
        if replica.life != life {
            return;
        }
        if self.now < replica.paused_until {
            let left = replica.paused_until - self.now;
            self.schedule(
                left,
                Event::BatchEnd {
                    replica: number,
                    life,
                },
            );
            return;
        }
        let Some(batch) = self.replicas[number].batch.take() else {
            return;
        };
        let replica = &self.replicas[number];
        let reached = !replica.cut_store && !self.store.down;
        let mut input = (!replica.stalled).then_some(Input::Progress(at(self.now)));
        if reached {
            let fence = self.rules.fence;
            if self
                .store
                .commit(fence, batch.term, batch.old, batch.events)
            {
                self.coverage.committed += 1;
            } else {
                self.coverage.fenced += 1;
                self.note(format!(
                    "replica {number} was fenced in term {}",
                    batch.term.0
                ));
                if self.store.term_id != batch.term.1 {
                    input = Some(Input::Fenced(Term(batch.term.0)));
                }
            }
        }
        self.poke(number, input);
    }
}
