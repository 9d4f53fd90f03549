//! A replica's life: the gate, the election (one, or one for each projection), and a term whenever it wins.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::config::{Config, LeaderScope};
use crate::database::session::Database;
use crate::error::{Exit, Failure};
use crate::leadership::clock::BootClock;
use crate::leadership::role::Timing;
use crate::leadership::{self, Load, Role};
use crate::telemetry::metrics::Metrics;

use super::caught_up;
use super::gate::{self, Databases};
use super::leading::Parts;
use super::plugins::LoadedPlugins;
use super::standing::{Seat, Standing};
use super::{Start, refused_plugins};

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
    pub(super) seen: Seen,
}

/// What the elections of this replica come to together.
#[derive(Debug, Default)]
pub(super) struct Seen {
    leading: Mutex<BTreeSet<Option<String>>>,
    overdue: Mutex<BTreeSet<Option<String>>>,
}

impl Replica {
    pub(super) async fn run(self, start: &Start) -> Result<(), Failure> {
        let databases = Databases::of(&self.config)?;
        let whole = self.until_shutdown(&databases);
        if !start.until_caught_up {
            return whole.await;
        }
        let names: Vec<String> = self
            .loaded
            .projections
            .iter()
            .map(|known| known.plugin.manifest.name.clone())
            .collect();
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
            let why = self
                .loaded
                .projections
                .iter()
                .find_map(|known| known.progress.refused());
            if let Some(why) = why {
                return Failure::new(Exit::Config, why);
            }
        }
    }

    async fn until_shutdown(&self, databases: &Databases) -> Result<(), Failure> {
        gate::pass(&self.config, databases, &self.standing, &self.shutdown).await?;
        if self.shutdown.is_cancelled() {
            return Ok(());
        }
        let parts = Parts::new(
            &self.config,
            databases.clone(),
            &self.loaded,
            self.metrics.clone(),
            self.standing.clone(),
        );
        let seats = match self.config.leader.scope {
            LeaderScope::Host => vec![parts],
            LeaderScope::Projection => {
                let known = self.loaded.projections.iter();
                known.map(|known| parts.of(known)).collect()
            }
        };
        let load = Load::default();
        let mut working = Vec::with_capacity(seats.len());
        for parts in seats {
            let seat = self.compete(databases, parts.projection.clone(), &load)?;
            working.push(async move {
                let refused = self.follow(&seat, &parts).await;
                let limit = self.config.host.drain_timeout + END_GRACE;
                let stopped = tokio::time::timeout(limit, seat.election.stopped()).await;
                (refused, stopped.is_ok())
            });
        }
        if working.is_empty() {
            // Nothing to lead: it answers HTTP and says which plugins were refused.
            self.shutdown.cancelled().await;
        }
        for (refused, stopped) in futures_util::future::join_all(working).await {
            if !stopped {
                return Err(Failure::new(
                    Exit::Failed,
                    "the leader lock was not given back in time; the server frees it",
                ));
            }
            refused.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Enters the election of everything, or of one projection.
    fn compete(
        &self,
        databases: &Databases,
        projection: Option<String>,
        load: &Load,
    ) -> Result<Seat, Failure> {
        let options = self.election(databases, projection.clone(), load.clone())?;
        // Its thread ends with the election, which says so itself.
        let (election, _thread) =
            leadership::spawn(options, self.shutdown.clone(), Arc::new(BootClock))
                .map_err(|error| Failure::new(Exit::Config, error.to_string()))?;
        let seat = Seat {
            projection,
            election,
        };
        self.standing.add_seat(seat.clone());
        Ok(seat)
    }

    /// Counts and shows whether this replica leads.
    fn leads(&self, seat: &Seat, parts: &Parts, leads: bool) {
        let all = note(&self.seen.leading, seat, leads);
        self.metrics.leads(all);
        for known in &parts.projections {
            self.metrics
                .leads_projection(&known.plugin.manifest.name, leads);
        }
    }

    /// Works while leading, until the election ends.
    async fn follow(&self, seat: &Seat, parts: &Parts) -> Option<Failure> {
        let election = &seat.election;
        let mut role = election.role();
        let mut refused = None;
        loop {
            let now = role.borrow_and_update().clone();
            self.leads(seat, parts, matches!(now, Role::Leading(_)));
            let overdue = matches!(&now, Role::Follower(denied) if denied.overdue);
            self.metrics.denied(note(&self.seen.overdue, seat, overdue));
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
                    self.leads(seat, parts, false);
                }
                Role::Follower(denied) => {
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

    fn election(
        &self,
        databases: &Databases,
        projection: Option<String>,
        load: Load,
    ) -> Result<leadership::Options, Failure> {
        let config = &self.config;
        let leader = &config.leader;
        let lock_database: Database = config.leader_database()?;
        Ok(leadership::Options {
            group: leader.group.clone(),
            node: config.host.node.clone(),
            host: gethostname::gethostname().to_string_lossy().into_owned(),
            key: leader.key,
            projection,
            load,
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
            denied_limit: leader.denied_limit,
            metrics: self.metrics.of_leader(),
        })
    }
}

/// Notes whether it is so for this seat; says whether it is so for any.
fn note(seats: &Mutex<BTreeSet<Option<String>>>, seat: &Seat, so: bool) -> bool {
    let mut seats = seats.lock().unwrap_or_else(PoisonError::into_inner);
    match so {
        true => seats.insert(seat.projection.clone()),
        false => seats.remove(&seat.projection),
    };
    !seats.is_empty()
}
