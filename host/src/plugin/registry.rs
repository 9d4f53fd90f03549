//! The folder and the configured files, as plugins that are ready to run, and files that are not, each with
//! the reason.
//!
//! Promises: every file is judged on its own; of two files that claim one name or one table neither is used,
//! since the host cannot know which is meant, unless one of them was there before the other. What is configured for
//! a projection holds for every file that calls itself so, and no other file stands in for a configured one. A
//! [`Plugin`] is a value: a changed file becomes a new one, and the projection swaps it between two batches.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wasmtime::component::Component;

use super::apart;
use super::cache::{self, Cache};
use super::error::{Error, reason, shown};
use super::file;
use super::manifest::Manifest;
use crate::error::Code;
use crate::guest::{Engine, Guest, Limits};

pub(super) mod folder;
mod parallel;
mod shelf;
mod slots;

pub use shelf::{Change, Shelf};
use slots::Slots;

/// The configuration that a plugin gets when it has none.
pub const NO_CONFIG: &str = "{}";

/// Where plugins are, and what they may use.
#[derive(Debug, Clone)]
pub struct Options {
    /// Every `*.wasm` here is a projection.
    pub dir: PathBuf,
    /// Where compiled code is kept; none keeps none.
    pub cache_dir: Option<PathBuf>,
    /// Bounds of a call.
    pub limits: Limits,
    /// What the configuration says of single projections.
    pub projections: Vec<Declared>,
    /// The program `projector-host`, which loads each file in a process of its own: [`super::apart::this_program`] in
    /// that program. None loads within this process, where a hostile file can end it.
    pub program: Option<PathBuf>,
}

/// What the configuration says of one projection.
#[derive(Debug, Clone)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// Its file; relative to the folder, `NAME.wasm` when absent.
    pub component: Option<PathBuf>,
    /// The digest that the file must have.
    pub sha256: Option<String>,
    /// JSON text for `describe`.
    pub config_json: String,
    /// Its own bounds of a call.
    pub limits: Option<Limits>,
}

/// The plugin folder of a replica, as replicas tell each other of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folder {
    /// The host that it lies on.
    pub host: String,
    /// Its path.
    pub dir: String,
}

/// A plugin that is ready to run; a clone is the same plugin.
#[derive(Debug, Clone)]
pub struct Plugin {
    /// Its file; the name of its projection when it comes from the component store.
    pub file: PathBuf,
    /// Whether it comes from the component store, not from a file.
    pub kept: bool,
    /// Digest of the file.
    pub sha256: String,
    /// The file's bytes, which are kept with each generation.
    pub bytes: Arc<[u8]>,
    /// Its code.
    pub guest: Guest,
    /// What it says of itself.
    pub manifest: Manifest,
    /// Its configuration.
    pub config_json: String,
    /// Bounds of its calls.
    pub limits: Limits,
}

/// A file that is not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The file.
    pub file: PathBuf,
    /// The page that explains it.
    pub code: Code,
    /// What is wrong and what to do, beginning with the file's name.
    pub message: String,
}

/// What came of all files.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// Plugins that are ready, by name.
    pub plugins: Vec<Arc<Plugin>>,
    /// Files that are not used, by file name.
    pub refused: Vec<Refused>,
    /// Projections whose file is there, but cannot be used: configured for such a file, or called like it.
    pub broken: Vec<String>,
}

/// Loads plugins with one engine and one cache; for the start, for a changed file, and for code that was kept
/// with a generation.
#[derive(Debug)]
pub struct Loader {
    engine: Engine,
    cache: Cache,
    options: Options,
    folder: Folder,
    processes: Slots,
}

/// Loads every plugin there is, once.
#[must_use]
pub fn load_all(engine: &Engine, options: &Options) -> Loaded {
    let mut shelf = Shelf::new(Arc::new(Loader::new(engine, options)));
    shelf.take_all();
    shelf.loaded()
}

impl Loader {
    /// Opens the cache; loads nothing yet.
    #[must_use]
    pub fn new(engine: &Engine, options: &Options) -> Self {
        Self {
            engine: engine.clone(),
            cache: Cache::open(options.cache_dir.as_deref()),
            options: options.clone(),
            folder: Folder {
                host: gethostname::gethostname().to_string_lossy().into_owned(),
                dir: options.dir.display().to_string(),
            },
            processes: Slots::default(),
        }
    }

    /// Runs the plugins.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What the configuration pins for a projection.
    #[must_use]
    pub fn pinned(&self, name: &str) -> Option<&str> {
        self.declared(name)?.sha256.as_deref()
    }

    /// The folder, as replicas tell each other of it.
    #[must_use]
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Loads code that was kept for a projection. Blocks; on a thread of its own.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn load_kept(&self, name: &str, bytes: &[u8]) -> Result<Plugin, Error> {
        let declared = self.declared(name);
        let load = |file: &Path| {
            let plugin = self.load_as(file, bytes.to_vec(), declared)?;
            Ok(Plugin {
                kept: true,
                ..plugin
            })
        };
        let mut loaded = parallel::map(&self.engine, &[PathBuf::from(name)], load);
        loaded
            .pop()
            .unwrap_or_else(|| Err(Error::Bug("no thread loaded it".to_owned())))
    }

    /// Loads the bytes of a file. Runs the plugin's `describe`, so it needs a thread with a deep stack.
    ///
    /// # Errors
    /// Why they are not used.
    pub fn load_bytes(&self, file: &Path, bytes: Vec<u8>) -> Result<Plugin, Error> {
        let by_file = self
            .options
            .projections
            .iter()
            .find(|declared| folder::resolved(&self.options.dir, declared) == file);
        self.load_as(file, bytes, by_file)
    }

    fn load_as(
        &self,
        file: &Path,
        bytes: Vec<u8>,
        by_file: Option<&Declared>,
    ) -> Result<Plugin, Error> {
        let sha256 = file::sha256(&bytes);
        // A pin is checked before the bytes are so much as parsed.
        if let Some(declared) = by_file {
            pin(declared, &sha256)?;
        }
        let config = by_file.map_or(NO_CONFIG, |declared| declared.config_json.as_str());
        let limits = self.limits(by_file);
        let compiled = self.compiled(&sha256, &bytes, config, limits)?;
        let guest = Guest::load(&self.engine, &compiled)?;
        let mut manifest = describe(&guest, config, limits);
        let by_name = match (&manifest, by_file) {
            (Ok(manifest), None) => self.declared(&manifest.name),
            _ => None,
        };
        if let Some(declared) = by_name {
            pin(declared, &sha256)?;
            manifest = describe(&guest, &declared.config_json, self.limits(by_name));
        }
        let manifest = manifest?;
        let declared = by_file.or(by_name);
        if let Some(declared) = declared.filter(|declared| declared.name != manifest.name) {
            return Err(Error::OtherName {
                configured: declared.name.clone(),
                described: manifest.name,
            });
        }
        if !guest.unavailable_imports().is_empty() {
            tracing::warn!(
                projection = manifest.name,
                imports = guest.unavailable_imports().join(", "),
                "the plugin imports what no projection has; calling it is a trap"
            );
        }
        Ok(Plugin {
            file: file.to_owned(),
            kept: false,
            sha256,
            bytes: bytes.into(),
            guest: guest.named(&manifest.name),
            config_json: declared
                .map_or(NO_CONFIG, |d| d.config_json.as_str())
                .to_owned(),
            limits: self.limits(declared).clone(),
            manifest,
        })
    }

    /// Code that was kept, or compiled now.
    fn compiled(
        &self,
        sha256: &str,
        bytes: &[u8],
        config_json: &str,
        limits: &Limits,
    ) -> Result<Component, Error> {
        file::bounded(bytes)?;
        if let Some(kept) = self.cache.find(&self.engine, sha256) {
            return Ok(kept);
        }
        let refused = |error: wasmtime::Error| Error::Compile(reason(&error));
        let Some(program) = &self.options.program else {
            let component = file::component(&self.engine, bytes)?;
            let compiled = Component::from_binary(self.engine.wasmtime(), &component.bytes)
                .map_err(refused)?;
            if self.cache.is_on() {
                let code = compiled.serialize().map_err(refused)?;
                self.cache.keep(&self.engine, sha256, &code);
            }
            return Ok(compiled);
        };
        let loaded = {
            let _slot = self.processes.take();
            apart::load(program, &self.engine, config_json, limits, bytes)?
        };
        self.cache.keep(&self.engine, sha256, &loaded.code);
        match loaded.described {
            Some(failed) => Err(Error::Relayed(failed)),
            None => cache::fresh(&self.engine, &loaded.code).map_err(refused),
        }
    }

    fn limits<'a>(&'a self, declared: Option<&'a Declared>) -> &'a Limits {
        declared
            .and_then(|declared| declared.limits.as_ref())
            .unwrap_or(&self.options.limits)
    }

    fn declared(&self, name: &str) -> Option<&Declared> {
        let mut declared = self.options.projections.iter();
        declared.find(|declared| declared.name == name)
    }

    /// Why a file that calls itself like this projection is not used: the configuration means another one. Where it
    /// names none, any file will do while there is no `NAME.wasm`.
    fn stands_in(&self, name: &str, file: &Path, known: impl Fn(&Path) -> bool) -> Option<Error> {
        let declared = self.declared(name)?;
        let configured = folder::resolved(&self.options.dir, declared);
        let meant = declared.component.is_some() || known(&configured) || configured.exists();
        (meant && configured != *file).then(|| Error::StandIn {
            name: name.to_owned(),
            configured,
        })
    }

    /// Configured projections of which no file was found, good or bad.
    fn missing(
        &self,
        plugins: &[Claimant],
        failed: &BTreeMap<&PathBuf, &Error>,
    ) -> Vec<(PathBuf, Error)> {
        let found = |wanted: &str| {
            plugins
                .iter()
                .any(|claimant| claimant.plugin.manifest.name == wanted)
                || failed
                    .values()
                    .any(|error| matches!(error, Error::Pin { name, .. } if name == wanted))
        };
        let mut owners: BTreeMap<PathBuf, &str> = BTreeMap::new();
        self.options
            .projections
            .iter()
            .map(|declared| (folder::resolved(&self.options.dir, declared), declared))
            .filter_map(|(file, declared)| {
                let name = declared.name.clone();
                // The first one is the one whose configuration the file is loaded with.
                let owner = *owners.entry(file.clone()).or_insert(&declared.name);
                if owner != name {
                    let owner = owner.to_owned();
                    return Some((file, Error::Shared { name, owner }));
                }
                if file.exists() {
                    return None;
                }
                match declared.component {
                    Some(_) => Some((file, Error::NoComponent { name })),
                    None => (!found(&name)).then_some((file, Error::Missing { name })),
                }
            })
            .collect()
    }
}

impl Loaded {
    /// The plugin of this name.
    #[must_use]
    pub fn plugin(&self, name: &str) -> Option<&Arc<Plugin>> {
        self.plugins
            .iter()
            .find(|plugin| plugin.manifest.name == name)
    }
}

/// How a refusal is told.
#[must_use]
pub fn refused(file: &Path, error: &Error) -> Refused {
    Refused {
        file: file.to_owned(),
        code: error.code(),
        message: format!("{}: {error}", shown(file)),
    }
}

fn pin(declared: &Declared, found: &str) -> Result<(), Error> {
    match &declared.sha256 {
        Some(pinned) if !pinned.eq_ignore_ascii_case(found) => Err(Error::Pin {
            name: declared.name.clone(),
            pinned: pinned.clone(),
            found: found.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn describe(guest: &Guest, config_json: &str, limits: &Limits) -> Result<Manifest, Error> {
    let description = guest
        .describe(config_json, limits)
        .map_err(Error::Describe)?;
    Manifest::check(&description).map_err(Error::Manifest)
}

/// A plugin that claims names, and since which look at the files.
#[derive(Debug, Clone)]
struct Claimant {
    plugin: Arc<Plugin>,
    since: u64,
}

/// Takes out every plugin whose name or table another one claims as well, but for one that had it before all
/// others came.
fn unclaimed(claimants: Vec<Claimant>) -> (Vec<Arc<Plugin>>, Vec<(PathBuf, Error)>) {
    let mut claims: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (at, Claimant { plugin, .. }) in claimants.iter().enumerate() {
        let tables: HashSet<&str> = plugin
            .manifest
            .tables
            .iter()
            .map(|t| t.name.as_str())
            .collect();
        let names = tables
            .into_iter()
            .map(|table| format!("the table `{table}`"));
        for claim in names.chain([format!("the projection name `{}`", plugin.manifest.name)]) {
            claims.entry(claim).or_default().push(at);
        }
    }
    let mut errors: HashMap<usize, Error> = HashMap::new();
    for (what, of) in claims.iter().filter(|(_, of)| of.len() > 1) {
        let first = of.iter().map(|&at| claimants[at].since).min();
        let earliest: Vec<usize> = of
            .iter()
            .copied()
            .filter(|&at| Some(claimants[at].since) == first)
            .collect();
        for &at in of {
            if earliest == [at] {
                continue;
            }
            let other = earliest
                .iter()
                .chain(of)
                .find(|other| **other != at)
                .unwrap_or(&at);
            errors.entry(at).or_insert_with(|| Error::Claimed {
                what: what.clone(),
                other: claimants[*other].plugin.file.clone(),
            });
        }
    }
    let mut kept = Vec::new();
    let mut refused = Vec::new();
    for (at, Claimant { plugin, .. }) in claimants.into_iter().enumerate() {
        match errors.remove(&at) {
            Some(error) => refused.push((plugin.file.clone(), error)),
            None => kept.push(plugin),
        }
    }
    (kept, refused)
}
