//! Whether a projection may run in this term: its plugin must be the one that made its rows, and the store the
//! one that was read.
//!
//! A changed plugin is not the same projection. A store that was restored, or that failed over and lost
//! events, may hold another event where the checkpoint stands, or nothing. Both stop the projection until
//! somebody decides; `resume` then tells the leader what to take as it finds it.

use std::time::Duration;

use sqlx::postgres::PgConnection;

use crate::database::connections::Connections;
use crate::database::error::Error as DatabaseError;
use crate::database::session::bounded;
use crate::error::Code;
use crate::event_store::Feed;
use crate::plugin::Plugin;
use crate::read_model::checkpoint::{Checkpoint, Checkpoints, Failure as Row};
use crate::read_model::schema::{Generation, description};

use super::failure::{Failure, PLUGIN_CHANGED, STORE_CHANGED};
use super::progress::Progress;

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// What admission asks with.
pub(super) struct Admission<'a> {
    pub(super) plugin: &'a Plugin,
    pub(super) feed: &'a Feed,
    pub(super) checkpoints: &'a Checkpoints,
    pub(super) connections: &'a Connections,
    pub(super) progress: &'a Progress,
}

impl Admission<'_> {
    /// Whether the projection may run. When it may not, its row says why.
    ///
    /// # Errors
    /// When a database does not answer; to be tried again.
    pub(super) async fn ask(&self, generation: &Generation) -> Result<bool, Failure> {
        let name = self.connections.database();
        let mut loan = bounded(name, ANSWER_TIMEOUT, self.connections.lend()).await?;
        let asking = self.checkpoints.load(&mut loan, &generation.key);
        let Some(row) = bounded(name, ANSWER_TIMEOUT, asking).await? else {
            return Err(Failure::transient("the checkpoint's row is not there"));
        };
        self.progress.reached(row.position);
        let admitted = self.plugin_fits(&mut loan, generation, &row).await?
            && self.store_fits(&mut loan, generation, &row).await?;
        loan.give_back();
        Ok(admitted)
    }

    async fn plugin_fits(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        row: &Checkpoint,
    ) -> Result<bool, Failure> {
        let plugin = self.plugin;
        if generation.sha256 == plugin.sha256 {
            return Ok(true);
        }
        let declared = description(&plugin.manifest);
        let same_tables = declared["tables"] == generation.description["tables"];
        let name = self.connections.database();
        if same_tables && row.accepted.as_deref() == Some("plugin") {
            let (sha256, version) = (&plugin.sha256, &plugin.manifest.version);
            let accepting = self.checkpoints.accept_plugin(
                connection,
                &generation.key,
                sha256,
                version,
                &declared,
            );
            let accepted = bounded(name, ANSWER_TIMEOUT, accepting).await?;
            tracing::warn!(
                projection = plugin.manifest.name,
                sha256,
                version,
                accepted,
                "goes on with another plugin"
            );
            return Ok(accepted);
        }
        let way_out = if same_tables {
            format!(
                "`projector-host resume {} --accept-plugin` goes on with the new one",
                plugin.manifest.name
            )
        } else {
            "it also declares other tables, so it cannot go on with these rows; put the old file back".to_owned()
        };
        let message = format!(
            "{}: the file {} has the digest {}, but the rows were made by {} (version {}); {way_out}",
            Code(802),
            plugin.file.display(),
            short(&plugin.sha256),
            short(&generation.sha256),
            generation.plugin_version,
        );
        self.refuse(connection, generation, row, PLUGIN_CHANGED, &message)
            .await
    }

    async fn store_fits(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        row: &Checkpoint,
    ) -> Result<bool, Failure> {
        let Some((position, id)) = &row.last_event else {
            return Ok(true);
        };
        let looking = self.feed.look(*position);
        let (found, head) = looking
            .await
            .map_err(|error| Failure::transient(error.to_string()))?;
        if found.as_ref() == Some(id) {
            return Ok(true);
        }
        let name = self.connections.database();
        if row.accepted.as_deref() == Some("store") {
            let accepting = self
                .checkpoints
                .accept_store(connection, &generation.key, head);
            let accepted = bounded(name, ANSWER_TIMEOUT, accepting).await?;
            tracing::warn!(
                projection = generation.key.projection,
                head = head.0,
                accepted,
                "goes on with another store"
            );
            return Ok(accepted);
        }
        let what = match found {
            Some(other) => format!("the event {other} instead of {id}"),
            None => format!("no event, but {id} was read there"),
        };
        let message = format!(
            "{}: at position {position} the event store holds {what}: it was restored, or lost events when it failed \
             over; rows of lost events stay. `projector-host resume {} --accept-store` goes on after position {}",
            Code(804),
            generation.key.projection,
            row.position.min(head),
        );
        self.refuse(connection, generation, row, STORE_CHANGED, &message)
            .await
    }

    async fn refuse(
        &self,
        connection: &mut PgConnection,
        generation: &Generation,
        row: &Checkpoint,
        category: &str,
        message: &str,
    ) -> Result<bool, Failure> {
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
        Ok(false)
    }
}

fn short(sha256: &str) -> &str {
    sha256.get(..12).unwrap_or(sha256)
}
