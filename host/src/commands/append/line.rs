//! One line: which keys it may have, and whether each value is one that the store takes.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::database::jsonb;

/// The keys of a line.
const KEYS: [&str; 7] = [
    "stream",
    "type",
    "data",
    "metadata",
    "id",
    "expected_version",
    "schema_version",
];

const STREAM_BYTES_MAX: usize = 1024;
const TYPE_BYTES_MAX: usize = 256;

/// How alike a key must be to be suggested, from 0 to 1.
const SUGGESTION_MIN: f64 = 0.7;

/// The keys and raw values of an object, in order.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

/// A key that may be escaped.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// Checks a line; the error is a sentence part that follows `file:line: `.
pub(super) fn check(text: &str) -> Result<(), String> {
    if !text.starts_with('{') {
        return match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => Err("is no JSON object".to_owned()),
            Err(error) => Err(no_json(&error)),
        };
    }
    let Fields(fields) = serde_json::from_str(text).map_err(|error| no_json(&error))?;
    for (at, (key, value)) in fields.iter().enumerate() {
        if !KEYS.contains(&key.as_ref()) {
            return Err(unknown(key));
        }
        if fields[..at].iter().any(|(earlier, _)| earlier == key) {
            return Err(format!("has the key \"{key}\" twice"));
        }
        field(key, value.get()).map_err(|text| format!("\"{key}\" {text}"))?;
    }
    for needed in ["stream", "type", "data"] {
        if !fields.iter().any(|(key, _)| key == needed) {
            return Err(format!("\"{needed}\" is missing"));
        }
    }
    Ok(())
}

fn field(key: &str, raw: &str) -> Result<(), String> {
    if let Some(fault) = jsonb::fault(raw) {
        return Err(fault);
    }
    match key {
        "stream" => name(raw, STREAM_BYTES_MAX),
        "type" => name(raw, TYPE_BYTES_MAX),
        "data" => Ok(()),
        _ if raw == "null" => Ok(()),
        "metadata" if raw.starts_with('{') => Ok(()),
        "metadata" => Err(format!("is {}, not an object", kind(raw))),
        "id" => identifier(raw),
        "schema_version" => whole(raw, 1, i64::from(i32::MAX)),
        _ => whole(raw, 0, i64::MAX),
    }
}

fn name(raw: &str, bytes_max: usize) -> Result<(), String> {
    let text: String =
        serde_json::from_str(raw).map_err(|_| format!("is {}, not a text", kind(raw)))?;
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    if text.len() > bytes_max {
        return Err(format!("is longer than {bytes_max} bytes"));
    }
    Ok(())
}

fn identifier(raw: &str) -> Result<(), String> {
    let text: String =
        serde_json::from_str(raw).map_err(|_| format!("is {}, not a UUID", kind(raw)))?;
    if text.len() != 36 || Uuid::try_parse(&text).is_err() {
        let shown: String = text.chars().take(60).collect();
        return Err(format!(
            "is {shown:?}, no UUID such as \"9ad91b6c-34b0-4fc3-8bbb-0d6d1d32e000\""
        ));
    }
    Ok(())
}

fn whole(raw: &str, min: i64, max: i64) -> Result<(), String> {
    let fault = || {
        let shown: String = raw.chars().take(40).collect();
        format!("is {shown}, not a whole number from {min} to {max}")
    };
    let number: i64 = raw.parse().map_err(|_| fault())?;
    if number < min || number > max {
        return Err(fault());
    }
    Ok(())
}

fn kind(raw: &str) -> &'static str {
    match raw.as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "a truth value",
        Some(b'n') => "null",
        _ => "a number",
    }
}

fn unknown(key: &str) -> String {
    let shown: String = key.chars().take(60).collect();
    let nearest = KEYS
        .iter()
        .map(|known| (strsim::jaro_winkler(key, known), *known))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((likeness, known)) if likeness >= SUGGESTION_MIN => {
            format!("has the unknown key {shown:?}; did you mean \"{known}\"?")
        }
        _ => format!(
            "has the unknown key {shown:?}; the keys are {}",
            KEYS.join(", ")
        ),
    }
}

/// serde_json counts lines of its own; here there is one.
fn no_json(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    format!("is no valid JSON: {text} at column {}", error.column())
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Fields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::with_capacity(KEYS.len());
                while let Some((Key(key), value)) = map.next_entry()? {
                    fields.push((key, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Map)
    }
}

#[cfg(test)]
#[path = "line/tests.rs"]
mod tests;
