//! One term: the store is read and all projections run, until the term ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{self, Config};
use crate::database::connections::Connections;
use crate::database::session::Purpose;
use crate::event_store::{GapProof, Mark, Options, SourceState};
use crate::leadership::{Handle, Leadership};
use crate::projection::runner::Stopped;
use crate::projection::supervisor::{Shared, Supervisor};
use crate::telemetry::metrics::Metrics;

use super::gate::Databases;
use super::plugins::LoadedPlugins;
use super::reading::Reading;
use super::standing::{Leading, Standing};

/// How often it is looked whether a store that could be read can be read no longer.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// What a term is made of.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) reading: Reading,
    pub(super) shared: Shared,
    pub(super) plugins: LoadedPlugins,
    /// The projection, when each has a leader of its own.
    pub(super) projection: Option<String>,
    /// The source may fail for so long before somebody else shall try.
    pub(super) source_errors_max: Duration,
    pub(super) standing: Standing,
}

impl Parts {
    pub(super) fn new(
        config: &Config,
        databases: Databases,
        loaded: &LoadedPlugins,
        metrics: Metrics,
        standing: Standing,
    ) -> Self {
        let connections = |purpose, connections_max: u32| {
            Connections::new(
                databases.read_model.clone(),
                purpose,
                connections_max as usize,
            )
        };
        let options = Options {
            database: databases.event_store.clone(),
            schema: config.event_store.schema.clone(),
            poll_interval: config.event_store.poll_interval,
            notify: config.event_store.notify,
            gap_proof: match config.event_store.gap_proof {
                config::GapProof::Writers => GapProof::Writers,
                config::GapProof::AllTransactions => GapProof::AllTransactions,
            },
        };
        let write = connections(Purpose::Write, config.host.write_connections_max);
        let control = config.read_model.control_schema.clone();
        Self {
            reading: Reading::new(options, write.clone(), control.clone(), metrics.of_store()),
            shared: Shared {
                write,
                lookup: connections(Purpose::Lookup, config.host.lookup_connections_max),
                control,
                readers: config.read_model.schema.clone(),
                metrics,
                engine: loaded.engine().clone(),
            },
            projection: None,
            plugins: loaded.clone(),
            source_errors_max: config.leader.resign_after_source_errors,
            standing,
        }
    }

    /// The same for one projection. Sessions and the reader are shared.
    pub(super) fn of(&self, projection: &str) -> Self {
        Self {
            projection: Some(projection.to_owned()),
            ..self.clone()
        }
    }

    /// Leads one term; everything that ran under it has ended when this returns.
    pub(super) async fn lead(
        &self,
        leadership: Leadership,
        election: &Handle,
        cancelled: CancellationToken,
    ) {
        let term = leadership.term;
        match self.term(leadership, election, &cancelled).await {
            Ok(Stopped::Cancelled | Stopped::Changed) => {}
            Ok(Stopped::Fenced) => election.fenced(term),
            Ok(Stopped::Died) => election.resign("a task of a projection died"),
            Err(error) => {
                tracing::error!(%term, error, "cannot work as leader; giving the term up");
                election.resign(error);
            }
        }
        self.standing.set_leading(self.projection.as_deref(), None);
        self.shared.write.close_idle();
        self.shared.lookup.close_idle();
    }

    async fn term(
        &self,
        leadership: Leadership,
        election: &Handle,
        cancelled: &CancellationToken,
    ) -> Result<Stopped, String> {
        let stop = cancelled.child_token();
        let _guard = stop.clone().drop_guard();
        let joined = tokio::select! {
            () = cancelled.cancelled() => return Ok(Stopped::Cancelled),
            joined = self.reading.join() => joined,
        };
        let reading = joined?;
        tracing::info!(term = %leadership.term, projection = self.projection, "leading");
        self.standing.set_leading(
            self.projection.as_deref(),
            Some(Leading {
                feed: reading.feed.clone(),
                roster: self.plugins.roster().clone(),
            }),
        );
        let plugins = self.plugins.clone();
        let supervisor = Supervisor {
            shared: self.shared.clone(),
            roster: plugins.roster().clone(),
            unknown: Arc::new(move |name: &str| plugins.unknown(name)),
            only: self.projection.clone(),
            feed: reading.feed.clone(),
            store: reading.store.clone(),
            leadership,
            watchdog: election.progress(),
        };
        let supervising = supervisor.run(stop.clone());
        let failing = failing_for(reading.feed.mark(), self.source_errors_max);
        tokio::pin!(supervising);
        let why = tokio::select! {
            stopped = &mut supervising => return Ok(stopped),
            error = failing => {
                format!("the event store could not be read for {:?}: {error}", self.source_errors_max)
            }
            error = reading.failed() => error,
        };
        stop.cancel();
        supervising.await;
        Err(why)
    }
}

/// Resolves when the store has been failing for so long: another replica may reach it.
async fn failing_for(mut mark: watch::Receiver<Mark>, limit: Duration) -> String {
    loop {
        let failing = match &mark.borrow_and_update().source {
            SourceState::Ok => None,
            SourceState::Failing { since, error } => {
                Some((since.elapsed().unwrap_or_default(), error.clone()))
            }
        };
        match failing {
            Some((age, error)) if age >= limit => return error,
            Some((age, _)) => {
                // Looked at again when it changes, and when the time is over.
                let _changed = tokio::time::timeout(limit - age, mark.changed()).await;
            }
            // The mark changes with every event: that would wake this task as often, for nothing.
            None => tokio::time::sleep(LOOK_INTERVAL).await,
        }
    }
}
