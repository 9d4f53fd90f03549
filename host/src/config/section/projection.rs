//! `[defaults]` and `[[projection]]`: how each projection runs.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use toml::de::DeValue;

use super::host::not_empty;
use super::plugins::Limits;
use crate::config::fault::{BAD_NAME, MALFORMED, OUT_OF_RANGE};
use crate::config::reading::Table;
use crate::config::value::{self, DurationText, Problem, Value, choice, day, unlike, within};
use crate::event_store::event::Position;

/// Longest name of a projection, in bytes: `<name>_g<n>` has to be a schema name.
const NAME_BYTES_MAX: usize = 48;

/// How projections run unless `[[projection]]` says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Defaults {
    /// What happens at an event that cannot be applied.
    pub on_error: OnError,
    /// How steps that may succeed later are tried again.
    pub retry: Retry,
    /// Where a projection begins that never ran: `"beginning"`, `"now"`, or after a position.
    pub start_from: StartFrom,
}

choice! {
    /// What happens at an event that cannot be applied.
    pub enum OnError {
        /// The projection stops; others go on.
        Stop = "stop",
        /// The event and every later one of its stream become dead letters; other streams go on.
        Park = "park",
        /// The event becomes a dead letter; everything else goes on.
        Skip = "skip",
    }
}

/// How steps that may succeed later are tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retry {
    /// Attempts at one event before `on_error` decides. A database at fault has no such limit.
    pub attempts_max: u32,
    /// First pause; it doubles each time, with jitter.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub initial: Duration,
    /// Longest pause.
    #[serde(serialize_with = "value::duration")]
    #[schemars(with = "DurationText")]
    pub max: Duration,
}

/// Where a projection begins that never ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFrom {
    /// Before the first event.
    Beginning,
    /// After the last event that is there now.
    Now,
    /// After this position.
    Position(Position),
}

/// One projection's own settings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Projection {
    /// The name that the plugin gives itself.
    pub name: String,
    /// The plugin's file; `NAME.wasm` in the plugins folder unless set. A bare file name is looked for in the
    /// plugins folder, a path is relative to this file's folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub component: Option<PathBuf>,
    /// SHA-256 of the plugin's file, 64 hexadecimal digits; another file is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Handed to the plugin's `describe` as JSON.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub config: serde_json::Map<String, serde_json::Value>,
    /// Names of WASI interfaces beyond the closed deterministic ones.
    #[serde(default)]
    pub wasi: Vec<String>,
    /// Instead of `[defaults] on_error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_error: Option<OnError>,
    /// Instead of `[defaults] retry`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Instead of `[defaults] start_from`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_from: Option<StartFrom>,
    /// Instead of `[plugins.limits]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
}

impl fmt::Display for StartFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beginning => f.write_str("beginning"),
            Self::Now => f.write_str("now"),
            Self::Position(position) => position.fmt(f),
        }
    }
}

impl Serialize for StartFrom {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Position(position) => to.serialize_i64(position.0),
            word => to.collect_str(word),
        }
    }
}

impl JsonSchema for StartFrom {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StartFrom".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [
            {"enum": ["beginning", "now"]},
            {"type": "integer", "minimum": 0},
        ]})
    }
}

impl Value for StartFrom {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        match value {
            DeValue::String(text) if text == "beginning" => Ok(Self::Beginning),
            DeValue::String(text) if text == "now" => Ok(Self::Now),
            DeValue::Integer(_) => match i64::read(value)? {
                position @ 0.. => Ok(Self::Position(Position(position))),
                below => Err(Problem::new(
                    OUT_OF_RANGE,
                    format!("is {below}, but positions begin at 0"),
                )),
            },
            other => Err(unlike(
                "\"beginning\", \"now\" or a position such as 1200",
                &["beginning", "now"],
                other,
            )),
        }
    }
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            on_error: OnError::Stop,
            retry: Retry::default(),
            start_from: StartFrom::Beginning,
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts_max: 10,
            initial: Duration::from_millis(100),
            max: Duration::from_secs(30),
        }
    }
}

impl Defaults {
    pub(in crate::config) fn read(mut table: Table<'_, '_>) -> Self {
        let default = Self::default();
        let section = Self {
            on_error: table.value("on_error", default.on_error),
            retry: Retry::read(table.section("retry"), default.retry),
            start_from: table.value("start_from", default.start_from),
        };
        table.finish();
        section
    }
}

impl Retry {
    fn read(mut table: Table<'_, '_>, default: Self) -> Self {
        let section = Self {
            attempts_max: table.checked("attempts_max", default.attempts_max, within(1, 1_000_000)),
            initial: table.checked("initial", default.initial, day),
            max: table.checked("max", default.max, day),
        };
        table.finish();
        section
    }
}

impl Projection {
    pub(in crate::config) fn read(
        mut table: Table<'_, '_>,
        retry: &Retry,
        limits: &Limits,
    ) -> Self {
        let name = table.optional("name", is_name);
        if name.is_none() && !table.has("name") {
            table.problem(
                Problem::new(MALFORMED, "lacks `name`")
                    .hint("every [[projection]] says whose settings it holds: name = \"order\""),
            );
        }
        let projection = Self {
            name: name.unwrap_or_default(),
            component: table.optional("component", not_empty).map(PathBuf::from),
            sha256: table
                .optional("sha256", is_sha256)
                .map(|digest: String| digest.to_ascii_lowercase()),
            config: table.value("config", serde_json::Map::new()),
            wasi: table.value("wasi", Vec::new()),
            on_error: table.optional("on_error", |_| Ok(())),
            retry: table
                .has("retry")
                .then(|| Retry::read(table.section("retry"), retry.clone())),
            start_from: table.optional("start_from", |_| Ok(())),
            limits: table
                .has("limits")
                .then(|| Limits::read(table.section("limits"), limits.clone())),
        };
        for key in ["retry", "limits"] {
            table.skip(key);
        }
        table.finish();
        projection
    }
}

impl Value for serde_json::Map<String, serde_json::Value> {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        match json(value)? {
            serde_json::Value::Object(map) => Ok(map),
            _ => Err(Problem::kind("a table", value)),
        }
    }
}

/// TOML as JSON: dates become texts; a float that JSON does not have is refused.
fn json(value: &DeValue<'_>) -> Result<serde_json::Value, Problem> {
    Ok(match value {
        DeValue::String(text) => serde_json::Value::from(text.as_ref()),
        DeValue::Integer(_) => serde_json::Value::from(i64::read(value)?),
        DeValue::Float(number) => {
            let text = number.as_str();
            text.parse()
                .ok()
                .and_then(serde_json::Number::from_f64)
                .map(serde_json::Value::Number)
                .ok_or_else(|| {
                    Problem::new(MALFORMED, format!("holds {text}, which JSON does not have"))
                })?
        }
        DeValue::Boolean(flag) => serde_json::Value::from(*flag),
        DeValue::Datetime(time) => serde_json::Value::from(time.to_string()),
        DeValue::Array(items) => items
            .iter()
            .map(|item| json(item.get_ref()))
            .collect::<Result<Vec<_>, _>>()?
            .into(),
        DeValue::Table(entries) => entries
            .iter()
            .map(|(key, item)| Ok((key.get_ref().to_string(), json(item.get_ref())?)))
            .collect::<Result<serde_json::Map<_, _>, Problem>>()?
            .into(),
    })
}

/// A projection's name: lower-case words with `-` or `_`, so that it can be part of a schema name.
pub(in crate::config) fn is_name(name: &String) -> Result<(), Problem> {
    let hint =
        "begin with a lower-case letter and go on with lower-case letters, digits, `-` and `_`";
    let fine = |(at, c): (usize, char)| match c {
        'a'..='z' => true,
        '0'..='9' | '-' | '_' => at > 0,
        _ => false,
    };
    if name.len() > NAME_BYTES_MAX {
        let message = format!("has {} bytes, but may have {NAME_BYTES_MAX}", name.len());
        Err(Problem::new(BAD_NAME, message))
    } else if name.is_empty() || !name.chars().enumerate().all(fine) {
        Err(Problem::new(BAD_NAME, "is no name of a projection").hint(hint))
    } else {
        Ok(())
    }
}

fn is_sha256(digest: &String) -> Result<(), Problem> {
    if digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(Problem::new(MALFORMED, "is no SHA-256 digest")
        .hint("write the 64 hexadecimal digits that `sha256sum FILE` prints"))
}
