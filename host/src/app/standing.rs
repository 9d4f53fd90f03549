//! How this replica stands: what probes and the API answer from, without SQL.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::event_store::Feed;
use crate::leadership::{Handle, Role};
use crate::projection::roster::Roster;

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
    election: Mutex<Option<Handle>>,
    leading: Mutex<Option<Leading>>,
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
            election: Mutex::new(None),
            leading: Mutex::new(None),
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

    /// The election began.
    pub fn set_election(&self, handle: Handle) {
        *lock(&self.0.election) = Some(handle);
    }

    /// The election's handle, once there is one.
    #[must_use]
    pub fn election(&self) -> Option<Handle> {
        lock(&self.0.election).clone()
    }

    /// The role, once there is an election.
    #[must_use]
    pub fn role(&self) -> Option<Role> {
        self.election().map(|handle| handle.role().borrow().clone())
    }

    /// This replica leads, or does no more.
    pub fn set_leading(&self, leading: Option<Leading>) {
        *lock(&self.0.leading) = leading;
    }

    /// What is there while this replica leads.
    #[must_use]
    pub fn leading(&self) -> Option<Leading> {
        lock(&self.0.leading).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
