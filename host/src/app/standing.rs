//! How this replica stands: what probes and the API answer from, without SQL.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::event_store::Feed;
use crate::leadership::{Handle, Role};
use crate::projection::roster::{Known, Roster};

use super::plugins::{self, LoadedPlugins};

/// The runtime is stuck when it has not run a small task for this long.
const TICK_MAX: Duration = Duration::from_secs(15);

/// Cheap to clone; written by the app, read by HTTP.
#[derive(Debug, Clone)]
pub struct Standing(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    ticked: Mutex<Instant>,
    gate: watch::Sender<Gate>,
    plugins: Mutex<Option<LoadedPlugins>>,
    seats: Mutex<Vec<Seat>>,
    leading: Mutex<BTreeMap<Option<String>, Leading>>,
    idle: Mutex<Option<&'static str>>,
}

/// A leadership that this replica competes for.
#[derive(Debug, Clone)]
pub struct Seat {
    /// The projection, when each has a leader of its own.
    pub projection: Option<String>,
    /// The election.
    pub election: Handle,
}

impl Seat {
    /// The role in it.
    #[must_use]
    pub fn role(&self) -> Role {
        self.election.role().borrow().clone()
    }
}

/// Whether this replica can take part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    /// Not yet; why.
    Closed(String),
    /// It can: databases were reached and are migrated.
    Open,
}

/// What is there only while this replica leads.
#[derive(Debug, Clone)]
pub struct Leading {
    /// The store.
    pub feed: Feed,
    /// The projections.
    pub roster: Roster,
}

impl Default for Standing {
    fn default() -> Self {
        Self(Arc::new(Inner {
            ticked: Mutex::new(Instant::now()),
            gate: watch::channel(Gate::Closed("starting".to_owned())).0,
            plugins: Mutex::new(None),
            seats: Mutex::default(),
            leading: Mutex::default(),
            idle: Mutex::default(),
        }))
    }
}

impl Standing {
    /// The runtime ran its small task.
    pub fn ticked(&self) {
        *lock(&self.0.ticked) = Instant::now();
    }

    /// Whether the runtime runs tasks.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        lock(&self.0.ticked).elapsed() < TICK_MAX
    }

    /// The gate.
    #[must_use]
    pub fn gate(&self) -> Gate {
        self.0.gate.borrow().clone()
    }

    /// The gate changed.
    pub fn set_gate(&self, gate: Gate) {
        self.0.gate.send_replace(gate);
    }

    /// Plugins were loaded, or refused.
    pub fn plugins_loaded(&self, loaded: &LoadedPlugins) {
        *lock(&self.0.plugins) = Some(loaded.clone());
    }

    /// Why plugin files were refused; none while they are still compiled.
    #[must_use]
    pub fn refused_plugins(&self) -> Option<Vec<String>> {
        let refused = lock(&self.0.plugins).as_ref()?.refused();
        Some(refused.iter().map(plugins::text).collect())
    }

    /// Whether this replica has a projection of this name.
    #[must_use]
    pub fn knows(&self, projection: &str) -> bool {
        let plugins = lock(&self.0.plugins);
        plugins
            .as_ref()
            .is_some_and(|plugins| plugins.roster().known(projection).is_some())
    }

    /// This replica does not compete for the lock, and why; or it does.
    pub fn set_idle(&self, why: Option<&'static str>) {
        *lock(&self.0.idle) = why;
    }

    /// Why this replica does not compete for the lock, if it does not.
    #[must_use]
    pub fn idle(&self) -> Option<&'static str> {
        *lock(&self.0.idle)
    }

    /// An election began.
    pub fn add_seat(&self, seat: Seat) {
        lock(&self.0.seats).push(seat);
    }

    /// Every leadership that this replica competes for; none before it takes part.
    #[must_use]
    pub fn seats(&self) -> Vec<Seat> {
        lock(&self.0.seats).clone()
    }

    /// The role, once there is an election. Of several it is the one nearest to leading.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        let nearness = |role: &Role| match role {
            Role::Leading(_) => 4,
            Role::Draining { .. } => 3,
            Role::Claiming => 2,
            Role::Follower(_) => 1,
            Role::Stopped => 0,
        };
        self.seats().iter().map(Seat::role).max_by_key(nearness)
    }

    /// This replica leads, or does no more: everything, or this projection.
    pub fn set_leading(&self, projection: Option<&str>, leading: Option<Leading>) {
        let mut all = lock(&self.0.leading);
        let projection = projection.map(str::to_owned);
        match leading {
            Some(leading) => all.insert(projection, leading),
            None => all.remove(&projection),
        };
    }

    /// What is there while this replica leads, of all its leaderships together.
    #[must_use]
    pub fn leading(&self) -> Option<(Feed, Vec<Known>)> {
        let all = lock(&self.0.leading);
        let projections = all.iter().flat_map(|(only, one)| {
            let mut known = one.roster.all().to_vec();
            known.retain(|known| only.as_ref().is_none_or(|only| *only == known.name));
            known
        });
        let first = all.values().next()?;
        Some((first.feed.clone(), projections.collect()))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
