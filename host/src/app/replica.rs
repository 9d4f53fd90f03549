//! A replica's life: the gate, the election (one, or one for each projection), and a term whenever it wins.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, LeaderScope};
use crate::database::session::{Database, Purpose, bounded};
use crate::error::{Exit, Failure};
use crate::leadership::clock::BootClock;
use crate::leadership::role::Timing;
use crate::leadership::{self, Load, Role};
use crate::read_model::control::Control;
use crate::telemetry::metrics::Metrics;

use super::caught_up::{self, Who};
use super::gate::{self, Databases};
use super::leading::Parts;
use super::plugins::LoadedPlugins;
use super::presence;
use super::standing::{Seat, Standing};
use super::{Start, refused_plugins};

/// How often projections that cannot begin are looked for.
const REFUSED_INTERVAL: Duration = Duration::from_millis(200);

/// Why a replica does not compete for the lock.
const NOTHING_TO_LEAD: &str = "it has no plugin file that can be used, and no projection is recorded yet; it takes part as soon as there is one";

/// How often a replica with nothing to lead looks whether a projection is recorded.
const IDLE_INTERVAL: Duration = Duration::from_secs(5);

/// Longest wait for the list of projections.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

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
        let offered = self.loaded.roster().all();
        let who = Who::Own(offered.iter().map(|known| known.name.clone()).collect());
        let waiting = caught_up::wait(
            &self.config,
            &databases,
            &who,
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
                    // Whoever waits may have read of it before this replica looked at itself.
                    outcome.map_err(|failure| self.refusal().unwrap_or(failure))
                }
            }
        };
        for name in outcome?.off {
            tracing::warn!(
                projection = name,
                "not waited for: no replica has a plugin file for it"
            );
        }
        refused_plugins(&self.loaded).map_or(Ok(()), Err)
    }

    /// Resolves when a projection can never begin: nobody should wait for it.
    async fn refused(&self) -> Failure {
        let mut every = tokio::time::interval(REFUSED_INTERVAL);
        loop {
            every.tick().await;
            if let Some(refusal) = self.refusal() {
                return refusal;
            }
        }
    }

    /// Why a projection can never begin, if there is one.
    fn refusal(&self) -> Option<Failure> {
        let all = self.loaded.roster().all();
        let mut refusals = all.iter().filter_map(|known| known.progress.refused());
        let why = refusals.find(|refusal| refusal.lasts)?;
        Some(Failure::from_text(Exit::Config, &why.message))
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
        let silent = self.shutdown.child_token();
        let telling = tokio::spawn({
            let (config, database) = (self.config.clone(), databases.read_model.clone());
            let (loaded, silent) = (self.loaded.clone(), silent.clone());
            async move { presence::tell(&config, &database, &loaded, &silent).await }
        });
        let ended = match self.config.leader.scope {
            LeaderScope::Host => {
                self.something_to_lead(databases).await;
                if self.shutdown.is_cancelled() {
                    Ok(())
                } else {
                    let load = Load::default();
                    let seat = self.compete(databases, None, &load)?;
                    self.sit(seat, parts).await
                }
            }
            LeaderScope::Projection => self.many_seats(databases, &parts).await,
        };
        silent.cancel();
        // Bounded by itself; a panic in it changes nothing any more.
        let _told = telling.await;
        ended
    }

    /// Resolves when there is something to lead: a plugin file here, or a projection that is recorded. Whoever led
    /// without either would only keep from the lock who has something.
    async fn something_to_lead(&self, databases: &Databases) {
        let roster = self.loaded.roster();
        let mut changes = roster.changes();
        let mut told = false;
        loop {
            changes.mark_unchanged();
            let offers = roster.all().iter().any(|known| known.offer.is_some());
            if offers || self.is_recorded(databases).await {
                return self.standing.set_idle(None);
            }
            if !std::mem::replace(&mut told, true) {
                tracing::warn!("this replica does not take part: {NOTHING_TO_LEAD}");
            }
            self.standing.set_idle(Some(NOTHING_TO_LEAD));
            tokio::select! {
                () = self.shutdown.cancelled() => return,
                _ = changes.changed() => {}
                () = tokio::time::sleep(IDLE_INTERVAL) => {}
            }
        }
    }

    /// Whether any projection is recorded. A database that does not answer is asked again.
    async fn is_recorded(&self, databases: &Databases) -> bool {
        let asking = async {
            let mut connection = databases.read_model.connect(&Purpose::Admin).await?;
            Control::new(self.config.read_model.control_schema.clone())
                .list(&mut connection)
                .await
        };
        let rows = bounded("read model", ANSWER_TIMEOUT, asking).await;
        rows.is_ok_and(|rows| !rows.is_empty())
    }

    /// A seat for each projection, also for those that come while the replica runs.
    async fn many_seats(&self, databases: &Databases, parts: &Parts) -> Result<(), Failure> {
        self.recall(databases).await;
        let load = Load::default();
        let mut taken = BTreeSet::new();
        let mut working = FuturesUnordered::new();
        let mut changes = self.loaded.roster().changes();
        let mut ended = Ok(());
        loop {
            changes.mark_unchanged();
            for known in self.loaded.roster().all().iter() {
                if !self.shutdown.is_cancelled() && taken.insert(known.name.clone()) {
                    let seat = self.compete(databases, Some(known.name.clone()), &load)?;
                    working.push(self.sit(seat, parts.of(&known.name)));
                }
            }
            tokio::select! {
                Some(one) = working.next() => ended = ended.and(one),
                Ok(()) = changes.changed(), if !self.shutdown.is_cancelled() => {}
                // With nothing to lead it answers HTTP and says which plugins were refused.
                () = self.shutdown.cancelled(), if working.is_empty() => return ended,
            }
        }
    }

    /// Projections that are recorded, of which this replica may have no file.
    async fn recall(&self, databases: &Databases) {
        let asking = async {
            let mut connection = databases.read_model.connect(&Purpose::Admin).await?;
            Control::new(self.config.read_model.control_schema.clone())
                .list(&mut connection)
                .await
        };
        match bounded("read model", ANSWER_TIMEOUT, asking).await {
            Ok(rows) => {
                for row in rows {
                    let unknown = || self.loaded.unknown(&row.name);
                    self.loaded.roster().is_recorded(&row.name, unknown);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "projections without a plugin file here are left to other replicas")
            }
        }
    }

    /// Takes part in one election until it ends.
    async fn sit(&self, seat: Seat, parts: Parts) -> Result<(), Failure> {
        let refused = self.follow(&seat, &parts).await;
        let limit = self.config.host.drain_timeout + END_GRACE;
        if tokio::time::timeout(limit, seat.election.stopped())
            .await
            .is_err()
        {
            return Err(Failure::new(
                Exit::Failed,
                "the leader lock was not given back in time; the server frees it",
            ));
        }
        refused.map_or(Ok(()), Err)
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
        for known in self.loaded.roster().all().iter() {
            if parts
                .projection
                .as_ref()
                .is_none_or(|only| *only == known.name)
            {
                self.metrics.leads_projection(&known.name, leads);
            }
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
