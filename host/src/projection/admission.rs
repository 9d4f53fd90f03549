//! Whether a projection may run in this term, and with which plugin: the one that made its rows, or the file of
//! this replica where a policy or a person says so. The store must be the one that was read.
//!
//! A changed plugin is not the same projection. A store that was restored, or that failed over and lost events,
//! may hold another event where the checkpoint stands, or nothing. What nobody decided stops the projection;
//! `resume` then tells the leader what to take as it finds it.

mod plugin;

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::postgres::PgConnection;

use crate::database::connections::Connections;
use crate::database::error::Error as DatabaseError;
use crate::database::identifier::Identifier;
use crate::database::session::bounded;
use crate::error::{Class, Code};
use crate::event_store::Feed;
use crate::event_store::anchor::Sight;
use crate::plugin::Plugin;
use crate::read_model::checkpoint::{Checkpoint, Checkpoints, Failure as Row};
use crate::read_model::schema::{self, Generation};

use super::failure::{Failure, PLUGIN_CHANGED, STORE_CHANGED};
use super::roster::Known;

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest wait for a change of tables or a plugin's file.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(35);

/// What admission asks with.
pub(super) struct Admission<'a> {
    pub(super) known: &'a Known,
    /// When this leader began with the projection.
    pub(super) since: Instant,
    /// The plugin that ran before in this term, loaded with the same configuration.
    pub(super) ran: Option<&'a Arc<Plugin>>,
    pub(super) feed: &'a Feed,
    pub(super) checkpoints: &'a Checkpoints,
    pub(super) connections: &'a Connections,
    pub(super) readers: &'a Identifier,
}

/// What admission came to.
#[derive(Debug)]
pub(super) enum Admitted {
    /// It may run.
    Run {
        /// With this plugin.
        plugin: Arc<Plugin>,
        /// On these tables.
        generation: Box<Generation>,
    },
    /// Its row says why not.
    Stopped,
    /// No replica has a file for it.
    NoPlugin,
    /// The term is over.
    Fenced,
}

/// The plugin that was chosen, or why there is none.
enum Chosen {
    Plugin(Arc<Plugin>, Box<Generation>),
    /// Stop, with this text.
    Stop(String),
    NoPlugin,
}

impl From<schema::Error> for Failure {
    fn from(error: schema::Error) -> Self {
        Self::transient(error.to_string())
    }
}

impl Admission<'_> {
    /// Whether the projection may run, and with what. When it may not, its row says why. What is said of the
    /// plugin is written into `note` when it changes.
    ///
    /// # Errors
    /// When a database does not answer; to be tried again.
    pub(super) async fn ask(
        &self,
        generation: Generation,
        note: &mut Option<String>,
    ) -> Result<Admitted, Failure> {
        let name = self.connections.database();
        let mut loan = bounded(name, ANSWER_TIMEOUT, self.connections.lend()).await?;
        let asking = self.checkpoints.load(&mut loan, &generation.key);
        let Some(row) = bounded(name, ANSWER_TIMEOUT, asking).await? else {
            return Err(Failure::transient("the checkpoint's row is not there"));
        };
        let fence = self.checkpoints.fence();
        if row.term != fence.term || row.term_id != fence.term_id {
            return Ok(Admitted::Fenced);
        }
        self.known.progress.reached(row.position);
        let chosen = match self.plugin(&mut loan, &generation, &row, note).await {
            Ok(chosen) => chosen,
            Err(schema::Error::Fenced) => return Ok(Admitted::Fenced),
            Err(error) if error.class() == Class::Transient => return Err(error.into()),
            Err(error) => Chosen::Stop(error.to_string()),
        };
        let (plugin, generation) = match chosen {
            Chosen::Plugin(plugin, generation) => (plugin, generation),
            Chosen::NoPlugin => {
                loan.give_back();
                return Ok(Admitted::NoPlugin);
            }
            Chosen::Stop(why) => {
                self.refuse(&mut loan, &generation, &row, PLUGIN_CHANGED, &why)
                    .await?;
                loan.give_back();
                return Ok(Admitted::Stopped);
            }
        };
        // A generation that was emptied has another row now.
        let asking = self.checkpoints.load(&mut loan, &generation.key);
        let row = bounded(name, ANSWER_TIMEOUT, asking).await?.unwrap_or(row);
        let fits = self.store_fits(&mut loan, &generation, &row).await?;
        loan.give_back();
        self.known.progress.reached(row.position);
        Ok(if fits {
            Admitted::Run { plugin, generation }
        } else {
            Admitted::Stopped
        })
    }

    async fn store_fits(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        row: &Checkpoint,
    ) -> Result<bool, Failure> {
        let name = self.connections.database();
        let accepted = row.accepted.as_deref() == Some("store");
        if accepted {
            self.feed.tolerate();
        }
        let known = row.last_event.as_ref();
        let at = known.map_or(row.position, |known| known.position);
        let Sight { found, last, head } = self.feed.look(at, row.position).await?;
        let what = match known.and_then(|known| known.replaced_by(found.as_deref())) {
            Some(what) => format!("in the event store {what}"),
            None if row.position > head => format!(
                "the checkpoint stands at position {}, but the event store ends at {head}",
                row.position
            ),
            None => {
                if accepted {
                    let clearing = self.checkpoints.accepted(connection, &generation.key);
                    bounded(name, ANSWER_TIMEOUT, clearing).await?;
                }
                return Ok(true);
            }
        };
        if accepted {
            let accepting =
                self.checkpoints
                    .accept_store(connection, &generation.key, head, last.as_ref());
            let accepted = bounded(name, ANSWER_TIMEOUT, accepting).await?;
            tracing::warn!(
                projection = generation.key.projection,
                head = head.0,
                accepted,
                "goes on with another store"
            );
            return Ok(accepted);
        }
        let message = format!(
            "{}: {what}: it was restored, or lost events when it failed over; rows of lost events stay. `projector-host resume {} --accept-store` goes on after position {}",
            Code(804),
            generation.key.projection,
            row.position.min(head),
        );
        self.refuse(connection, generation, row, STORE_CHANGED, &message)
            .await?;
        Ok(false)
    }

    async fn refuse(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        row: &Checkpoint,
        category: &str,
        message: &str,
    ) -> Result<(), Failure> {
        if row.failure.is_none() {
            let failure = Row {
                category,
                message,
                ..Row::default()
            };
            let name = self.connections.database();
            let failing =
                self.checkpoints
                    .fail(connection, &generation.key, row.revision, &failure);
            bounded::<_, DatabaseError>(name, ANSWER_TIMEOUT, failing).await?;
            tracing::error!(
                projection = generation.key.projection,
                error = message,
                "the projection stopped"
            );
        }
        Ok(())
    }
}
