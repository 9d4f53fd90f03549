//! `[leader]`: which replica projects.

use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use toml::de::DeValue;

use crate::advisory_lock::key::Key;
use crate::config::fault::{MALFORMED, OUT_OF_RANGE};
use crate::config::reading::Table;
use crate::config::value::{self, DurationText, Problem, Value, choice, day, within};

/// Longest `group`, in bytes: it stands in every session's `application_name`.
const GROUP_BYTES_MAX: usize = 24;

/// Which replica projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Leader {
    /// Name of this installation, shown to others that meet its lock. Replicas that stand in for each other
    /// have the same group and key.
    pub group: String,
    /// Key of the leader lock: up to 8 ASCII characters, or an integer, or `{ namespace = 1, id = 2 }`. Two
    /// installations on one database need different keys.
    #[serde(serialize_with = "key")]
    #[schemars(with = "KeyForms")]
    pub key: Key,
    /// The database in which the lock lives.
    pub database: LeaderDatabase,
    /// Whether one leader runs everything, or each projection has its own.
    pub scope: LeaderScope,
    /// How often a standby tries to become leader, with jitter.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub retry_interval: Duration,
    /// How often a leader makes sure that its lock session lives.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub heartbeat_interval: Duration,
    /// A leader that heard nothing for this long stops by itself; at least three heartbeats.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub local_lease: Duration,
    /// The database frees the lock of a silent leader after this long; at least a second above `local_lease`.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub server_lease: Duration,
    /// A leader whose loops show no progress for this long resigns.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub stall_limit: Duration,
    /// A leader that cannot read events for this long resigns.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub resign_after_source_errors: Duration,
    /// A standby that has not led for this long warns once and says so in its metrics and its readiness.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub denied_limit: Duration,
}

choice! {
    /// A database of this configuration.
    pub enum LeaderDatabase {
        /// The event store's.
        EventStore = "event_store",
        /// The read model's.
        ReadModel = "read_model",
    }
}

choice! {
    /// What a leader leads.
    pub enum LeaderScope {
        /// One leader runs everything.
        Host = "host",
        /// Each projection has its own leader.
        Projection = "projection",
    }
}

/// Writes a key as the file would have it: as a short text where it is one.
fn key<S: Serializer>(key: &Key, to: S) -> Result<S::Ok, S::Error> {
    match *key {
        Key::Single(number) => match ascii(number) {
            Some(text) => to.serialize_str(&text),
            None => to.serialize_i64(number),
        },
        Key::Pair(namespace, id) => {
            std::collections::BTreeMap::from([("namespace", namespace), ("id", id)]).serialize(to)
        }
    }
}

/// The short text that gives this key again, if there is one.
fn ascii(number: i64) -> Option<String> {
    let bytes = number.to_be_bytes().into_iter().skip_while(|b| *b == 0);
    let text = String::from_utf8(bytes.collect()).ok()?;
    (Key::from_ascii(&text) == Some(Key::Single(number))).then_some(text)
}

/// In the JSON schema: the three forms of a key.
struct KeyForms;

impl JsonSchema for KeyForms {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "LeaderKey".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "oneOf": [
                {"type": "string", "minLength": 1, "maxLength": 8},
                {"type": "integer"},
                {
                    "type": "object",
                    "properties": {
                        "namespace": {"type": "integer"},
                        "id": {"type": "integer"},
                    },
                    "required": ["namespace", "id"],
                    "additionalProperties": false,
                },
            ]
        })
    }
}

impl Value for Key {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        let hint = "write 1 to 8 ASCII characters, an integer, or { namespace = 1, id = 2 }";
        match value {
            DeValue::String(text) => Self::from_ascii(text)
                .ok_or_else(|| Problem::new(MALFORMED, "is no lock key").hint(hint)),
            DeValue::Integer(_) => i64::read(value).map(Self::Single),
            DeValue::Table(parts) => {
                let part = |name: &str| {
                    let value = parts.get(name).ok_or_else(|| {
                        Problem::new(MALFORMED, format!("lacks `{name}`")).hint(hint)
                    })?;
                    let integer = i64::read(value.get_ref())?;
                    i32::try_from(integer).map_err(|_| {
                        Problem::new(
                            OUT_OF_RANGE,
                            format!("has a `{name}` that does not fit into 32 bits"),
                        )
                    })
                };
                if parts.len() > 2 {
                    return Err(Problem::new(
                        MALFORMED,
                        "has other parts than `namespace` and `id`",
                    )
                    .hint(hint));
                }
                Ok(Self::Pair(part("namespace")?, part("id")?))
            }
            other => Err(Problem::kind("a lock key", other).hint(hint)),
        }
    }
}

impl Default for Leader {
    fn default() -> Self {
        Self {
            group: "default".to_owned(),
            key: Key::Single(0x5049_434F_4351_5253),
            database: LeaderDatabase::EventStore,
            scope: LeaderScope::Host,
            retry_interval: Duration::from_millis(250),
            heartbeat_interval: Duration::from_secs(1),
            local_lease: Duration::from_secs(4),
            server_lease: Duration::from_secs(6),
            stall_limit: Duration::from_secs(60),
            resign_after_source_errors: Duration::from_secs(30),
            denied_limit: Duration::from_secs(60),
        }
    }
}

impl Leader {
    pub(in crate::config) fn read(mut table: Table<'_, '_>) -> Self {
        let default = Self::default();
        let hour = || within(Duration::from_millis(50), Duration::from_secs(3600));
        let section = Self {
            group: table.checked("group", default.group, value::name(GROUP_BYTES_MAX)),
            key: table.value("key", default.key),
            database: table.value("database", default.database),
            scope: table.value("scope", default.scope),
            retry_interval: table.checked("retry_interval", default.retry_interval, day),
            heartbeat_interval: table.checked(
                "heartbeat_interval",
                default.heartbeat_interval,
                hour(),
            ),
            local_lease: table.checked("local_lease", default.local_lease, hour()),
            server_lease: table.checked("server_lease", default.server_lease, hour()),
            stall_limit: table.checked("stall_limit", default.stall_limit, day),
            resign_after_source_errors: table.checked(
                "resign_after_source_errors",
                default.resign_after_source_errors,
                day,
            ),
            denied_limit: table.checked("denied_limit", default.denied_limit, day),
        };
        table.finish();
        section
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_as_the_text_that_gives_it_again() {
        assert_eq!(Leader::default().key, Key::Single(0x5049_434F_4351_5253));
        assert_eq!(ascii(0x5049_434F_4351_5253).as_deref(), Some("PICOCQRS"));
        for number in [0, -1, 0x41_00, i64::MIN] {
            assert_eq!(ascii(number), None);
        }
    }
}
