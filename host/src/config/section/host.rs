//! `[host]`: the process itself.

use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::config::reading::Table;
use crate::config::value::{self, DurationText, Problem, choice, day, within};

/// Longest `node`, in bytes.
const NODE_BYTES_MAX: usize = 63;

/// What is logged unless something else is said.
pub const DEFAULT_LOG: &str = "info";

/// The process itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Host {
    /// Name of this replica in logs, sessions and the leadership table; host name and process number unless
    /// set. Environment: `PROJECTOR_NODE`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
    /// Folder for compiled plugins; the user's cache folder unless set. Relative to this file's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_dir: Option<PathBuf>,
    /// How long a stopping replica may take to finish its batches. Keep it below the supervisor's limit.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub drain_timeout: Duration,
    /// Whether `run` applies pending migrations itself instead of refusing to start.
    pub auto_migrate: bool,
    /// What is logged: a level, or a filter such as `info,projector_host::event_store=debug`. Environment:
    /// `PROJECTOR_LOG`.
    pub log: String,
    /// How log lines look. Environment: `PROJECTOR_LOG_FORMAT`.
    pub log_format: LogFormat,
    /// Connections that apply batches, for all projections of this replica together.
    pub write_connections_max: u32,
    /// Connections on which plugins look rows up, for all projections together.
    pub lookup_connections_max: u32,
}

choice! {
    /// How log lines look.
    pub enum LogFormat {
        /// For people.
        Text = "text",
        /// One JSON object a line.
        Json = "json",
    }
}

impl Default for Host {
    fn default() -> Self {
        Self {
            node: String::new(),
            cache_dir: None,
            drain_timeout: Duration::from_secs(20),
            auto_migrate: false,
            log: DEFAULT_LOG.to_owned(),
            log_format: LogFormat::Text,
            write_connections_max: 4,
            lookup_connections_max: 2,
        }
    }
}

impl Host {
    pub(in crate::config) fn read(mut table: Table<'_, '_>) -> Self {
        let default = Self::default();
        let section = Self {
            node: table.checked("node", default.node, value::name(NODE_BYTES_MAX)),
            cache_dir: table.optional("cache_dir", not_empty).map(PathBuf::from),
            drain_timeout: table.checked("drain_timeout", default.drain_timeout, day),
            auto_migrate: table.value("auto_migrate", default.auto_migrate),
            log: table.checked("log", default.log, filter),
            log_format: table.value("log_format", default.log_format),
            write_connections_max: table.checked(
                "write_connections_max",
                default.write_connections_max,
                within(1, 1000),
            ),
            lookup_connections_max: table.checked(
                "lookup_connections_max",
                default.lookup_connections_max,
                within(1, 1000),
            ),
        };
        table.finish();
        section
    }
}

/// Host name and process number, in the characters that a name may have.
pub(in crate::config) fn default_node(host: &str, process: u32) -> String {
    let tail = format!("-{process}");
    let host: String = host
        .chars()
        .map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '_' | '-' => c,
            _ => '-',
        })
        .take(NODE_BYTES_MAX - tail.len())
        .collect();
    match host.as_str() {
        "" => format!("host{tail}"),
        _ => host + &tail,
    }
}

pub(in crate::config) fn not_empty(text: &String) -> Result<(), Problem> {
    match text.is_empty() {
        true => Err(Problem::new(crate::config::fault::MALFORMED, "is empty")),
        false => Ok(()),
    }
}

fn filter(text: &String) -> Result<(), Problem> {
    match tracing_subscriber::EnvFilter::try_new(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(Problem::new(
            crate::config::fault::MALFORMED,
            format!("is no log filter: {error}"),
        )
        .hint("write a level (error, warn, info, debug, trace), or pairs such as `info,projector_host::event_store=debug`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_node_keeps_to_the_characters_and_length_of_a_name() {
        assert_eq!(default_node("web 1.example", 7), "web-1.example-7");
        assert_eq!(default_node("", 7), "host-7");
        let long = default_node(&"x".repeat(200), 4_194_304);
        assert_eq!(long.len(), NODE_BYTES_MAX);
        assert!(long.ends_with("-4194304"));
        assert!(value::name(NODE_BYTES_MAX)(&default_node("höst/a", 1)).is_ok());
    }
}
