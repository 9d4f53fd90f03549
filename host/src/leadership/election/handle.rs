//! What the rest of the process holds of the election.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::Role;
use crate::leadership::Term;
use crate::leadership::clock::{Clock, Moment};

/// Sees the role and asks for changes. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    role: watch::Receiver<Role>,
}

/// Ticked by the projection loops; a leader whose loops do not tick resigns.
#[derive(Debug, Clone)]
pub struct Progress {
    shared: Arc<Shared>,
}

/// Numbers for metrics and status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vitals {
    /// Time since the last heartbeat came back; `None` before the first.
    pub last_heartbeat_age: Option<Duration>,
    /// Heartbeats that took longer than one and a half intervals.
    pub heartbeats_late_total: u64,
    /// How often this replica began to lead.
    pub leaderships_total: u64,
    /// The newest term that this replica led, 0 before the first.
    pub term: i64,
}

impl Handle {
    pub(super) const fn new(shared: Arc<Shared>, role: watch::Receiver<Role>) -> Self {
        Self { shared, role }
    }

    /// The role, now and whenever it changes. When the sender is gone, the election has ended.
    #[must_use]
    pub fn role(&self) -> watch::Receiver<Role> {
        self.role.clone()
    }

    /// Gives the leadership up in an orderly way, and stays away from it for a while. Nothing happens when
    /// this replica does not lead.
    pub fn resign(&self, reason: impl Into<String>) {
        self.shared.requests().resign = Some(reason.into());
        self.shared.wake.notify_one();
    }

    /// Says that all work under this term, or an older one, has ended.
    pub fn drained(&self, term: Term) {
        self.shared.drained.fetch_max(term.0, Ordering::AcqRel);
        self.shared.wake.notify_one();
    }

    /// Says that a batch under this term matched no row of its checkpoint: a newer term was claimed.
    pub fn fenced(&self, term: Term) {
        self.shared.fenced.fetch_max(term.0, Ordering::AcqRel);
        self.shared.wake.notify_one();
    }

    /// Says that the lock may have become free, so that a follower tries now and not at its next interval.
    pub fn try_now(&self) {
        self.shared.requests().hint = true;
        self.shared.wake.notify_one();
    }

    /// For the loops.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress {
            shared: Arc::clone(&self.shared),
        }
    }

    /// Numbers for metrics and status.
    #[must_use]
    pub fn vitals(&self) -> Vitals {
        let last = self.shared.last_beat.load(Ordering::Acquire);
        let now = self.shared.clock.now();
        Vitals {
            last_heartbeat_age: (last > 0).then(|| now.since(Moment(Duration::from_nanos(last)))),
            heartbeats_late_total: self.shared.late_beats.load(Ordering::Relaxed),
            leaderships_total: self.shared.leaderships.load(Ordering::Relaxed),
            term: self.shared.term.load(Ordering::Relaxed),
        }
    }

    /// Resolves when the election has ended and nothing is held any more.
    pub async fn stopped(&self) {
        let mut role = self.role.clone();
        // An error means that the thread is gone, which is as good.
        let _gone = role.wait_for(|role| matches!(role, Role::Stopped)).await;
    }
}

impl Progress {
    /// Some loop is alive. Cheap; call it in every turn, also in an idle one.
    pub fn tick(&self) {
        let now = nanos(self.shared.clock.now());
        self.shared.progress.fetch_max(now, Ordering::Relaxed);
    }
}

/// What handles and service share: levels, no queues.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) wake: Notify,
    requests: Mutex<Requests>,
    drained: AtomicI64,
    fenced: AtomicI64,
    progress: AtomicU64,
    clock: Arc<dyn Clock>,
    pub(super) last_beat: AtomicU64,
    pub(super) late_beats: AtomicU64,
    pub(super) leaderships: AtomicU64,
    pub(super) term: AtomicI64,
}

#[derive(Debug, Default)]
struct Requests {
    resign: Option<String>,
    hint: bool,
}

/// What was asked for since the last look.
pub(super) struct Taken {
    pub(super) resign: Option<String>,
    pub(super) hint: bool,
    pub(super) drained: Option<Term>,
    pub(super) fenced: Option<Term>,
    pub(super) progress: Moment,
}

impl Shared {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            wake: Notify::new(),
            requests: Mutex::default(),
            drained: AtomicI64::new(0),
            fenced: AtomicI64::new(0),
            progress: AtomicU64::new(0),
            clock,
            last_beat: AtomicU64::new(0),
            late_beats: AtomicU64::new(0),
            leaderships: AtomicU64::new(0),
            term: AtomicI64::new(0),
        }
    }

    pub(super) fn take_requests(&self) -> Taken {
        let requests = std::mem::take(&mut *self.requests());
        let term = |cell: &AtomicI64| match cell.load(Ordering::Acquire) {
            0 => None,
            term => Some(Term(term)),
        };
        Taken {
            resign: requests.resign,
            hint: requests.hint,
            drained: term(&self.drained),
            fenced: term(&self.fenced),
            progress: Moment(Duration::from_nanos(self.progress.load(Ordering::Relaxed))),
        }
    }

    /// Two flags are never half written, so a poisoned lock is as good as a whole one.
    fn requests(&self) -> std::sync::MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// 584 years fit.
pub(super) fn nanos(moment: Moment) -> u64 {
    u64::try_from(moment.0.as_nanos()).unwrap_or(u64::MAX)
}
