//! From the configuration to loaded plugins with their settings.

use std::sync::Arc;

use crate::config::{self, Config};
use crate::error::{Exit, Failure};
use crate::guest::engine::{Engine, EngineOptions};
use crate::guest::limits::Limits;
use crate::plugin::{self, Declared, Refused};
use crate::projection::progress::Progress;
use crate::projection::settings::{OnError, Retry, Settings, StartFrom};
use crate::projection::supervisor::Known;

/// Plugins that run, and files that do not.
#[derive(Debug, Clone)]
pub struct LoadedPlugins {
    /// The projections.
    pub projections: Vec<Known>,
    /// Files that were refused, with the reason.
    pub refused: Vec<Refused>,
    /// Runs them.
    pub engine: Engine,
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
pub fn load(config: &Config, dev: bool) -> Result<LoadedPlugins, Failure> {
    let engine = engine(config, dev)?;
    let loaded = plugin::load_all(&engine, &options(config));
    for refused in &loaded.refused {
        tracing::error!(file = %refused.file.display(), code = %refused.code, "a plugin is refused: {}", refused.message);
    }
    if loaded.plugins.is_empty() && loaded.refused.is_empty() {
        tracing::warn!(dir = %config.plugins.dir.display(), "there is no plugin in the folder");
    }
    let projections = loaded
        .plugins
        .into_iter()
        .map(|plugin| {
            tracing::info!(
                projection = plugin.manifest.name,
                version = plugin.manifest.version,
                sha256 = plugin.sha256,
                file = %plugin.file.display(),
                "plugin loaded"
            );
            let settings = settings(config, &plugin.manifest.name);
            Known {
                plugin: Arc::new(plugin),
                settings: Arc::new(settings),
                progress: Progress::default(),
            }
        })
        .collect();
    Ok(LoadedPlugins {
        projections,
        refused: loaded.refused,
        engine,
    })
}

/// A refused file in one line.
#[must_use]
pub fn text(refused: &Refused) -> String {
    format!("{}: {}", refused.file.display(), refused.message)
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
