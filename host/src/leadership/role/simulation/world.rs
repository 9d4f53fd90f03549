//! The simulated world: its clock, its queue of things to come, and what must hold in it.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::fault::Fault;
use super::network::{Reply, Request, Server, Store};
use super::replica::Replica;
use crate::leadership::clock::Moment;
use crate::leadership::role::dice::Dice;
use crate::leadership::role::{Input, Phase, Timing};

/// Faults come until here; then everything heals.
const FAULTS_END: u64 = 60_000;
/// After healing, one replica must lead and events must flow by then.
const HEALED_BY: u64 = FAULTS_END + 30_000;
/// After the shutdown, everything must be over by then.
const ALL_OVER: u64 = HEALED_BY + 60_000;

const TRACE_LINES_MAX: usize = 60;

/// What a run is allowed to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Batches name their term.
    pub(super) fence: bool,
    /// Sessions are killed and the server restarts, so a lock may go without its owner's knowledge.
    pub(super) kills: bool,
}

/// What a run has met: a run without these tested nothing.
#[derive(Debug, Default, Clone)]
pub(super) struct Coverage {
    pub(super) leaderships: u64,
    pub(super) committed: u64,
    pub(super) fenced: u64,
    pub(super) leases_run_out: u64,
    pub(super) sessions_lost: u64,
    pub(super) resigned: u64,
    pub(super) stalled: u64,
    pub(super) terms_lost: u64,
    pub(super) two_leases: u64,
    pub(super) frozen_by_server: u64,
}

impl Coverage {
    pub(super) const fn add(&mut self, other: &Self) {
        self.leaderships += other.leaderships;
        self.committed += other.committed;
        self.fenced += other.fenced;
        self.leases_run_out += other.leases_run_out;
        self.sessions_lost += other.sessions_lost;
        self.resigned += other.resigned;
        self.stalled += other.stalled;
        self.terms_lost += other.terms_lost;
        self.two_leases += other.two_leases;
        self.frozen_by_server += other.frozen_by_server;
    }

    pub(super) fn must_have_met_everything(&self) {
        for (what, count) in [
            ("leadership", self.leaderships),
            ("committed batch", self.committed),
            ("fenced batch", self.fenced),
            ("lease that ran out", self.leases_run_out),
            ("lost session", self.sessions_lost),
            ("resignation", self.resigned),
            ("stall", self.stalled),
            ("lost term", self.terms_lost),
            ("moment with two leases", self.two_leases),
            ("session ended by the server's lease", self.frozen_by_server),
        ] {
            assert!(count > 0, "no run met a {what}: tested nothing");
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    Wake(usize),
    Arrive(usize, Request),
    Answer(usize, Reply),
    Fin(usize),
    IdleLimit {
        session: usize,
        last: u64,
    },
    BatchEnd {
        replica: usize,
        life: u32,
    },
    /// The rest of the process tells the machine something.
    Word {
        replica: usize,
        life: u32,
        input: Input,
    },
    Fault(Fault),
}

pub(super) struct World {
    pub(super) now: u64,
    pub(super) dice: Dice,
    pub(super) timing: Timing,
    pub(super) rules: Rules,
    pub(super) server: Server,
    pub(super) store: Store,
    pub(super) replicas: Vec<Replica>,
    pub(super) coverage: Coverage,
    /// Longest way of a message, at the moment.
    pub(super) latency_max: u64,
    queue: BTreeMap<(u64, u64), Event>,
    sequence: u64,
    trace: VecDeque<String>,
}

pub(super) fn at(millis: u64) -> Moment {
    Moment(Duration::from_millis(millis))
}

impl World {
    pub(super) fn new(seed: u64, rules: Rules) -> Self {
        let mut dice = Dice::new(seed);
        let timing = Timing {
            stall_limit: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(5),
            ..Timing::default()
        };
        let count = 2 + usize::try_from(dice.next() % 3).unwrap_or(0);
        let replicas = (0..count)
            .map(|_| Replica::new(timing, 0, dice.next(), 0))
            .collect();
        Self {
            now: 0,
            dice,
            timing,
            rules,
            server: Server::default(),
            store: Store::default(),
            replicas,
            coverage: Coverage::default(),
            latency_max: 5,
            queue: BTreeMap::new(),
            sequence: 0,
            trace: VecDeque::new(),
        }
    }

    pub(super) fn run(&mut self) -> Result<(), String> {
        for replica in 0..self.replicas.len() {
            let start = self.dice.next() % 500;
            self.schedule(start, Event::Wake(replica));
        }
        self.plan_faults(FAULTS_END);
        self.run_until(FAULTS_END)?;
        self.heal();
        let position = self.store.position;
        self.run_until(HEALED_BY)?;
        let leaders = self.valid_leases();
        if leaders.len() != 1 {
            return Err(format!("after healing these lead: {leaders:?}"));
        }
        if self.store.position <= position {
            return Err("after healing no event was applied".to_owned());
        }
        for replica in 0..self.replicas.len() {
            self.poke(replica, Some(Input::Shutdown));
        }
        self.run_until(ALL_OVER)?;
        for (number, replica) in self.replicas.iter().enumerate() {
            if replica.machine.phase() != Phase::Stopped {
                return Err(format!(
                    "replica {number} did not stop: {:?}",
                    replica.machine
                ));
            }
        }
        match self.server.holder() {
            Some(session) => Err(format!(
                "after the shutdown session {session} holds the lock"
            )),
            None => Ok(()),
        }
    }

    fn run_until(&mut self, end: u64) -> Result<(), String> {
        while let Some((&(time, sequence), _)) = self.queue.first_key_value() {
            if time > end {
                break;
            }
            self.now = time;
            if let Some(event) = self.queue.remove(&(time, sequence)) {
                self.happen(event);
            }
            self.check()?;
        }
        self.now = end;
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        if let Some(broken) = self.store.broken.take() {
            return Err(broken);
        }
        if let Some(stacked) = self.server.stacked.take() {
            return Err(stacked);
        }
        let valid = self.valid_leases();
        if valid.len() > 1 {
            self.coverage.two_leases += 1;
            if !self.rules.kills {
                return Err(format!("these have a valid lease at once: {valid:?}"));
            }
        }
        Ok(())
    }

    fn valid_leases(&self) -> Vec<usize> {
        let now = at(self.now);
        let leads = |replica: &Replica| match replica.machine.phase() {
            Phase::Leading { trusted_until, .. } => now < trusted_until,
            _ => false,
        };
        (0..self.replicas.len())
            .filter(|number| leads(&self.replicas[*number]))
            .collect()
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Wake(replica) => self.poke(replica, None),
            Event::Arrive(replica, request) => self.arrive(replica, request),
            Event::Answer(replica, reply) => self.answer(replica, reply),
            Event::Fin(session) => self.server.end(session),
            Event::IdleLimit { session, last } => {
                if self.server.idle_since(session) == Some(last) {
                    self.coverage.frozen_by_server +=
                        u64::from(self.server.holder() == Some(session));
                    self.server.end(session);
                }
            }
            Event::BatchEnd { replica, life } => self.batch_end(replica, life),
            Event::Word {
                replica,
                life,
                input,
            } => {
                if self.replicas[replica].life == life {
                    self.poke(replica, Some(input));
                }
            }
            Event::Fault(fault) => self.strike(fault),
        }
    }

    pub(super) fn schedule(&mut self, after: u64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + after, self.sequence), event);
    }

    pub(super) fn latency(&mut self) -> u64 {
        1 + self.dice.next() % self.latency_max
    }

    pub(super) fn note(&mut self, line: String) {
        if self.trace.len() == TRACE_LINES_MAX {
            self.trace.pop_front();
        }
        self.trace.push_back(format!("{:>7} ms  {line}", self.now));
    }

    pub(super) fn trace(&self) -> String {
        self.trace.iter().cloned().collect::<Vec<_>>().join("\n")
    }
}
