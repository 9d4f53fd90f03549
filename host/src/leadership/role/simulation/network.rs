//! The lock server, the store, and the messages to and from them.

use super::world::{Event, World, at};
use crate::leadership::Term;
use crate::leadership::role::{Action, Input};

/// A message to the lock server or the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) life: u32,
    pub(super) step: u64,
    pub(super) sent_at: u64,
    pub(super) session: Option<usize>,
    pub(super) action: Action,
    /// The term that is checked.
    pub(super) term_id: u64,
}

/// A message back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reply {
    pub(super) life: u32,
    pub(super) step: u64,
    pub(super) session: Option<usize>,
    pub(super) claimed: Option<(i64, u64)>,
    pub(super) input: Input,
}

#[derive(Debug)]
struct Session {
    alive: bool,
    last: u64,
}

/// PostgreSQL as the lock sees it: sessions, and who of them holds the lock.
#[derive(Debug, Default)]
pub(super) struct Server {
    sessions: Vec<Session>,
    holder: Option<usize>,
    pub(super) down: bool,
    /// A session tried the lock that it holds.
    pub(super) stacked: Option<String>,
}

impl Server {
    pub(super) const fn holder(&self) -> Option<usize> {
        self.holder
    }

    pub(super) fn end(&mut self, session: usize) {
        self.sessions[session].alive = false;
        if self.holder == Some(session) {
            self.holder = None;
        }
    }

    pub(super) fn end_all(&mut self) {
        for session in 0..self.sessions.len() {
            self.end(session);
        }
    }

    pub(super) fn idle_since(&self, session: usize) -> Option<u64> {
        let session = &self.sessions[session];
        session.alive.then_some(session.last)
    }

    fn live(&self, session: Option<usize>) -> Option<usize> {
        session.filter(|&session| self.sessions[session].alive && !self.down)
    }
}

/// The read model: one term, one checkpoint, and what was applied.
#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) term: i64,
    pub(super) term_id: u64,
    pub(super) position: u64,
    pub(super) down: bool,
    /// The newest term in the history.
    applied_term: i64,
    /// The newest position in the history.
    applied: u64,
    pub(super) broken: Option<String>,
}

impl Store {
    /// The batch transaction. Says whether it committed.
    pub(super) fn commit(&mut self, fence: bool, term: (i64, u64), old: u64, events: u64) -> bool {
        // Without the fence a batch writes its rows and sets the checkpoint, whatever it was.
        if fence && (term.1 != self.term_id || old != self.position) {
            return false;
        }
        if old != self.applied {
            self.broken = Some(format!(
                "a batch of term {} began at {old}, but {} were applied",
                term.0, self.applied
            ));
        }
        if term.0 < self.applied_term {
            self.broken = Some(format!(
                "a batch of term {} came after one of term {}",
                term.0, self.applied_term
            ));
        }
        self.applied_term = self.applied_term.max(term.0);
        self.position = old + events;
        self.applied = old + events;
        true
    }
}

impl World {
    /// A message reaches its server. What it does there happens even when the answer is lost.
    pub(super) fn arrive(&mut self, number: usize, request: Request) {
        let on_store = matches!(request.action, Action::Claim | Action::CheckTerm);
        let replica = &self.replicas[number];
        let cut = if on_store {
            replica.cut_store
        } else {
            replica.cut_lock
        };
        if cut {
            return;
        }
        let mut session = request.session;
        let mut claimed = None;
        let sent_at = at(request.sent_at);
        let live = self.server.live(request.session);
        let input = match request.action {
            Action::Open if self.server.down => Input::OpenFailed,
            Action::Open => {
                session = Some(self.server.sessions.len());
                let last = self.now;
                self.server.sessions.push(Session { alive: true, last });
                self.touch(session);
                Input::Opened
            }
            Action::Try => match (live, self.server.holder) {
                (None, _) => Input::TryFailed,
                (Some(own), Some(holder)) if own == holder => {
                    self.server.stacked = Some(format!("replica {number} stacked the lock"));
                    Input::Won { sent_at }
                }
                (Some(_), Some(_)) => {
                    self.touch(live);
                    Input::Held
                }
                (Some(own), None) => {
                    self.server.holder = Some(own);
                    self.touch(live);
                    Input::Won { sent_at }
                }
            },
            Action::Beat { .. } => match live {
                Some(own) if self.server.holder == Some(own) => {
                    self.touch(live);
                    let resign_requested =
                        std::mem::take(&mut self.replicas[number].asked_to_resign);
                    Input::Beat {
                        sent_at,
                        resign_requested,
                    }
                }
                _ => Input::BeatFailed,
            },
            Action::Release { .. } => {
                if let Some(session) = live {
                    self.server.end(session);
                    self.announce(number);
                }
                Input::Released
            }
            Action::Claim if self.store.down => Input::ClaimFailed,
            Action::Claim => {
                self.store.term += 1;
                self.store.term_id = self.dice.next();
                claimed = Some((self.store.term, self.store.term_id));
                self.note(format!("replica {number} claims term {}", self.store.term));
                Input::Claimed(Term(self.store.term))
            }
            Action::CheckTerm if self.store.down => Input::TermUnknown,
            Action::CheckTerm if self.store.term_id == request.term_id => Input::TermHeld,
            Action::CheckTerm => Input::TermLost,
            Action::Drop | Action::DropTermStep => return,
        };
        let reply = Reply {
            life: request.life,
            step: request.step,
            session,
            claimed,
            input,
        };
        let way = self.latency();
        self.schedule(way, Event::Answer(number, reply));
    }

    /// The server's own lease starts anew with each statement that reaches it.
    fn touch(&mut self, session: Option<usize>) {
        let Some(session) = session else { return };
        let last = self.now;
        self.server.sessions[session].last = last;
        let lease = u64::try_from(self.timing.server_lease.as_millis()).unwrap_or(u64::MAX);
        self.schedule(lease, Event::IdleLimit { session, last });
    }

    /// The others hear that the lock is free, or do not.
    fn announce(&mut self, from: usize) {
        for replica in (0..self.replicas.len()).filter(|other| *other != from) {
            let arrives = !self.replicas[replica].cut_lock && !self.dice.next().is_multiple_of(8);
            let life = self.replicas[replica].life;
            let way = self.latency();
            if arrives {
                let input = Input::Hint;
                self.schedule(
                    way,
                    Event::Word {
                        replica,
                        life,
                        input,
                    },
                );
            }
        }
    }
}
