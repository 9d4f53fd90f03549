//! A replica's life: the gate, the election, and a term whenever it wins.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::database::session::Database;
use crate::error::{Exit, Failure};
use crate::leadership::clock::BootClock;
use crate::leadership::role::Timing;
use crate::leadership::{self, Handle, Role};
use crate::telemetry::metrics::Metrics;

use super::caught_up;
use super::gate::{self, Databases};
use super::leading::Parts;
use super::plugins::LoadedPlugins;
use super::presence;
use super::standing::Standing;
use super::{Start, refused_plugins};

/// A standby that nobody of its group outranks for longer than this says so.
const DENIED_LIMIT: Duration = Duration::from_secs(60);

/// How often projections that cannot begin are looked for.
const REFUSED_INTERVAL: Duration = Duration::from_millis(200);

/// More than the election itself grants for a drain, so that it is never cut short from here.
const END_GRACE: Duration = Duration::from_secs(10);

pub(super) struct Replica {
    pub(super) config: Arc<Config>,
    pub(super) loaded: LoadedPlugins,
    pub(super) metrics: Metrics,
    pub(super) standing: Standing,
    pub(super) shutdown: CancellationToken,
}

impl Replica {
    pub(super) async fn run(self, start: &Start) -> Result<(), Failure> {
        let databases = Databases::of(&self.config)?;
        let whole = self.until_shutdown(&databases);
        if !start.until_caught_up {
            return whole.await;
        }
        let offered = self.loaded.roster().all();
        let names: Vec<String> = offered.iter().map(|known| known.name.clone()).collect();
        let waiting = caught_up::wait(
            &self.config,
            &databases,
            &names,
            caught_up::Goal::Head,
            start.timeout,
        );
        let outcome = {
            tokio::pin!(whole);
            tokio::select! {
                ended = &mut whole => return ended,
                refused = self.refused() => {
                    self.shutdown.cancel();
                    whole.await?;
                    Err(refused)
                }
                outcome = waiting => {
                    self.shutdown.cancel();
                    whole.await?;
                    outcome
                }
            }
        };
        outcome?;
        refused_plugins(&self.loaded).map_or(Ok(()), Err)
    }

    /// Resolves when a projection can never begin: nobody should wait for it.
    async fn refused(&self) -> Failure {
        let mut every = tokio::time::interval(REFUSED_INTERVAL);
        loop {
            every.tick().await;
            let all = self.loaded.roster().all();
            if let Some(why) = all.iter().find_map(|known| known.progress.refused()) {
                return Failure::from_text(Exit::Config, &why);
            }
        }
    }

    async fn until_shutdown(&self, databases: &Databases) -> Result<(), Failure> {
        gate::pass(&self.config, databases, &self.standing, &self.shutdown).await?;
        if self.shutdown.is_cancelled() {
            return Ok(());
        }
        let clock = Arc::new(BootClock);
        let options = self.election(databases)?;
        let (election, thread) = leadership::spawn(options, self.shutdown.clone(), clock)
            .map_err(|error| Failure::new(Exit::Config, error.to_string()))?;
        self.standing.set_election(election.clone());
        let parts = Parts::new(
            &self.config,
            databases.clone(),
            &self.loaded,
            self.metrics.clone(),
            self.standing.clone(),
        );
        let silent = self.shutdown.child_token();
        let telling = tokio::spawn({
            let (config, database) = (self.config.clone(), databases.read_model.clone());
            let (loaded, silent) = (self.loaded.clone(), silent.clone());
            async move { presence::tell(&config, &database, &loaded, &silent).await }
        });
        let refused = self.follow(&election, &parts).await;
        silent.cancel();
        if tokio::time::timeout(
            self.config.host.drain_timeout + END_GRACE,
            election.stopped(),
        )
        .await
        .is_err()
        {
            return Err(Failure::new(
                Exit::Failed,
                "the leader lock was not given back in time; the server frees it",
            ));
        }
        // Bounded by itself; a panic in it changes nothing any more.
        let _told = telling.await;
        // The thread has said that it holds nothing any more.
        drop(thread);
        refused.map_or(Ok(()), Err)
    }

    /// Works while leading, until the election ends.
    async fn follow(&self, election: &Handle, parts: &Parts) -> Option<Failure> {
        let mut role = election.role();
        let mut refused = None;
        loop {
            let now = role.borrow_and_update().clone();
            self.metrics.leads(matches!(now, Role::Leading(_)));
            match now {
                Role::Stopped => return refused,
                Role::Leading(leadership) => {
                    let term = leadership.term;
                    let cancelled = self.shutdown.child_token();
                    let working = parts.lead(leadership, election, cancelled.clone());
                    tokio::pin!(working);
                    loop {
                        tokio::select! {
                            () = &mut working => break,
                            changed = role.changed() => {
                                let still = changed.is_ok()
                                    && role.borrow().leadership().is_some_and(|leadership| leadership.term == term);
                                if !still {
                                    cancelled.cancel();
                                    let drain = self.config.host.drain_timeout;
                                    if tokio::time::timeout(drain, &mut working).await.is_err() {
                                        tracing::warn!(%term, "running batches did not end in time; their sessions close");
                                    }
                                    break;
                                }
                            }
                        }
                    }
                    election.drained(term);
                    self.metrics.leads(false);
                }
                Role::Follower(denied) => {
                    self.metrics.denied(denied.overdue);
                    // What a person has to mend ends the process, so that its supervisor can show it.
                    if let Some(refusal) = denied.refusal
                        && let Some(exit) = refusal.exit
                    {
                        refused = Some(Failure::coded(exit, refusal.code, refusal.message));
                        self.shutdown.cancel();
                    }
                }
                // A term so short that its work never began here has nothing to end.
                Role::Draining { term, .. } => election.drained(term),
                Role::Claiming => {}
            }
            // Nothing new may have happened while the term was ended: look before waiting.
            let unchanged = matches!(role.has_changed(), Ok(false));
            if unchanged && role.changed().await.is_err() {
                return refused;
            }
        }
    }

    fn election(&self, databases: &Databases) -> Result<leadership::Options, Failure> {
        let config = &self.config;
        let leader = &config.leader;
        let lock_database: Database = config.leader_database()?;
        Ok(leadership::Options {
            group: leader.group.clone(),
            node: config.host.node.clone(),
            host: gethostname::gethostname().to_string_lossy().into_owned(),
            key: leader.key,
            projection: None,
            lock_database,
            read_model: databases.read_model.clone(),
            control_schema: config.read_model.control_schema.clone(),
            timing: Timing {
                retry_interval: leader.retry_interval,
                heartbeat_interval: leader.heartbeat_interval,
                local_lease: leader.local_lease,
                server_lease: leader.server_lease,
                stall_limit: leader.stall_limit,
                drain_timeout: config.host.drain_timeout,
                ..Timing::default()
            },
            denied_limit: DENIED_LIMIT,
        })
    }
}
