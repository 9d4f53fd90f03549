//! One projection in a term: its tables are prepared, its plugin is compared with the recorded one, then it
//! runs, until there is another plugin to run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::database::backoff;
use crate::database::error::Error as DatabaseError;
use crate::database::session::bounded;
use crate::error::Class;
use crate::event_store::Feed;
use crate::event_store::event::Position;
use crate::leadership::Lease;
use crate::plugin::{Loader, Plugin};
use crate::read_model::check::Shapes;
use crate::read_model::checkpoint::{Checkpoints, Failure as Row, GenerationKey};
use crate::read_model::lookup::Source;
use crate::read_model::schema::{self, Filler, Generation, Start};

use super::admission::{Admission, Admitted};
use super::commit::Target;
use super::failure::Failure;
use super::lookups::RowLookups;
use super::pending::Pending;
use super::progress::{Phase, Refusal};
use super::roster::{Known, Roster};
use super::runner::{CONTROL_TIMEOUT, Runner, Stopped};
use super::settings::StartFrom;
use super::supervisor::Shared;
use super::work::Work;

/// Waits between tries to prepare a projection.
const PREPARE_MIN: Duration = Duration::from_millis(200);
const PREPARE_MAX: Duration = Duration::from_secs(10);
const PREPARE_AGAIN: Duration = Duration::from_secs(1);

/// How often it is looked for a replica that has a plugin file.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Category of a projection that stops because its tables cannot be used.
const UNUSABLE_TABLES: &str = "tables";

/// What a beginning came to.
enum Begun {
    Run(Box<Runner>),
    /// Nothing runs; when to look again.
    Not(Phase, Option<Duration>),
    Fenced,
}

/// One projection of a term.
pub(super) struct Member {
    pub(super) name: String,
    pub(super) since: Instant,
    pub(super) roster: Roster,
    pub(super) shared: Shared,
    pub(super) feed: Feed,
    pub(super) checkpoints: Checkpoints,
    pub(super) lease: Lease,
    pub(super) revision: watch::Receiver<i64>,
}

/// What a member remembers from one start to the next.
#[derive(Default)]
struct Before {
    /// What ran, and what loaded it.
    ran: Option<(Arc<Plugin>, Arc<Loader>)>,
    /// Whether a start of this term was counted.
    counted: bool,
    /// What was said of the plugin.
    note: Option<String>,
    /// Digest and save of the plugin that was told.
    told: Option<(String, Option<Instant>)>,
}

impl Member {
    /// Runs until cancelled or fenced. When the plugin file, the settings or what somebody allows changes, the run
    /// ends behind the batch that is being committed, and the next one begins with what there is then.
    pub(super) async fn run(mut self, cancelled: CancellationToken) -> Stopped {
        let mut before = Before::default();
        loop {
            let Some(known) = self.roster.known(&self.name) else {
                return Stopped::Cancelled;
            };
            self.revision.mark_unchanged();
            let begun = tokio::select! {
                biased;
                () = cancelled.cancelled() => return Stopped::Cancelled,
                () = self.changed(&known) => continue,
                begun = self.begin(&known, &mut before) => begun,
            };
            let wait = match begun {
                Ok(Begun::Run(runner)) => {
                    tell_start(&known, &runner, &mut before);
                    match self.run_until_changed(*runner, &known, &cancelled).await {
                        Stopped::Changed => continue,
                        ended => return ended,
                    }
                }
                Ok(Begun::Fenced) => return Stopped::Fenced,
                Ok(Begun::Not(phase, wait)) => {
                    known.progress.enter(phase);
                    wait
                }
                Err(failure) => {
                    tracing::warn!(
                        projection = self.name,
                        error = failure.message,
                        "cannot begin; trying again"
                    );
                    known.progress.enter(Phase::Retrying);
                    known.progress.failed(failure.message);
                    Some(PREPARE_AGAIN)
                }
            };
            let again = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            let mut revision = self.revision.clone();
            tokio::select! {
                () = cancelled.cancelled() => return Stopped::Cancelled,
                () = again => {}
                () = self.changed(&known) => {}
                changed = revision.changed() => if changed.is_err() { return Stopped::Cancelled },
            }
        }
    }

    /// Everything that comes before the first batch.
    async fn begin(&self, known: &Known, before: &mut Before) -> Result<Begun, Failure> {
        let generation = match self.prepare(known).await {
            Ok(Some(generation)) => generation,
            Ok(None) => return Ok(Begun::Not(Phase::NoPlugin, Some(LOOK_AGAIN))),
            Err(Stopped::Fenced) => return Ok(Begun::Fenced),
            Err(_) => return Err(Failure::transient("the projection cannot be prepared")),
        };
        let ran = before
            .ran
            .as_ref()
            .filter(|(_, loader)| Arc::ptr_eq(loader, &known.loader));
        let admission = Admission {
            known,
            since: self.since,
            ran: ran.map(|(plugin, _)| plugin),
            feed: &self.feed,
            checkpoints: &self.checkpoints,
            connections: &self.shared.write,
            readers: &self.shared.readers,
        };
        Ok(match admission.ask(generation, &mut before.note).await? {
            Admitted::Run { plugin, generation } => {
                before.ran = Some((plugin.clone(), known.loader.clone()));
                let counted = std::mem::replace(&mut before.counted, true);
                let key = generation.key.clone();
                match self.runner(known, plugin, *generation, counted) {
                    Ok(runner) => Begun::Run(Box::new(runner)),
                    Err(why) => {
                        tracing::error!(
                            projection = self.name,
                            error = why,
                            "the plugin's tables cannot be used"
                        );
                        self.tell_unusable(&key, &why).await?;
                        Begun::Not(Phase::Stopped, None)
                    }
                }
            }
            Admitted::Stopped => Begun::Not(Phase::Stopped, None),
            Admitted::NoPlugin => Begun::Not(Phase::NoPlugin, Some(LOOK_AGAIN)),
            Admitted::Fenced => Begun::Fenced,
        })
    }

    /// Writes why nothing runs where everybody sees it.
    async fn tell_unusable(&self, key: &GenerationKey, why: &str) -> Result<(), Failure> {
        let name = self.shared.write.database();
        let mut loan = bounded(name, CONTROL_TIMEOUT, self.shared.write.lend()).await?;
        let loading = self.checkpoints.load(&mut loan, key);
        if let Some(row) = bounded(name, CONTROL_TIMEOUT, loading).await? {
            let failure = Row {
                category: UNUSABLE_TABLES,
                message: why,
                ..Row::default()
            };
            let failing = self
                .checkpoints
                .fail(&mut loan, key, row.revision, &failure);
            bounded::<_, DatabaseError>(name, CONTROL_TIMEOUT, failing).await?;
        }
        loan.give_back();
        Ok(())
    }

    /// [`Stopped::Changed`] when there is something new to begin with.
    async fn run_until_changed(
        &self,
        runner: Runner,
        known: &Known,
        cancelled: &CancellationToken,
    ) -> Stopped {
        let stop = cancelled.child_token();
        let key = runner.target.key.clone();
        let plugin = runner.work.plugin.clone();
        let running = runner.run(stop.clone());
        tokio::pin!(running);
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = async { tokio::select! { () = self.changed(known) => {}, () = self.allowed(&key) => {} } } => {
                stop.cancel();
                running.await
            }
        };
        plugin.guest.tell_held_lines();
        match ended {
            Stopped::Cancelled if !cancelled.is_cancelled() => Stopped::Changed,
            ended => ended,
        }
    }

    /// Resolves when this projection is known in another way.
    async fn changed(&self, known: &Known) {
        let mut changes = self.roster.changes();
        loop {
            if !self
                .roster
                .known(&self.name)
                .is_some_and(|now| now.is_like(known))
            {
                return;
            }
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Resolves when somebody allowed the leader to take something as it finds it.
    async fn allowed(&self, key: &GenerationKey) {
        let mut revision = self.revision.clone();
        while revision.changed().await.is_ok() {
            let asked = async {
                let mut loan = self.shared.write.lend().await?;
                let row = self.checkpoints.load(&mut loan, key).await?;
                loan.give_back();
                Ok::<_, DatabaseError>(row)
            };
            // A database that does not answer is found out by the run itself.
            let asked = bounded(self.shared.write.database(), CONTROL_TIMEOUT, asked).await;
            if asked
                .ok()
                .flatten()
                .is_some_and(|row| row.accepted.is_some())
            {
                return;
            }
        }
        std::future::pending().await
    }

    /// The live generation, created when there is none; tried until it is there. None when there is nothing to
    /// create it with.
    async fn prepare(&self, known: &Known) -> Result<Option<Generation>, Stopped> {
        let mut waits = backoff::waits(PREPARE_MIN, PREPARE_MAX);
        loop {
            let error = match self.ensure(known).await {
                Ok(generation) => {
                    self.refuse(known, None);
                    return Ok(generation);
                }
                Err(schema::Error::Fenced) => return Err(Stopped::Fenced),
                Err(error) => error,
            };
            let projection = &self.name;
            let lasts = error.class() != Class::Transient;
            if !lasts {
                tracing::warn!(projection, %error, "cannot prepare the projection's tables; trying again");
            } else {
                tracing::error!(projection, %error, "the projection's tables cannot be made; trying again now and then");
            }
            let message = error.to_string();
            self.refuse(known, Some(Refusal { message, lasts }));
            known.progress.enter(Phase::Retrying);
            known.progress.failed(error.to_string());
            tokio::time::sleep(waits.next().unwrap_or(PREPARE_MAX)).await;
        }
    }

    /// Everybody hears at once that its tables cannot be made, or that they can again.
    fn refuse(&self, known: &Known, why: Option<Refusal>) {
        if known.progress.refuse(why) {
            self.roster.touch();
        }
    }

    async fn ensure(&self, known: &Known) -> Result<Option<Generation>, schema::Error> {
        let name = self.shared.write.database();
        let mut loan = bounded(name, CONTROL_TIMEOUT, self.shared.write.lend()).await?;
        let asking = schema::live(&mut loan, &self.shared.control, &self.name);
        let found = tokio::time::timeout(CONTROL_TIMEOUT, asking).await;
        let found = found.map_err(|_| timed_out(name, CONTROL_TIMEOUT))??;
        loan.give_back();
        match (found, &known.offer) {
            (Some(generation), _) => Ok(Some(generation)),
            (None, None) => Ok(None),
            (None, Some(offer)) => self.create(known, &offer.plugin).await.map(Some),
        }
    }

    async fn create(&self, known: &Known, plugin: &Plugin) -> Result<Generation, schema::Error> {
        let start = match known.settings.start_from {
            StartFrom::Beginning => Position(0),
            StartFrom::After(position) => position,
            // A proven mark: whatever is appended from now on gets a higher position.
            StartFrom::Now => self.feed.proven().await.map_err(|error| {
                schema::Error::Database(DatabaseError::Driver(error.to_string()))
            })?,
        };
        // What stands before the beginning was passed over, and must not change either.
        let anchor = match start {
            Position(0) => None,
            start => {
                let looking = self.feed.look(start, start).await;
                looking
                    .map_err(|error| DatabaseError::Driver(error.to_string()))?
                    .last
            }
        };
        let name = self.shared.write.database();
        let mut loan = bounded(name, CONTROL_TIMEOUT, self.shared.write.lend()).await?;
        let filler = Filler {
            manifest: &plugin.manifest,
            sha256: &plugin.sha256,
            bytes: &plugin.bytes,
        };
        let ensuring = schema::ensure(
            &mut loan,
            &self.checkpoints,
            &self.shared.readers,
            filler,
            Start {
                position: start,
                anchor,
            },
        );
        let limit = CONTROL_TIMEOUT * 3;
        let made = tokio::time::timeout(limit, ensuring).await;
        let generation = made.map_err(|_| timed_out(name, limit))??;
        loan.give_back();
        Ok(generation)
    }

    fn runner(
        &self,
        known: &Known,
        plugin: Arc<Plugin>,
        generation: Generation,
        counted: bool,
    ) -> Result<Runner, String> {
        let shapes = Shapes::new(&plugin.manifest.tables)?;
        let source = Source {
            schema: generation.schema.clone(),
            control: self.shared.control.clone(),
            key: generation.key.clone(),
        };
        let lookups = RowLookups {
            source,
            shapes: shapes.clone(),
            connections: self.shared.lookup.clone(),
            pending: Pending::default(),
            known: Arc::default(),
            runtime: Handle::current(),
        };
        Ok(Runner {
            feed: self.feed.clone(),
            engine: self.shared.engine.clone(),
            work: Work {
                plugin,
                shapes: shapes.clone(),
                settings: known.settings.clone(),
                lookups,
            },
            target: Target {
                connections: self.shared.write.clone(),
                checkpoints: self.checkpoints.clone(),
                key: generation.key,
                schema: generation.schema,
                shapes,
            },
            lease: self.lease.clone(),
            progress: known.progress.clone(),
            metrics: self.shared.metrics.projection(&self.name),
            revision: self.revision.clone(),
            counted,
            letters: super::redrive::Letters::default(),
        })
    }
}

/// Says which plugin runs from now on, if it is another one, and how long it took since it was saved.
fn tell_start(known: &Known, runner: &Runner, before: &mut Before) {
    let plugin = &runner.work.plugin;
    let saved = known
        .offer
        .as_ref()
        .filter(|offer| offer.plugin.sha256 == plugin.sha256)
        .and_then(|offer| offer.saved);
    let now = (plugin.sha256.clone(), saved);
    if before.told.as_ref() == Some(&now) {
        return;
    }
    let took = saved.map(|saved| u64::try_from(saved.elapsed().as_millis()).unwrap_or(u64::MAX));
    tracing::info!(
        projection = known.name,
        version = plugin.manifest.version,
        sha256 = plugin.sha256,
        after = known.progress.position().0,
        saved_to_running_ms = took,
        "{}",
        if saved.is_some() {
            "the saved plugin runs"
        } else {
            "the projection runs"
        }
    );
    before.told = Some(now);
}

fn timed_out(database: &'static str, limit: Duration) -> DatabaseError {
    DatabaseError::TimedOut { database, limit }
}
