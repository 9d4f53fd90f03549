//! `[event_store]`: where events are read, and how.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use schemars::JsonSchema;
use serde::Serialize;

use super::host::not_empty;
use crate::config::reading::Table;
use crate::config::value::{self, DurationText, SizeText, choice, day, variable, within};
use crate::database::identifier::Identifier;

/// Where events are read, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EventStore {
    /// Name of the environment variable that holds the URL; when it is not set, `DATABASE_URL` is taken.
    pub url_env: String,
    /// A file that holds the URL, instead of `url_env`. Relative to this file's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_file: Option<PathBuf>,
    /// Whose tables they are.
    pub layout: Layout,
    /// Schema of the event tables.
    #[serde(serialize_with = "value::text")]
    #[schemars(with = "String")]
    pub schema: Identifier,
    /// How often to look for events when no notification comes.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub poll_interval: Duration,
    /// Whether to LISTEN, so that events are seen at once. Polling goes on all the same.
    pub notify: bool,
    /// How a gap in the positions is proven to stay empty: by the transactions that write events, or by all
    /// transactions of the database. The latter is only for stores that draw the position by an own statement.
    pub gap_proof: GapProof,
    /// Most events of one batch.
    pub batch_events_max: u32,
    /// Most bytes of one batch; one event always passes.
    #[serde(serialize_with = "value::size")]
    #[schemars(with = "SizeText")]
    pub batch_bytes_max: ByteSize,
}

choice! {
    /// Whose event tables are read.
    pub enum Layout {
        /// The host's own.
        Projector = "projector",
        /// Those of disintegrate.
        Disintegrate = "disintegrate",
        /// Those of Message DB.
        MessageDb = "message-db",
        /// Those of Marten.
        Marten = "marten",
        /// Columns are named in `[event_store.columns]`.
        Custom = "custom",
    }
}

choice! {
    /// What proves that a gap stays empty.
    pub enum GapProof {
        /// No transaction that holds a lock on the events table is left from before.
        Writers = "writers",
        /// No transaction at all is left from before.
        AllTransactions = "all-transactions",
    }
}

impl Default for EventStore {
    fn default() -> Self {
        Self {
            url_env: "ES_DATABASE_URL".to_owned(),
            url_file: None,
            layout: Layout::Projector,
            schema: Identifier::new("event_store").expect("a constant that is a valid name"),
            poll_interval: Duration::from_millis(250),
            notify: true,
            gap_proof: GapProof::Writers,
            batch_events_max: 10_000,
            batch_bytes_max: ByteSize::mib(8),
        }
    }
}

impl EventStore {
    pub(in crate::config) fn read(mut table: Table<'_, '_>) -> Self {
        let default = Self::default();
        let section = Self {
            url_env: table.checked("url_env", default.url_env, variable),
            url_file: table.optional("url_file", not_empty).map(PathBuf::from),
            layout: table.value("layout", default.layout),
            schema: table.value("schema", default.schema),
            poll_interval: table.checked("poll_interval", default.poll_interval, day),
            notify: table.value("notify", default.notify),
            gap_proof: table.value("gap_proof", default.gap_proof),
            batch_events_max: table.checked(
                "batch_events_max",
                default.batch_events_max,
                within(1, 1_000_000),
            ),
            batch_bytes_max: table.checked(
                "batch_bytes_max",
                default.batch_bytes_max,
                within(ByteSize::kib(1), ByteSize::gib(1)),
            ),
        };
        table.skip("columns");
        table.finish();
        section
    }
}
