//! The faults: what may go wrong, when, and how it heals.

use super::replica::Replica;
use super::world::{Event, World};
use crate::leadership::role::{Input, Phase};

/// Something that goes wrong, or right again.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// Stopped like a process in a debugger; its kernel keeps the sockets.
    Freeze(usize, u64),
    /// Packets to and from the lock server vanish, without a word.
    CutLock(usize, bool),
    CutStore(usize, bool),
    StoreDown(bool),
    Slow(u64),
    /// The process is killed and started again; its kernel closes the sockets.
    Crash(usize),
    /// Whoever leads.
    KillHolder,
    /// All sessions end; the server is away for a while.
    ServerDown(bool),
    Resign,
    Stall(usize, bool),
    /// The store went back and forth: another claim came from nowhere.
    ForeignClaim,
}

impl World {
    pub(super) fn plan_faults(&mut self, until: u64) {
        let count = 5 + self.dice.next() % 20;
        for _ in 0..count {
            let start = 500 + self.dice.next() % (until - 500);
            let length = 1 + self.dice.next() % 12_000;
            let end = (start + length).min(until);
            let replica = usize::try_from(self.dice.next()).unwrap_or(0) % self.replicas.len();
            let kinds = if self.rules.kills { 11 } else { 8 };
            let (on, off) = match self.dice.next() % kinds {
                0 | 1 => (Fault::Freeze(replica, end), None),
                2 => (
                    Fault::CutLock(replica, true),
                    Some(Fault::CutLock(replica, false)),
                ),
                3 => (
                    Fault::CutStore(replica, true),
                    Some(Fault::CutStore(replica, false)),
                ),
                4 => (Fault::StoreDown(true), Some(Fault::StoreDown(false))),
                5 => {
                    let latency = 5 + self.dice.next() % 3_000;
                    (Fault::Slow(latency), Some(Fault::Slow(5)))
                }
                6 => (Fault::Resign, None),
                7 => (
                    Fault::Stall(replica, true),
                    Some(Fault::Stall(replica, false)),
                ),
                8 => (Fault::Crash(replica), Some(Fault::ForeignClaim)),
                9 => (Fault::KillHolder, None),
                _ => (Fault::ServerDown(true), Some(Fault::ServerDown(false))),
            };
            self.schedule(start, Event::Fault(on));
            if let Some(off) = off {
                self.schedule(end, Event::Fault(off));
            }
        }
    }

    pub(super) fn strike(&mut self, fault: Fault) {
        self.note(format!("{fault:?}"));
        match fault {
            Fault::Freeze(replica, until) => {
                let replica = &mut self.replicas[replica];
                replica.paused_until = replica.paused_until.max(until);
            }
            Fault::CutLock(replica, cut) => self.replicas[replica].cut_lock = cut,
            Fault::CutStore(replica, cut) => self.replicas[replica].cut_store = cut,
            Fault::StoreDown(down) => self.store.down = down,
            Fault::Slow(latency) => self.latency_max = latency,
            Fault::Crash(replica) => self.crash(replica),
            Fault::KillHolder => {
                if let Some(session) = self.server.holder() {
                    self.server.end(session);
                }
            }
            Fault::ServerDown(down) => {
                self.server.down = down;
                self.server.end_all();
            }
            Fault::Resign => {
                for replica in &mut self.replicas {
                    replica.asked_to_resign =
                        matches!(replica.machine.phase(), Phase::Leading { .. });
                }
            }
            Fault::Stall(replica, stalled) => self.replicas[replica].stalled = stalled,
            Fault::ForeignClaim => {
                self.store.term += 1;
                self.store.term_id = self.dice.next();
            }
        }
    }

    fn crash(&mut self, number: usize) {
        if let Some(session) = self.replicas[number].session()
            && !self.replicas[number].cut_lock
        {
            let way = self.latency();
            self.schedule(way, Event::Fin(session));
        }
        let (seed, life) = (self.dice.next(), self.replicas[number].life + 1);
        self.replicas[number] = Replica::new(self.timing, self.now, seed, life);
        let start = 100 + self.dice.next() % 2_000;
        let input = Input::Hint;
        self.schedule(
            start,
            Event::Word {
                replica: number,
                life,
                input,
            },
        );
    }

    pub(super) fn heal(&mut self) {
        self.note("everything heals".to_owned());
        self.latency_max = 5;
        self.store.down = false;
        self.server.down = false;
        for replica in &mut self.replicas {
            replica.cut_lock = false;
            replica.cut_store = false;
            replica.stalled = false;
            replica.asked_to_resign = false;
        }
    }
}
