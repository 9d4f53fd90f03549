//! One term: the store is read and all projections run, until the term ends.

use std::sync::Arc;
use std::time::Duration;

use sqlx::{AssertSqlSafe, Row as _};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::config::{self, Config};
use crate::database::connections::Connections;
use crate::database::session::{Purpose, bounded};
use crate::database::template::render;
use crate::event_store::event::Position;
use crate::event_store::inspect;
use crate::event_store::layout::Layout;
use crate::event_store::{self, GapProof, Mark, Options, SourceState, StoreIdentity, preflight};
use crate::leadership::{Handle, Leadership};
use crate::projection::runner::Stopped;
use crate::projection::supervisor::{Shared, Supervisor};
use crate::telemetry::metrics::Metrics;

use super::gate::Databases;
use super::plugins::LoadedPlugins;
use super::standing::{Leading, Standing};

/// Longest wait for the answers that a term begins with.
const BEGIN_TIMEOUT: Duration = Duration::from_secs(10);

/// What a term is made of.
#[derive(Debug, Clone)]
pub(super) struct Parts {
    pub(super) options: Options,
    pub(super) databases: Databases,
    pub(super) shared: Shared,
    pub(super) plugins: LoadedPlugins,
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
        Self {
            options: Options {
                database: databases.event_store.clone(),
                schema: config.event_store.schema.clone(),
                poll_interval: config.event_store.poll_interval,
                notify: config.event_store.notify,
                gap_proof: match config.event_store.gap_proof {
                    config::GapProof::Writers => GapProof::Writers,
                    config::GapProof::AllTransactions => GapProof::AllTransactions,
                },
            },
            shared: Shared {
                write: connections(Purpose::Write, config.host.write_connections_max),
                lookup: connections(Purpose::Lookup, config.host.lookup_connections_max),
                control: config.read_model.control_schema.clone(),
                readers: config.read_model.schema.clone(),
                metrics,
                engine: loaded.engine().clone(),
            },
            databases,
            plugins: loaded.clone(),
            source_errors_max: config.leader.resign_after_source_errors,
            standing,
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
        self.standing.set_leading(None);
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
        let begun = tokio::select! {
            () = cancelled.cancelled() => return Ok(Stopped::Cancelled),
            begun = self.begin() => begun,
        };
        let (store, settled_upto) = begun?;
        tracing::info!(term = %leadership.term, settled_upto = settled_upto.0, "leading");
        let (service, feed) = event_store::Service::new(self.options.clone(), settled_upto);
        let reading = tokio::spawn(service.expecting(store.clone()).run(stop.clone()));
        self.standing.set_leading(Some(Leading {
            feed: feed.clone(),
            roster: self.plugins.roster().clone(),
        }));
        let mark = feed.mark();
        let plugins = self.plugins.clone();
        let supervisor = Supervisor {
            shared: self.shared.clone(),
            roster: plugins.roster().clone(),
            unknown: Arc::new(move |name: &str| plugins.unknown(name)),
            feed,
            store,
            leadership,
            watchdog: election.progress(),
        };
        let supervising = supervisor.run(stop.clone());
        let failing = failing_for(mark, self.source_errors_max);
        tokio::pin!(supervising, reading);
        tokio::select! {
            stopped = &mut supervising => Ok(stopped),
            error = failing => {
                stop.cancel();
                supervising.await;
                Err(format!("the event store could not be read for {:?}: {error}", self.source_errors_max))
            }
            ended = &mut reading => {
                stop.cancel();
                supervising.await;
                match ended {
                    Ok(Ok(())) => Ok(Stopped::Cancelled),
                    Ok(Err(error)) => Err(error.to_string()),
                    Err(panic) => Err(format!("the reader of the event store died: {panic}")),
                }
            }
        }
    }

    /// Which store it is, and how far it is known to be settled.
    async fn begin(&self) -> Result<(StoreIdentity, Position), String> {
        let mut store = self
            .databases
            .event_store
            .connect(&Purpose::Read)
            .await
            .map_err(|error| error.to_string())?;
        let layout = Layout::Projector {
            schema: self.options.schema.clone(),
        };
        let identifying = preflight::identify(&mut store, &layout);
        let identity = tokio::time::timeout(BEGIN_TIMEOUT, identifying)
            .await
            .map_err(|_| "no answer from the event store database".to_owned())?
            .map_err(|error| error.to_string())?;
        let name = self.shared.write.database();
        let mut loan = bounded(name, BEGIN_TIMEOUT, self.shared.write.lend())
            .await
            .map_err(|error| error.to_string())?;
        let statement = render(
            include_str!("../read_model/sql/remembered.sql"),
            &[("control", &self.shared.control)],
        );
        let asking = sqlx::query(AssertSqlSafe(statement))
            .bind(&identity.source)
            .bind(&identity.system_identifier)
            .bind(&identity.timeline)
            .fetch_one(&mut *loan);
        let row = bounded(name, BEGIN_TIMEOUT, asking)
            .await
            .map_err(|error| error.to_string())?;
        loan.give_back();
        let settled: i64 = row.try_get(0).map_err(|error| error.to_string())?;
        let asking = inspect::head(&mut store, &layout);
        let head = tokio::time::timeout(BEGIN_TIMEOUT, asking)
            .await
            .map_err(|_| "no answer from the event store database".to_owned())?
            .map_err(|error| error.to_string())?;
        if Position(settled) > head {
            // Nothing that was proven holds for it; each projection is told by its own last event.
            tracing::error!(
                settled,
                head = head.0,
                "the event store went back behind what was read; it is proven anew"
            );
            return Ok((identity, Position(0)));
        }
        Ok((identity, Position(settled)))
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
            None => {
                if mark.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}
