//! The files of a replica as they were last read: good ones, and what is wrong with the others.
//!
//! Promises: only a file whose bytes changed is loaded again; a file that went bad leaves its last good plugin in
//! use; each fault is told once. Must never: drop a plugin because its folder cannot be read for the moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Claimant, Loaded, Loader, Plugin, Refused, folder, parallel, refused, unclaimed};
use crate::plugin::error::Error;
use crate::plugin::file;
use crate::plugin::watch::{Looked, Settling, Stamp, Still};

/// A file that looks like the beginning of a plugin is refused only when nothing was added to it for so long.
const INCOMPLETE_GRACE: Duration = Duration::from_secs(3);

/// All files, by name.
#[derive(Debug)]
pub struct Shelf {
    loader: Arc<Loader>,
    settling: Settling,
    files: BTreeMap<PathBuf, Entry>,
    /// What is wrong with the folder itself.
    folder: BTreeMap<PathBuf, Error>,
    /// What was told of each file last.
    told: BTreeMap<PathBuf, String>,
    takes: u64,
    /// Names that files had on the shelf before this one, and since which look.
    inherited: BTreeMap<PathBuf, (String, u64)>,
    /// Whether the last look found that files are gone.
    lost_some: bool,
}

/// What one file came to.
#[derive(Debug)]
struct Entry {
    stamp: Option<Stamp>,
    sha256: Option<String>,
    good: Option<Claimant>,
    fault: Option<(Error, Instant)>,
}

/// Something that people should know.
#[derive(Debug, Clone)]
pub enum Change {
    /// A file was loaded.
    Loaded {
        /// What is in it.
        plugin: Arc<Plugin>,
        /// When it was first seen as it is.
        since: Instant,
    },
    /// A file is not used.
    Refused(Refused),
    /// A file is used that was refused before, or is gone.
    Gone(PathBuf),
}

/// What reading a file came to.
enum Taken {
    Moving,
    Same,
    Read(String, Box<Result<Plugin, Error>>),
}

impl Shelf {
    /// An empty shelf.
    #[must_use]
    pub fn new(loader: Arc<Loader>) -> Self {
        Self {
            loader,
            settling: Settling::default(),
            files: BTreeMap::new(),
            folder: BTreeMap::new(),
            told: BTreeMap::new(),
            takes: 0,
            inherited: BTreeMap::new(),
            lost_some: false,
        }
    }

    /// An empty shelf for the same files under another configuration: a file that had its name before others came
    /// still has it.
    #[must_use]
    pub fn after(before: &Self, loader: Arc<Loader>) -> Self {
        let inherited = before.files.iter().filter_map(|(path, entry)| {
            let good = entry.good.as_ref()?;
            let name = good.plugin.manifest.name.clone();
            Some((path.clone(), (name, good.since)))
        });
        Self {
            takes: before.takes,
            inherited: inherited.collect(),
            ..Self::new(loader)
        }
    }

    /// What loads them.
    #[must_use]
    pub fn loader(&self) -> &Arc<Loader> {
        &self.loader
    }

    /// Loads every file as it stands.
    pub fn take_all(&mut self) -> Vec<Change> {
        let found = self.stamps();
        let looked = self.settling.begin(Instant::now(), found);
        self.take(looked, Duration::ZERO)
    }

    /// Takes a look and loads what has changed and stands still again. Returns what changed, and whether something
    /// still moves. Blocks.
    pub fn look(&mut self) -> (Vec<Change>, bool) {
        let found = self.stamps();
        let looked = self.settling.look(Instant::now(), &found);
        let moving = !looked.moving.is_empty();
        (self.take(looked, INCOMPLETE_GRACE), moving)
    }

    /// Whether the last look found that files are gone.
    #[must_use]
    pub fn lost_some(&self) -> bool {
        self.lost_some
    }

    /// Folders in which something may happen.
    #[must_use]
    pub fn folders(&self) -> Vec<PathBuf> {
        folder::folders(&self.loader.options)
    }

    /// What there is now.
    #[must_use]
    pub fn loaded(&self) -> Loaded {
        let good = self.files.values().filter_map(|entry| entry.good.clone());
        let claimants: Vec<Claimant> = good.collect();
        let bad = self
            .files
            .iter()
            .filter_map(|(path, entry)| Some((path, &entry.fault.as_ref()?.0)));
        let bad: BTreeMap<&PathBuf, &Error> = bad.chain(&self.folder).collect();
        let missing = self.loader.missing(&claimants, &bad);
        let (claimants, stand_ins) = self.without_stand_ins(claimants, &bad);
        let (mut plugins, claimed) = unclaimed(claimants);
        plugins.sort_by(|a, b| a.manifest.name.cmp(&b.manifest.name));
        let mut refusals: Vec<Refused> = bad
            .iter()
            .map(|(path, error)| self.refused(path, error))
            .collect();
        let unused = stand_ins.iter().chain(&claimed);
        refusals.extend(unused.map(|(path, error)| refused(path, error)));
        let broken = self.broken(refusals.iter().map(|refused| refused.file.as_path()));
        refusals.extend(missing.iter().map(|(path, error)| refused(path, error)));
        refusals.sort_by(|a, b| a.file.cmp(&b.file));
        Loaded {
            plugins,
            refused: refusals,
            broken,
        }
    }

    /// Takes out files that call themselves like a projection that is configured for another file.
    fn without_stand_ins(
        &self,
        claimants: Vec<Claimant>,
        bad: &BTreeMap<&PathBuf, &Error>,
    ) -> (Vec<Claimant>, Vec<(PathBuf, Error)>) {
        let mut stand_ins = Vec::new();
        let mut kept = Vec::new();
        for claimant in claimants {
            let plugin = &claimant.plugin;
            match self.stands_in(&plugin.manifest.name, &plugin.file) {
                // What is wrong with its bytes now is told already.
                Some(_) if bad.contains_key(&plugin.file) => {}
                Some(error) => stand_ins.push((plugin.file.clone(), error)),
                None => kept.push(claimant),
            }
        }
        (kept, stand_ins)
    }

    fn stands_in(&self, name: &str, file: &Path) -> Option<Error> {
        let known = |configured: &Path| self.files.contains_key(configured);
        self.loader.stands_in(name, file, known)
    }

    /// A file that is not the configured one is told so, whatever its digest is.
    fn refused(&self, file: &Path, error: &Error) -> Refused {
        let stands_in = match error {
            Error::Pin { name, .. } => self.stands_in(name, file),
            _ => None,
        };
        refused(file, stands_in.as_ref().unwrap_or(error))
    }

    /// Projections that these files belong to, by configuration, by name, or by what they were before.
    fn broken<'a>(&self, files: impl Iterator<Item = &'a Path>) -> Vec<String> {
        let options = &self.loader.options;
        let mut names = Vec::new();
        for file in files {
            let declared = options.projections.iter();
            let declared =
                declared.filter(|declared| folder::resolved(&options.dir, declared) == file);
            names.extend(declared.map(|declared| declared.name.clone()));
            names.extend(
                file.file_stem()
                    .and_then(|stem| stem.to_str())
                    .map(str::to_owned),
            );
            let before = self.files.get(file).and_then(|entry| entry.good.as_ref());
            names.extend(before.map(|before| before.plugin.manifest.name.clone()));
        }
        names.sort();
        names.dedup();
        names
    }

    fn stamps(&mut self) -> BTreeMap<PathBuf, Option<Stamp>> {
        let (files, failed) = folder::files(&self.loader.options);
        self.folder = failed.into_iter().collect();
        let stamp = |path: PathBuf| Stamp::of_name(&path).map(|stamp| (path, stamp));
        let mut found: BTreeMap<PathBuf, Option<Stamp>> =
            files.into_iter().filter_map(stamp).collect();
        let unreadable = |error: &Error| matches!(error, Error::Folder(_));
        if self.folder.values().any(unreadable) {
            // A folder that cannot be read says nothing of its files.
            for (path, entry) in &self.files {
                found.entry(path.clone()).or_insert(entry.stamp);
            }
        }
        found
    }

    fn take(&mut self, looked: Looked, grace: Duration) -> Vec<Change> {
        self.takes += 1;
        let before = self.files.len();
        let there =
            |path: &PathBuf| looked.still.contains_key(path) || looked.moving.contains(path);
        self.files.retain(|path, _| there(path));
        self.inherited.retain(|path, _| there(path));
        self.lost_some = self.files.len() < before;
        let changed = |path: &PathBuf, still: &Still| {
            let entry = self.files.get(path);
            entry.is_none_or(|entry| entry.stamp != still.stamp || still.stamp.is_none())
        };
        let due: Vec<PathBuf> = looked
            .still
            .iter()
            .filter(|(path, still)| changed(path, still))
            .map(|(path, _)| path.clone())
            .collect();
        let taken = parallel::map(self.loader.engine(), &due, |path| {
            Ok(self.read(path, &looked.still))
        });
        let mut changes = Vec::new();
        for (path, taken) in due.iter().zip(taken) {
            let Some(still) = looked.still.get(path) else {
                continue;
            };
            changes.extend(self.took(
                path,
                *still,
                taken.unwrap_or_else(|error| Taken::Read(String::new(), Box::new(Err(error)))),
            ));
        }
        self.tell(&mut changes, grace);
        changes
    }

    /// Reads a file, and loads it if its bytes are others than before.
    fn read(&self, path: &Path, still: &BTreeMap<PathBuf, Still>) -> Taken {
        let bytes = match file::read(path) {
            Ok(bytes) => bytes,
            Err(error) => return Taken::Read(String::new(), Box::new(Err(error))),
        };
        if Some(Stamp::of(path)) != still.get(path).map(|still| still.stamp) {
            return Taken::Moving;
        }
        let sha256 = file::sha256(&bytes);
        if self
            .files
            .get(path)
            .is_some_and(|entry| entry.sha256.as_ref() == Some(&sha256))
        {
            return Taken::Same;
        }
        let loaded = self.loader.load_bytes(path, bytes);
        // That there is no process for it says nothing of the file: it is tried again with the next look.
        let sha256 = match &loaded {
            Err(Error::Process(_)) => String::new(),
            _ => sha256,
        };
        Taken::Read(sha256, Box::new(loaded))
    }

    fn took(&mut self, path: &Path, still: Still, taken: Taken) -> Option<Change> {
        let since = self.takes;
        let inherited = self.inherited.get(path).cloned();
        let entry = self.files.entry(path.to_owned()).or_insert_with(|| Entry {
            stamp: None,
            sha256: None,
            good: None,
            fault: None,
        });
        let (sha256, result) = match taken {
            // It is looked at again.
            Taken::Moving => return None,
            Taken::Same => {
                entry.stamp = still.stamp;
                return None;
            }
            Taken::Read(sha256, result) => (sha256, result),
        };
        // What could not be read at all is tried again with the next look.
        let was_read = !sha256.is_empty();
        entry.stamp = still.stamp.filter(|_| was_read);
        entry.sha256 = was_read.then_some(sha256);
        match *result {
            Ok(plugin) => {
                let plugin = Arc::new(plugin);
                let name = &plugin.manifest.name;
                let before = entry.good.as_ref();
                let before = before
                    .map(|good| (good.plugin.manifest.name.clone(), good.since))
                    .or(inherited);
                let kept = before.filter(|(before, _)| before == name);
                let since_take = kept.map_or(since, |(_, since)| since);
                entry.good = Some(Claimant {
                    plugin: plugin.clone(),
                    since: since_take,
                });
                entry.fault = None;
                Some(Change::Loaded {
                    plugin,
                    since: still.since,
                })
            }
            Err(error) => {
                entry.fault = Some((error, still.since));
                None
            }
        }
    }

    /// Tells each fault once, and one of an unfinished file only when it stays.
    fn tell(&mut self, changes: &mut Vec<Change>, grace: Duration) {
        let fresh = |file: &Path| {
            let fault = self.files.get(file).and_then(|entry| entry.fault.as_ref());
            fault.is_some_and(|(error, since)| error.is_incomplete() && since.elapsed() < grace)
        };
        let refusals: Vec<Refused> = self
            .loaded()
            .refused
            .into_iter()
            .filter(|refused| !fresh(&refused.file))
            .collect();
        let faults: BTreeMap<PathBuf, String> = refusals
            .iter()
            .map(|refused| (refused.file.clone(), self.identity(refused)))
            .collect();
        for refused in refusals {
            if self.told.get(&refused.file) != faults.get(&refused.file) {
                changes.push(Change::Refused(refused));
            }
        }
        let over = self
            .told
            .keys()
            .filter(|file| !faults.contains_key(*file) && !fresh(file));
        changes.extend(over.map(|file| Change::Gone(file.clone())));
        let kept = std::mem::take(&mut self.told)
            .into_iter()
            .filter(|(file, _)| fresh(file));
        self.told = kept.chain(faults).collect();
    }

    /// What makes a fault another one: the text, and the bytes that it is about.
    fn identity(&self, refused: &Refused) -> String {
        let sha256 = self
            .files
            .get(&refused.file)
            .and_then(|entry| entry.sha256.as_deref());
        format!("{}\n{}", sha256.unwrap_or_default(), refused.message)
    }
}
