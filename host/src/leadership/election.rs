//! The election of one replica: runs the role machine against PostgreSQL, on an OS thread of its own.
//!
//! Promises: a plugin that burns CPU cannot delay the heartbeat; what the rest of the process sees (the
//! [`Role`] and the lease) never says "leading" longer than the machine does, and a panic of this thread ends
//! the leadership too. Must never: decide anything by itself; all decisions are in [`role`](super::role).

mod handle;
mod handover;
mod publish;
mod steps;

pub use handle::{Handle, Progress, Vitals};

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::clock::{Clock, Moment};
use super::error::Error;
use super::lease::Keeper;
use super::load::{Load, Share};
use super::role::{Action, Input, Machine, Phase, Timing};
use super::session::{Facts, Site};
use super::term::Claimed;
use super::{Denied, Leadership, Role};
use crate::advisory_lock::key::Key;
use crate::database::identifier::Identifier;
use crate::database::session::Database;
use crate::telemetry::metrics::LeaderMetrics;
use handle::Shared;
use handover::HandOver;
use steps::{Background, Lane, TermDone};

/// What an election needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// `[leader] group`.
    pub group: String,
    /// `[host] node`.
    pub node: String,
    /// Name of this machine.
    pub host: String,
    /// `[leader] key`.
    pub key: Key,
    /// With `[leader] scope = "projection"`: the projection that this election is for.
    pub projection: Option<String>,
    /// What this replica holds in all its elections.
    pub load: Load,
    /// The database of `[leader] database`.
    pub lock_database: Database,
    /// The read-model database.
    pub read_model: Database,
    /// `[read_model] control_schema`.
    pub control_schema: Identifier,
    /// Intervals and bounds.
    pub timing: Timing,
    /// After this long without leading, [`Denied::overdue`] is set.
    pub denied_limit: Duration,
    /// Counts what others may want to know.
    pub metrics: LeaderMetrics,
}

impl Options {
    /// The lock that is competed for: the configured one, or one derived from it for each projection.
    #[must_use]
    pub fn lock(&self) -> Key {
        lock_of(self.key, self.projection.as_deref())
    }
}

/// The lock of an installation, or of one of its projections: then the rule of `docs/locks.md` makes it from the
/// namespace `projector-leader` and the name `<key>/<projection>`. It never changes between releases.
#[must_use]
pub fn lock_of(key: Key, projection: Option<&str>) -> Key {
    match projection {
        None => key,
        Some(projection) => Key::derive("projector-leader", &format!("{key}/{projection}")),
    }
}

/// Starts the election. It ends, with the lock given back, after `shutdown` was cancelled.
///
/// # Errors
/// When the timing contradicts itself, or no thread can be started.
pub fn spawn(
    options: Options,
    shutdown: CancellationToken,
    clock: Arc<dyn Clock>,
) -> Result<(Handle, JoinHandle<()>), Error> {
    options.timing.check()?;
    let denied = Denied {
        holder: None,
        reason: "has not tried yet".to_owned(),
        refusal: None,
        since: clock.wall(),
        overdue: false,
    };
    let (role, seen) = watch::channel(Role::Follower(denied.clone()));
    let shared = Arc::new(Shared::new(Arc::clone(&clock)));
    let handle = Handle::new(Arc::clone(&shared), seen);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Thread)?;
    let thread = std::thread::Builder::new()
        .name("leadership".to_owned())
        .spawn(move || {
            let service = Service::new(options, shutdown, clock, shared, role, denied);
            runtime.block_on(service.run());
        })
        .map_err(Error::Thread)?;
    Ok((handle, thread))
}

/// One replica's part in the election.
struct Service {
    options: Options,
    site: Site,
    shutdown: CancellationToken,
    clock: Arc<dyn Clock>,
    shared: Arc<Shared>,
    role: watch::Sender<Role>,
    machine: Machine,
    lane: Lane,
    term_step: Option<Background<TermDone>>,
    holder_step: Option<Background<steps::HolderDone>>,
    /// Of the session that holds the lock.
    facts: Option<Facts>,
    claimed: Option<Claimed>,
    /// While the lock is held.
    share: Option<Share>,
    /// While leading.
    leading: Option<(Leadership, Keeper)>,
    denied: Denied,
    /// The reason that was logged last.
    said: Option<String>,
    denied_since: Moment,
    inspected_at: Option<Moment>,
    warned_of: Option<i32>,
    /// Somebody else held the lock at the last try, and nothing failed since.
    stands_by: bool,
    handover: HandOver,
    published: Phase,
    stopping: bool,
}

impl Service {
    fn new(
        options: Options,
        shutdown: CancellationToken,
        clock: Arc<dyn Clock>,
        shared: Arc<Shared>,
        role: watch::Sender<Role>,
        denied: Denied,
    ) -> Self {
        let now = clock.now();
        let site = Site {
            database: options.lock_database.clone(),
            key: options.lock(),
            local_lease: options.timing.local_lease,
            server_lease: options.timing.server_lease,
        };
        Self {
            handover: HandOver::new(&site, options.metrics.reconnects.clone()),
            stands_by: false,
            site,
            machine: Machine::new(options.timing, now, rand::random()),
            options,
            shutdown,
            clock,
            shared,
            role,
            lane: Lane::Closed,
            term_step: None,
            holder_step: None,
            facts: None,
            claimed: None,
            share: None,
            leading: None,
            // Before the first try there is nothing to say.
            said: Some(denied.reason.clone()),
            denied,
            denied_since: now,
            inspected_at: None,
            warned_of: None,
            published: Phase::Follower,
            stopping: false,
        }
    }

    async fn run(mut self) {
        let mut input = None;
        loop {
            self.take_requests();
            self.turn(input.take());
            if matches!(self.machine.phase(), Phase::Stopped) {
                self.handover.end().await;
                return;
            }
            let sleep = self
                .machine
                .wake_at()
                .map_or(Duration::MAX, |at| at.since(self.clock.now()));
            input = tokio::select! {
                done = self.lane.done() => self.session_done(done),
                done = steps::done(&mut self.term_step) => self.term_done(done),
                done = steps::done(&mut self.holder_step) => {
                    self.holder_found(done);
                    None
                }
                () = self.shared.wake.notified() => None,
                () = self.handover.announced() => Some(Input::Hint),
                () = self.shutdown.cancelled(), if !self.stopping => None,
                () = tokio::time::sleep(sleep) => None,
            };
        }
    }

    /// Hands what others asked for to the machine. Requests are levels, so none is lost or queued.
    fn take_requests(&mut self) {
        let requests = self.shared.take_requests();
        self.turn(Some(Input::Progress(requests.progress)));
        if self.shutdown.is_cancelled() && !self.stopping {
            self.stopping = true;
            self.turn(Some(Input::Shutdown));
        }
        if let Some(reason) = requests.resign {
            tracing::info!(reason, "asked to resign");
            self.turn(Some(Input::Resign));
        }
        if requests.hint {
            self.turn(Some(Input::Hint));
        }
        if let Some(term) = requests.fenced {
            self.turn(Some(Input::Fenced(term)));
        }
        if let Some(term) = requests.drained {
            self.turn(Some(Input::Drained(term)));
        }
    }

    /// One turn of the machine: what comes in, what has to be done, what others see.
    fn turn(&mut self, input: Option<Input>) {
        let actions = self.machine.step(self.clock.now(), input);
        for action in actions {
            self.act(action);
        }
        self.publish();
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Open => self.open(),
            Action::Try => self.try_lock(),
            Action::Beat { deep } => self.beat(deep),
            Action::Release { term } => self.release(term.is_some()),
            Action::Drop => {
                self.stands_by = false;
                self.lane = Lane::Closed;
            }
            Action::Claim => self.claim(),
            Action::CheckTerm => self.check_term(),
            Action::DropTermStep => self.term_step = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_of_a_projection_never_changes() {
        let installation = Key::Single(0x5049_434F_4351_5253);
        assert_eq!(lock_of(installation, None), installation);
        let check = |key, projection: &str, expected| {
            assert_eq!(lock_of(key, Some(projection)), Key::Single(expected));
        };
        check(installation, "order", 8_684_509_768_238_455_844);
        check(Key::Pair(1, -2), "order", -2_552_844_552_706_611_337);
    }
}
