//! Events of the file system, as hints that a look is worth while.
//!
//! Promises: a folder that was removed and made again is heard again; when no events can be had, that is said once
//! and everything goes on by looking. Folders are watched, never single files: a rename would end that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use notify::event::{AccessKind, AccessMode};
use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};

use super::Stamp;

/// Listens in folders.
#[derive(Debug, Default)]
pub struct Hints {
    watcher: Option<RecommendedWatcher>,
    /// The watched folders as they were: device and inode.
    watched: BTreeMap<PathBuf, (u64, u64)>,
    warned: bool,
}

impl Hints {
    /// Calls `heard` after each event of a watched folder, on a thread of its own; it must not block.
    pub fn new(heard: impl Fn() + Send + 'static) -> Self {
        let mut hints = Self::default();
        let made = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading changes nothing, and this host reads by itself.
            let reads = event.as_ref().is_ok_and(|event| match event.kind {
                EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
                EventKind::Access(_) => true,
                _ => false,
            });
            if !reads {
                heard();
            }
        });
        match made {
            Ok(watcher) => hints.watcher = Some(watcher),
            Err(error) => hints.warn(&error),
        }
        hints
    }

    /// Whether events are heard in every folder.
    #[must_use]
    pub fn hears(&self, folders: &[PathBuf]) -> bool {
        folders
            .iter()
            .all(|folder| self.watched.contains_key(folder))
    }

    /// Watches exactly these folders, and anew those that are others than they were.
    pub fn listen(&mut self, folders: &[PathBuf]) {
        let Some(mut watcher) = self.watcher.take() else {
            return;
        };
        self.watched.retain(|folder, identity| {
            let stays = folders.contains(folder) && identify(folder) == Some(*identity);
            if !stays {
                // Gone with the folder already, most often.
                drop(watcher.unwatch(folder));
            }
            stays
        });
        for folder in folders {
            if self.watched.contains_key(folder) {
                continue;
            }
            let Some(identity) = identify(folder) else {
                continue;
            };
            match watcher.watch(folder, RecursiveMode::NonRecursive) {
                Ok(()) => drop(self.watched.insert(folder.clone(), identity)),
                Err(error) => self.warn(&error),
            }
        }
        self.watcher = Some(watcher);
    }

    fn warn(&mut self, error: &notify::Error) {
        if !std::mem::replace(&mut self.warned, true) {
            tracing::warn!(%error, "no events of the file system; plugin files are looked at now and then instead");
        }
    }
}

fn identify(folder: &Path) -> Option<(u64, u64)> {
    Stamp::of(folder).map(|stamp| (stamp.device, stamp.inode))
}
