//! `[plugins]`: where components are found, and what they may use.

use std::path::PathBuf;
use std::time::Duration;

use bytesize::ByteSize;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use toml::de::DeValue;

use super::host::not_empty;
use crate::config::reading::Table;
use crate::config::value::{
    self, DurationText, Problem, SizeText, Value, choice, day, unlike, within,
};

/// Where components are found, and what they may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Plugins {
    /// Folder in which every `*.wasm` is a projection. Relative to this file's folder.
    pub dir: PathBuf,
    /// Whether changed files are taken up while the host runs; `"poll"` is for mounts that send no events.
    pub watch: Watch,
    /// What a changed file does to a projection that exists already.
    pub on_change: OnChange,
    /// What one call of a plugin may use.
    pub limits: Limits,
}

/// What one call of a plugin may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Linear memory.
    #[serde(serialize_with = "value::size")]
    #[schemars(with = "SizeText")]
    pub memory_max: ByteSize,
    /// Time on the clock.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub call_timeout: Duration,
    /// Stack. Holds for all plugins together: the engine is made with it.
    #[serde(serialize_with = "value::size")]
    #[schemars(with = "SizeText")]
    pub stack_max: ByteSize,
    /// Fuel, roughly instructions. Unlike time it ends an endless loop at the same place every time.
    pub fuel_max: u64,
    /// Writes that one batch may return.
    pub writes_per_batch_max: u32,
    /// Bytes that one batch may return.
    #[serde(serialize_with = "value::size")]
    #[schemars(with = "SizeText")]
    pub output_bytes_max: ByteSize,
}

/// Whether changed files are taken up while the host runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Only at start.
    Off,
    /// By events of the file system.
    On,
    /// By looking again and again.
    Poll,
}

choice! {
    /// What a changed file does to a projection that exists already.
    pub enum OnChange {
        /// The plugin that made the rows goes on until somebody accepts the file.
        Refuse = "refuse",
        /// The file goes on with tables and checkpoint, where what it declares fits them.
        Continue = "continue",
        /// The tables are emptied and the projection begins anew with the file. For development: a generation
        /// that is built beside the old one is not available yet.
        Rebuild = "rebuild",
    }
}

impl Serialize for Watch {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => to.serialize_bool(false),
            Self::On => to.serialize_bool(true),
            Self::Poll => to.serialize_str("poll"),
        }
    }
}

impl JsonSchema for Watch {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Watch".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"enum": [false, true, "poll"]})
    }
}

impl Value for Watch {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        match value {
            DeValue::Boolean(false) => Ok(Self::Off),
            DeValue::Boolean(true) => Ok(Self::On),
            DeValue::String(text) if text == "poll" => Ok(Self::Poll),
            other => Err(unlike("false, true or \"poll\"", &["poll"], other)),
        }
    }
}

impl Default for Plugins {
    fn default() -> Self {
        Self {
            dir: PathBuf::from("plugins"),
            watch: Watch::Off,
            on_change: OnChange::Refuse,
            limits: Limits::default(),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_max: ByteSize::mib(64),
            call_timeout: Duration::from_secs(5),
            stack_max: ByteSize::mib(1),
            fuel_max: 4_000_000_000,
            writes_per_batch_max: 100_000,
            output_bytes_max: ByteSize::mib(64),
        }
    }
}

impl Plugins {
    pub(in crate::config) fn read(mut table: Table<'_, '_>) -> Self {
        let default = Self::default();
        let section = Self {
            dir: table
                .optional("dir", not_empty)
                .map_or(default.dir, PathBuf::from),
            watch: table.value("watch", default.watch),
            on_change: table.value("on_change", default.on_change),
            limits: {
                let mut limits = table.section("limits");
                let default = default.limits;
                let stack_max = limits.checked(
                    "stack_max",
                    default.stack_max,
                    within(ByteSize::kib(64), ByteSize::mib(64)),
                );
                Limits {
                    stack_max,
                    ..Limits::read(limits, default)
                }
            },
        };
        table.finish();
        section
    }
}

impl Limits {
    /// Reads all bounds that a single projection may have; the stack is not one of them.
    pub(in crate::config) fn read(mut table: Table<'_, '_>, default: Self) -> Self {
        let section = Self {
            memory_max: table.checked(
                "memory_max",
                default.memory_max,
                within(ByteSize::kib(64), ByteSize::gib(4)),
            ),
            call_timeout: table.checked("call_timeout", default.call_timeout, day),
            stack_max: default.stack_max,
            fuel_max: table.checked("fuel_max", default.fuel_max, within(1, i64::MAX as u64)),
            writes_per_batch_max: table.checked(
                "writes_per_batch_max",
                default.writes_per_batch_max,
                within(1, 10_000_000),
            ),
            output_bytes_max: table.checked(
                "output_bytes_max",
                default.output_bytes_max,
                within(ByteSize::kib(1), ByteSize::gib(1)),
            ),
        };
        table.finish();
        section
    }
}
