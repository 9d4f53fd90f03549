//! Builds every component, wires handles, runs, drains. The one place that knows them all.
//!
//! A replica goes through a gate (both databases reachable, migrated and readable), then takes part in the
//! election for as long as it lives, and projects while it leads. HTTP answers from the first moment on.

pub mod caught_up;
mod declared;
pub mod gate;
mod leading;
pub mod plugins;
mod presence;
mod reading;
pub mod reload;
pub mod replica;
mod service_manager;
pub mod standing;

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::config::{Faults, Loaded, Watch};
use crate::error::{Exit, Failure};
use crate::http;
use crate::telemetry::metrics::Metrics;

use plugins::LoadedPlugins;
use reload::{Reload, Reread};
use replica::Replica;
use standing::Standing;

/// How a replica is started.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// End when every projection has reached the head that was seen.
    pub until_caught_up: bool,
    /// Give up after this long.
    pub timeout: Option<Duration>,
    /// For development.
    pub dev: bool,
}

/// Runs a replica until it is told to end. `reread` gives the configuration as it is then.
///
/// # Errors
/// When it cannot start, or ends in another way than it was asked to.
pub async fn run(loaded: Loaded, reread: Reread, start: Start) -> Result<(), Failure> {
    let config = Arc::new(loaded.config.clone());
    let faults = config.secret_faults();
    if !faults.is_empty() {
        return Err(Faults(faults).into());
    }
    let mut terminate = signal(SignalKind::terminate()).map_err(unstarted)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(unstarted)?;
    let hangup = signal(SignalKind::hangup()).map_err(unstarted)?;
    let metrics = Metrics::new();
    let standing = Standing::default();
    let shutdown = CancellationToken::new();
    let served = http::serve(&config, metrics.clone(), standing.clone(), shutdown.clone()).await?;
    tracing::info!(address = %served.address, node = config.host.node, "projector-host is up; HTTP listens");
    let ticking = tokio::spawn(tick(standing.clone(), shutdown.clone()));
    let telling = tokio::spawn(service_manager::run(standing.clone(), shutdown.clone()));
    let running = async {
        let loading = (Arc::clone(&config), start.dev, metrics.clone());
        let read =
            tokio::task::spawn_blocking(move || plugins::load(&loading.0, loading.1, loading.2));
        let read = tokio::select! {
            () = shutdown.cancelled() => return Ok(()),
            read = read => read.map_err(|error| Failure::new(Exit::Bug, error.to_string()))?,
        };
        let (plugins, shelf) = read?;
        standing.plugins_loaded(&plugins);
        let reload = Reload {
            plugins: plugins.clone(),
            shelf,
            watch: match config.plugins.watch {
                Watch::Off if start.dev => Watch::On,
                watch => watch,
            },
            config: loaded,
            reread,
            metrics: metrics.clone(),
        };
        let reloading = tokio::spawn(reload.run(hangup, shutdown.clone()));
        let replica = Replica {
            config,
            loaded: plugins,
            metrics,
            standing: standing.clone(),
            shutdown: shutdown.clone(),
            seen: replica::Seen::default(),
        };
        let ended = replica.run(&start).await;
        reloading.abort();
        ended
    };
    let mut running = std::pin::pin!(running);
    let ended = tokio::select! {
        ended = &mut running => ended,
        _ = terminate.recv() => draining(&shutdown, &mut running, &mut terminate, &mut interrupt).await,
        _ = interrupt.recv() => draining(&shutdown, &mut running, &mut terminate, &mut interrupt).await,
    };
    shutdown.cancel();
    ticking.abort();
    // It ends by itself, with its last word.
    let _told = telling.await;
    served.ended().await;
    ended
}

async fn draining(
    shutdown: &CancellationToken,
    running: &mut (impl Future<Output = Result<(), Failure>> + Unpin),
    terminate: &mut tokio::signal::unix::Signal,
    interrupt: &mut tokio::signal::unix::Signal,
) -> Result<(), Failure> {
    tracing::info!("told to end; the running batches end first (a second signal ends at once)");
    shutdown.cancel();
    tokio::select! {
        ended = running => ended,
        _ = terminate.recv() => Err(Failure::new(Exit::Failed, "ended at once by a second signal")),
        _ = interrupt.recv() => Err(Failure::new(Exit::Failed, "ended at once by a second signal")),
    }
}

/// Shows that the runtime still runs tasks; `/livez` looks at it.
async fn tick(standing: Standing, shutdown: CancellationToken) {
    let mut every = tokio::time::interval(Duration::from_secs(1));
    loop {
        tokio::select! {
            () = shutdown.cancelled() => return,
            _ = every.tick() => standing.ticked(),
        }
    }
}

fn unstarted(error: std::io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot start: {error}"))
}

/// A refusal of all plugins together, for those who wait for every projection.
fn refused_plugins(loaded: &LoadedPlugins) -> Option<Failure> {
    let refused = loaded.refused();
    let all: Vec<String> = refused.iter().map(plugins::text).collect();
    (!all.is_empty()).then(|| Failure::from_text(Exit::Config, &all.join("\n")))
}
