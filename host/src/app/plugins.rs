//! The plugins of this replica as they are now, from the configuration and the files. Both may change.
//!
//! Promises: everybody sees one state, that of the last change which passed as a whole.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::config::{self, Config};
use crate::error::{Exit, Failure};
use crate::guest::engine::{Engine, EngineOptions};
use crate::guest::limits::Limits;
use crate::plugin::{self, Change, Declared, Loader, Refused, Shelf};
use crate::projection::progress::Progress;
use crate::projection::roster::{Known, Offer, OnChange, Roster};
use crate::projection::settings::{OnError, Retry, Settings, StartFrom};
use crate::telemetry::metrics::Metrics;

/// Plugins that run, and files that do not. A clone is the same.
#[derive(Debug, Clone)]
pub struct LoadedPlugins(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    roster: Roster,
    engine: Engine,
    dev: bool,
    metrics: Metrics,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    config: Arc<Config>,
    loader: Arc<Loader>,
    refused: Vec<Refused>,
    /// Projections whose file is refused.
    broken: Vec<String>,
}

/// What to load, as configured.
#[must_use]
pub fn options(config: &Config) -> plugin::Options {
    plugin::Options {
        dir: config.plugins.dir.clone(),
        cache_dir: config.host.cache_dir.clone(),
        limits: limits(&config.plugins.limits),
        projections: config
            .projection
            .iter()
            .map(|own| {
                let settings = config.projection(&own.name);
                Declared {
                    name: own.name.clone(),
                    component: own.component.as_ref().map(|_| settings.component.clone()),
                    sha256: settings.sha256.clone(),
                    config_json: settings.config_json.clone(),
                    limits: own.limits.as_ref().map(limits),
                }
            })
            .collect(),
        program: plugin::apart::this_program(),
    }
}

/// Starts the engine as configured.
///
/// # Errors
/// When the machine cannot run it.
pub fn engine(config: &Config, dev: bool) -> Result<Engine, Failure> {
    let stack_max = usize::try_from(config.plugins.limits.stack_max.as_u64()).unwrap_or(usize::MAX);
    Engine::new(&EngineOptions { stack_max, dev })
        .map_err(|error| Failure::new(Exit::Failed, error.to_string()))
}

/// Loads every plugin. Blocks: compiling takes a while.
///
/// # Errors
/// When the engine cannot start. A bad file is no error; it stands among the refused.
pub fn load(
    config: &Arc<Config>,
    dev: bool,
    metrics: Metrics,
) -> Result<(LoadedPlugins, Shelf), Failure> {
    let engine = engine(config, dev)?;
    let loader = Arc::new(Loader::new(&engine, &options(config)));
    let mut shelf = Shelf::new(loader.clone());
    let changes = shelf.take_all();
    let loaded = LoadedPlugins(Arc::new(Inner {
        roster: Roster::new(Vec::new()),
        engine,
        dev,
        metrics,
        now: Mutex::new(Now {
            config: config.clone(),
            loader,
            refused: Vec::new(),
            broken: Vec::new(),
        }),
    }));
    loaded.publish(config, &shelf, &changes, false);
    if shelf.loaded().plugins.is_empty() && loaded.refused().is_empty() {
        tracing::warn!(dir = %config.plugins.dir.display(), "there is no plugin in the folder");
    }
    Ok((loaded, shelf))
}

/// A refused file in one line.
#[must_use]
pub fn text(refused: &Refused) -> String {
    format!("{}: {}", refused.code, refused.message)
}

impl LoadedPlugins {
    /// The projections.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.0.roster
    }

    /// Runs them.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.0.engine
    }

    /// Files that are refused, with the reason.
    #[must_use]
    pub fn refused(&self) -> Vec<Refused> {
        self.now().refused.clone()
    }

    /// The configuration that they run with.
    #[must_use]
    pub fn config(&self) -> Arc<Config> {
        self.now().config.clone()
    }

    /// What loads them.
    #[must_use]
    pub fn loader(&self) -> Arc<Loader> {
        self.now().loader.clone()
    }

    /// A projection that is recorded, but of which there is no file here.
    #[must_use]
    pub fn unknown(&self, name: &str) -> Known {
        let now = self.now();
        Known {
            broken: now.broken.iter().any(|broken| broken == name),
            ..self.known(&now.config, &now.loader, name)
        }
    }

    /// Makes the shelf what everybody sees, and tells what changed. `saved` when somebody changed the files while
    /// this replica looked.
    pub fn publish(&self, config: &Arc<Config>, shelf: &Shelf, changes: &[Change], saved: bool) {
        for change in changes {
            self.tell(change);
        }
        let loaded = shelf.loaded();
        let before = self.0.roster.all();
        let offer = |plugin: &Arc<plugin::Plugin>| {
            let same = |known: &&Known| known.name == plugin.manifest.name;
            let old = before
                .iter()
                .find(same)
                .and_then(|known| known.offer.as_ref());
            let old = old.filter(|old| Arc::ptr_eq(&old.plugin, plugin));
            let fresh = changes.iter().find_map(|change| match change {
                Change::Loaded {
                    plugin: loaded,
                    since,
                } if Arc::ptr_eq(loaded, plugin) => Some(*since),
                _ => None,
            });
            Offer {
                plugin: plugin.clone(),
                saved: fresh.filter(|_| saved).or(old.and_then(|old| old.saved)),
            }
        };
        let mut all: Vec<Known> = loaded
            .plugins
            .iter()
            .map(|plugin| Known {
                offer: Some(offer(plugin)),
                ..self.known(config, shelf.loader(), &plugin.manifest.name)
            })
            .collect();
        for name in &loaded.broken {
            match all.iter_mut().find(|known| known.name == *name) {
                Some(known) => known.broken = true,
                None if before.iter().any(|known| known.name == *name) => all.push(Known {
                    broken: true,
                    ..self.known(config, shelf.loader(), name)
                }),
                None => {}
            }
        }
        {
            let mut now = self.now();
            now.config = config.clone();
            now.loader = shelf.loader().clone();
            now.refused = loaded.refused;
            now.broken = loaded.broken;
        }
        self.0.roster.replace(all);
    }

    fn known(&self, config: &Config, loader: &Arc<Loader>, name: &str) -> Known {
        Known {
            name: name.to_owned(),
            offer: None,
            broken: false,
            settings: Arc::new(settings(config, name)),
            on_change: match config.plugins.on_change {
                _ if self.0.dev => OnChange::Rebuild,
                config::OnChange::Refuse => OnChange::Refuse,
                config::OnChange::Continue => OnChange::Continue,
                config::OnChange::Rebuild => OnChange::Rebuild,
            },
            dev: self.0.dev,
            loader: loader.clone(),
            progress: Progress::default(),
        }
    }

    fn tell(&self, change: &Change) {
        match change {
            Change::Loaded { plugin, .. } => {
                self.0.metrics.module_loaded(true);
                tracing::info!(
                    projection = plugin.manifest.name,
                    version = plugin.manifest.version,
                    sha256 = plugin.sha256,
                    file = %plugin.file.display(),
                    "plugin loaded"
                );
            }
            Change::Refused(refused) => {
                self.0.metrics.module_loaded(false);
                tracing::error!(
                    file = %refused.file.display(),
                    code = %refused.code,
                    "a plugin is refused: {}",
                    refused.message
                );
            }
            Change::Gone(file) => {
                tracing::info!(file = %file.display(), "a refused plugin is not in the way any more")
            }
        }
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn settings(config: &Config, name: &str) -> Settings {
    let own = config.projection(name);
    Settings {
        on_error: match own.on_error {
            config::OnError::Stop => OnError::Stop,
            config::OnError::Park => OnError::Park,
            config::OnError::Skip => OnError::Skip,
        },
        retry: Retry {
            attempts_max: own.retry.attempts_max,
            initial: own.retry.initial,
            max: own.retry.max,
        },
        start_from: match own.start_from {
            config::StartFrom::Beginning => StartFrom::Beginning,
            config::StartFrom::Now => StartFrom::Now,
            config::StartFrom::Position(position) => StartFrom::After(position),
        },
        batch_events_max: config.event_store.batch_events_max as usize,
        batch_bytes_max: usize::try_from(config.event_store.batch_bytes_max.as_u64())
            .unwrap_or(usize::MAX),
    }
}

fn limits(limits: &config::Limits) -> Limits {
    Limits {
        memory_max: limits.memory_max.as_u64(),
        call_timeout: limits.call_timeout,
        fuel_max: limits.fuel_max,
        writes_per_batch_max: limits.writes_per_batch_max as usize,
        output_bytes_max: usize::try_from(limits.output_bytes_max.as_u64()).unwrap_or(usize::MAX),
        ..Limits::default()
    }
}
