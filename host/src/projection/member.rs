//! One projection in a term: its tables are prepared, its plugin is compared with the recorded one, then it
//! runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::database::backoff;
use crate::database::session::bounded;
use crate::error::Class;
use crate::event_store::Feed;
use crate::event_store::event::Position;
use crate::leadership::Lease;
use crate::read_model::check::Shapes;
use crate::read_model::checkpoint::Checkpoints;
use crate::read_model::lookup::Source;
use crate::read_model::schema::{self, Generation};

use super::admission::Admission;
use super::commit::Target;
use super::lookups::RowLookups;
use super::pending::Pending;
use super::progress::Phase;
use super::runner::{CONTROL_TIMEOUT, Runner, Stopped};
use super::settings::StartFrom;
use super::supervisor::{Known, Shared};
use super::work::Work;

/// Waits between tries to prepare a projection.
const PREPARE_MIN: Duration = Duration::from_millis(200);
const PREPARE_MAX: Duration = Duration::from_secs(10);
const PREPARE_AGAIN: Duration = Duration::from_secs(1);

/// One projection of a term.
pub(super) struct Member {
    pub(super) known: Known,
    pub(super) shared: Shared,
    pub(super) feed: Feed,
    pub(super) checkpoints: Checkpoints,
    pub(super) lease: Lease,
    pub(super) revision: watch::Receiver<i64>,
}

impl Member {
    /// Runs until cancelled or fenced.
    pub(super) async fn run(mut self, cancelled: CancellationToken) -> Stopped {
        let name = self.known.plugin.manifest.name.clone();
        loop {
            let prepared = tokio::select! {
                biased;
                () = cancelled.cancelled() => return Stopped::Cancelled,
                prepared = self.prepare() => prepared,
            };
            let generation = match prepared {
                Ok(generation) => generation,
                Err(stopped) => return stopped,
            };
            let admission = Admission {
                plugin: &self.known.plugin,
                feed: &self.feed,
                checkpoints: &self.checkpoints,
                connections: &self.shared.write,
                progress: &self.known.progress,
            };
            self.revision.mark_unchanged();
            let admitted = tokio::select! {
                biased;
                () = cancelled.cancelled() => return Stopped::Cancelled,
                admitted = admission.ask(&generation) => admitted,
            };
            let wait = match admitted {
                Ok(true) => match self.runner(generation) {
                    Ok(runner) => return runner.run(cancelled).await,
                    Err(why) => {
                        tracing::error!(
                            projection = name,
                            error = why,
                            "the plugin's tables cannot be used"
                        );
                        self.known.progress.enter(Phase::Stopped);
                        None
                    }
                },
                Ok(false) => {
                    self.known.progress.enter(Phase::Stopped);
                    None
                }
                Err(failure) => {
                    tracing::warn!(
                        projection = name,
                        error = failure.message,
                        "cannot begin; trying again"
                    );
                    self.known.progress.enter(Phase::Retrying);
                    self.known.progress.failed(failure.message);
                    Some(PREPARE_AGAIN)
                }
            };
            let again = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancelled.cancelled() => return Stopped::Cancelled,
                () = again => {}
                changed = self.revision.changed() => if changed.is_err() { return Stopped::Cancelled },
            }
        }
    }

    /// The live generation, created when there is none; tried until it is there.
    async fn prepare(&self) -> Result<Generation, Stopped> {
        let mut waits = backoff::waits(PREPARE_MIN, PREPARE_MAX);
        loop {
            let error = match self.ensure().await {
                Ok(generation) => {
                    self.known.progress.refuse(None);
                    return Ok(generation);
                }
                Err(schema::Error::Fenced) => return Err(Stopped::Fenced),
                Err(error) => error,
            };
            let projection = &self.known.plugin.manifest.name;
            if error.class() == Class::Transient {
                tracing::warn!(projection, %error, "cannot prepare the projection's tables; trying again");
            } else {
                tracing::error!(projection, %error, "the projection's tables cannot be made; trying again now and then");
                self.known.progress.refuse(Some(error.to_string()));
            }
            self.known.progress.enter(Phase::Retrying);
            self.known.progress.failed(error.to_string());
            tokio::time::sleep(waits.next().unwrap_or(PREPARE_MAX)).await;
        }
    }

    async fn ensure(&self) -> Result<Generation, schema::Error> {
        let start = match self.known.settings.start_from {
            StartFrom::Beginning => Position(0),
            StartFrom::After(position) => position,
            // A proven mark: whatever is appended from now on gets a higher position.
            StartFrom::Now => self.feed.proven().await.map_err(|error| {
                schema::Error::Database(crate::database::error::Error::Driver(error.to_string()))
            })?,
        };
        let name = self.shared.write.database();
        let mut loan = bounded(name, CONTROL_TIMEOUT, self.shared.write.lend()).await?;
        let plugin = &self.known.plugin;
        let ensuring = schema::ensure(
            &mut loan,
            &self.checkpoints,
            &self.shared.readers,
            &plugin.manifest,
            &plugin.sha256,
            start,
        );
        let generation = match tokio::time::timeout(CONTROL_TIMEOUT * 3, ensuring).await {
            Ok(done) => done?,
            Err(_) => {
                let limit = CONTROL_TIMEOUT * 3;
                return Err(crate::database::error::Error::TimedOut {
                    database: name,
                    limit,
                }
                .into());
            }
        };
        loan.give_back();
        Ok(generation)
    }

    fn runner(&self, generation: Generation) -> Result<Runner, String> {
        let shapes = Shapes::new(&self.known.plugin.manifest.tables)?;
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
                plugin: self.known.plugin.clone(),
                shapes: shapes.clone(),
                settings: self.known.settings.clone(),
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
            progress: self.known.progress.clone(),
            metrics: self
                .shared
                .metrics
                .projection(&self.known.plugin.manifest.name),
            revision: self.revision.clone(),
            counted: false,
            letters: super::redrive::Letters::default(),
        })
    }
}
