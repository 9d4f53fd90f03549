//! The projections that a replica knows, and the plugin files that it has for them. Changes while it runs.
//!
//! Promises: a projection keeps its progress when its plugin changes; one that was known stays known, without a
//! plugin, when its file goes.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

use crate::plugin::{Loader, Plugin};

use super::progress::Progress;
use super::settings::Settings;

/// What a changed file does to a projection that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnChange {
    /// The recorded plugin goes on until somebody accepts the file.
    Refuse,
    /// The file goes on with the rows, where its manifest fits.
    Continue,
    /// The projection is emptied and begins anew with the file.
    Rebuild,
}

/// A plugin file of this replica.
#[derive(Debug, Clone)]
pub struct Offer {
    /// What is in it.
    pub plugin: Arc<Plugin>,
    /// When it was saved, if this replica saw that; else it was found at the start.
    pub saved: Option<Instant>,
}

/// A projection that is known to this replica.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its name.
    pub name: String,
    /// Its plugin file, if this replica has one that can be used.
    pub offer: Option<Offer>,
    /// Whether there is a file that cannot be used.
    pub broken: bool,
    /// How it runs.
    pub settings: Arc<Settings>,
    /// What a changed file does.
    pub on_change: OnChange,
    /// For development: the file always counts, also one that was replaced before.
    pub dev: bool,
    /// What loads kept plugins.
    pub loader: Arc<Loader>,
    /// For everybody to see.
    pub progress: Progress,
}

/// Everything that is known; a clone is the same roster.
#[derive(Debug, Clone)]
pub struct Roster(Arc<watch::Sender<Arc<Vec<Known>>>>);

impl Known {
    /// Whether it would run in the same way.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        let offer = |known: &Self| known.offer.as_ref().map(|offer| Arc::as_ptr(&offer.plugin));
        offer(self) == offer(other)
            && self.broken == other.broken
            && self.settings == other.settings
            && self.on_change == other.on_change
            && Arc::ptr_eq(&self.loader, &other.loader)
    }

    /// The same without a file.
    fn without_file(&self) -> Self {
        Self {
            offer: None,
            broken: false,
            ..self.clone()
        }
    }
}

impl Roster {
    /// The roster of a start.
    #[must_use]
    pub fn new(known: Vec<Known>) -> Self {
        Self(Arc::new(watch::channel(Arc::new(known)).0))
    }

    /// Everything that is known now, by name.
    #[must_use]
    pub fn all(&self) -> Arc<Vec<Known>> {
        self.0.borrow().clone()
    }

    /// One of them.
    #[must_use]
    pub fn known(&self, name: &str) -> Option<Known> {
        self.0
            .borrow()
            .iter()
            .find(|known| known.name == name)
            .cloned()
    }

    /// Told of every change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<Arc<Vec<Known>>> {
        self.0.subscribe()
    }

    /// Wakes whoever looks at changes: something about a projection is to be told.
    pub fn touch(&self) {
        self.0.send_modify(|_| {});
    }

    /// What there is from now on. Who was known keeps its progress, and an unchanged plugin stays the same one.
    pub fn replace(&self, mut fresh: Vec<Known>) {
        let before = self.all();
        for known in &mut fresh {
            if let Some(old) = before.iter().find(|old| old.name == known.name) {
                known.progress = old.progress.clone();
            }
        }
        let gone = before
            .iter()
            .filter(|old| !fresh.iter().any(|known| known.name == old.name));
        let gone: Vec<Known> = gone.map(Known::without_file).collect();
        fresh.extend(gone);
        fresh.sort_by(|a, b| a.name.cmp(&b.name));
        self.0.send_replace(Arc::new(fresh));
    }

    /// A projection that is recorded, of which this replica may have no file.
    pub fn is_recorded(&self, name: &str, make: impl FnOnce() -> Known) {
        self.0.send_if_modified(|all| {
            if all.iter().any(|known| known.name == name) {
                return false;
            }
            let mut next = all.to_vec();
            next.push(make());
            next.sort_by(|a, b| a.name.cmp(&b.name));
            *all = Arc::new(next);
            true
        });
    }
}
