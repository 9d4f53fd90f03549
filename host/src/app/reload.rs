//! Changes while the replica runs: plugin files, the configuration file, SIGHUP. They take one path: load, validate,
//! compile, then swap.
//!
//! Promises: on a fault everything that runs goes on, and the fault is told once. Compiling happens beside the
//! running plugins, never on the async workers. Must never: apply half of a configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::signal::unix::Signal;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::config::{self, Config, Faults, Watch};
use crate::plugin::watch::{
    Hints, LOOK_INTERVAL, Looked, POLL_INTERVAL, RESCAN_INTERVAL, Settling, Stamp,
};
use crate::plugin::{Change, Loader, Shelf};
use crate::telemetry::metrics::Metrics;

use super::declared;
use super::plugins::{self, LoadedPlugins};

/// Longest time without a look when nobody watches.
const FOR_EVER: Duration = Duration::from_secs(86_400 * 365);

/// Reads the configuration again, with the environment and flags of the start.
pub type Reread = Arc<dyn Fn() -> Result<config::Loaded, Faults> + Send + Sync>;

/// Takes up changes until shutdown.
pub(super) struct Reload {
    pub(super) plugins: LoadedPlugins,
    pub(super) shelf: Shelf,
    /// The configuration of the start.
    pub(super) config: config::Loaded,
    pub(super) reread: Reread,
    pub(super) watch: Watch,
    pub(super) metrics: Metrics,
}

/// Why a look is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// Somebody sent SIGHUP.
    Asked,
    /// An event, or the time.
    Look,
}

/// What is known from look to look.
struct Looking {
    reload: Reload,
    hints: Option<Hints>,
    /// Whether events are heard in every folder.
    hears: bool,
    /// The configuration file.
    settling: Settling,
    seen: Option<Option<Stamp>>,
    /// A configuration that could not be applied; it is tried again when files change.
    refused: Option<String>,
}

impl Reload {
    pub(super) async fn run(self, mut hangup: Signal, shutdown: CancellationToken) {
        let (heard, mut hints_heard) = mpsc::channel::<()>(1);
        let watch = self.watch;
        let hints = (watch == Watch::On).then(|| {
            Hints::new(move || {
                // One that waits already says the same.
                let _ = heard.try_send(());
            })
        });
        let mut looking = Looking::new(self, hints);
        // The first look begins to listen.
        let mut moving = watch != Watch::Off;
        loop {
            let wait = match watch {
                _ if moving => LOOK_INTERVAL,
                Watch::Off => FOR_EVER,
                Watch::On if looking.hears => RESCAN_INTERVAL,
                Watch::On | Watch::Poll => POLL_INTERVAL,
            };
            let why = tokio::select! {
                () = shutdown.cancelled() => return,
                Some(()) = hangup.recv() => Why::Asked,
                Some(()) = hints_heard.recv() => Why::Look,
                () = tokio::time::sleep(wait) => Why::Look,
            };
            if why == Why::Asked {
                tracing::info!("SIGHUP: looking at the configuration and the plugin files");
            }
            let look = move || {
                let moving = looking.look(why);
                (looking, moving)
            };
            match tokio::task::spawn_blocking(look).await {
                Ok((back, still_moving)) => {
                    looking = back;
                    // Files that changed long ago count as changed just now at the first look.
                    moving = still_moving;
                }
                Err(panic) => {
                    tracing::error!(error = %panic, "taking up changes failed; this is a bug in the host. Plugins go on, \
                                                     but no change is taken up until this replica is restarted");
                    return;
                }
            }
        }
    }
}

impl Looking {
    fn new(reload: Reload, hints: Option<Hints>) -> Self {
        let path = reload.config.path.clone();
        let mut settling = Settling::default();
        let found = Stamp::of_name(&path);
        settling.begin(
            Instant::now(),
            found.map(|stamp| (path, stamp)).into_iter().collect(),
        );
        Self {
            reload,
            hints,
            hears: false,
            settling,
            seen: found,
            refused: None,
        }
    }

    /// Folders in which something may happen.
    fn folders(&self) -> Vec<PathBuf> {
        let config = std::path::absolute(&self.reload.config.path).unwrap_or_default();
        let parent = config.parent().map(Path::to_owned);
        let mut folders = self.reload.shelf.folders();
        folders.extend(parent);
        folders.sort();
        folders.dedup();
        folders
    }

    /// Takes a look at everything; returns whether something still moves. Blocks.
    fn look(&mut self, why: Why) -> bool {
        let (changed, config_moves) = self.config_changed();
        if why == Why::Asked || changed {
            self.configure();
        }
        let (changes, files_move) = self.reload.shelf.look();
        if !changes.is_empty() {
            self.publish(&changes);
            if self.refused.is_some() {
                self.configure();
            }
        } else if self.reload.shelf.lost_some() {
            self.publish(&[]);
        }
        let folders = self.folders();
        if let Some(hints) = &mut self.hints {
            hints.listen(&folders);
            self.hears = hints.hears(&folders);
        }
        config_moves || files_move
    }

    fn publish(&self, changes: &[Change]) {
        let plugins = &self.reload.plugins;
        plugins.publish(&plugins.config(), &self.reload.shelf, changes, true);
    }

    /// Whether the configuration file is another one than before, and whether it still moves.
    fn config_changed(&mut self) -> (bool, bool) {
        if self.reload.watch == Watch::Off {
            return (false, false);
        }
        let path = &self.reload.config.path;
        let found = Stamp::of_name(path).map(|stamp| (path.clone(), stamp));
        let Looked { still, moving } = self
            .settling
            .look(Instant::now(), &found.into_iter().collect());
        let now = still.get(path).map(|still| still.stamp);
        let changed = now.is_some() && now != self.seen;
        if changed {
            self.seen = now;
        }
        (changed, !moving.is_empty())
    }

    /// Reads the configuration and applies what can be applied while the replica runs.
    fn configure(&mut self) {
        let loaded = match (self.reload.reread)() {
            Ok(loaded) => loaded,
            Err(faults) => return self.refuse(&faults.to_string()),
        };
        let old = self.reload.plugins.config();
        let (applied, restart) = changed_keys(&self.reload.config, &loaded);
        if !restart.is_empty() {
            tracing::warn!(
                keys = restart.join(", "),
                "these changes of the configuration take effect when this replica is restarted"
            );
        }
        if applied.is_empty() {
            self.refused = None;
            self.reload.config = loaded;
            return;
        }
        let config = Arc::new(merged(&old, &loaded.config));
        let loader = Arc::new(Loader::new(
            self.reload.plugins.engine(),
            &plugins::options(&config),
        ));
        let mut shelf = Shelf::after(&self.reload.shelf, loader);
        let changes = shelf.take_all();
        let mut lost = lost(&self.reload.shelf, &shelf);
        lost.extend(self.objections(&config, &shelf));
        if !lost.is_empty() {
            return self.refuse(&lost.join("\n"));
        }
        for warning in &loaded.warnings {
            tracing::warn!(code = %warning.code, place = %warning.place, "{}", warning.message);
        }
        self.refused = None;
        self.reload.config = loaded;
        self.reload.shelf = shelf;
        self.reload
            .plugins
            .publish(&config, &self.reload.shelf, &changes, false);
        tracing::info!(
            keys = applied.join(", "),
            "the changed configuration is applied"
        );
    }

    /// For development everything begins anew, so nothing stands against it.
    fn objections(&self, config: &Config, shelf: &Shelf) -> Vec<String> {
        let known = self.reload.plugins.roster().all();
        if known.iter().any(|known| known.dev) {
            return Vec::new();
        }
        declared::objections(config, &self.reload.shelf.loaded(), &shelf.loaded())
    }

    fn refuse(&mut self, why: &str) {
        if self.refused.as_deref() == Some(why) {
            return;
        }
        self.metrics().reload_failed();
        tracing::error!(
            error = why,
            "the changed configuration is refused; the old one stays"
        );
        self.refused = Some(why.to_owned());
    }

    fn metrics(&self) -> &Metrics {
        &self.reload.metrics
    }
}

/// Keys that differ: those that can be applied, and those that need a restart.
fn changed_keys(before: &config::Loaded, after: &config::Loaded) -> (Vec<String>, Vec<String>) {
    let values = |loaded: &config::Loaded| -> std::collections::BTreeMap<String, String> {
        let settings = loaded.settings().into_iter();
        settings
            .map(|setting| (setting.key, setting.value.to_string()))
            .collect()
    };
    let (old, new) = (values(before), values(after));
    let keys: std::collections::BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let changed = keys
        .into_iter()
        .filter(|key| old.get(*key) != new.get(*key))
        .cloned();
    changed.partition(|key| {
        let section = ["projection", "defaults.", "plugins."]
            .iter()
            .any(|part| key.starts_with(part));
        section && key != "plugins.watch" && key != "plugins.limits.stack_max"
    })
}

/// What runs from now on: everything that cannot change stays as it was at the start.
fn merged(old: &Config, new: &Config) -> Config {
    let mut config = old.clone();
    config.plugins = new.plugins.clone();
    config.plugins.watch = old.plugins.watch;
    config.plugins.limits.stack_max = old.plugins.limits.stack_max;
    config.defaults = new.defaults.clone();
    config.projection.clone_from(&new.projection);
    config
}

/// Files that could be used before and are refused with another configuration. One that was refused already, and
/// whose former plugin goes on, is no loss: that one is kept. Neither is one in whose place another file is configured.
fn lost(before: &Shelf, after: &Shelf) -> Vec<String> {
    let (before, after) = (before.loaded(), after.loaded());
    let was_good = |file: &Path| {
        let mut plugins = before.plugins.iter();
        plugins.any(|plugin| plugin.file == *file && after.plugin(&plugin.manifest.name).is_none())
            && !before.refused.iter().any(|refused| refused.file == *file)
    };
    let lost = after
        .refused
        .iter()
        .filter(|refused| was_good(&refused.file));
    lost.map(|refused| format!("{}: {}", refused.code, refused.message))
        .collect()
}
