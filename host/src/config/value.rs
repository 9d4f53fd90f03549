//! How single values are written in the file: durations, sizes, names, choices, and their bounds.
//!
//! Promises: a value is read from exactly one TOML type, and what is printed can be read again.

use std::fmt::Display;
use std::time::Duration;

use bytesize::ByteSize;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serializer;
use toml::de::DeValue;

use super::fault::{BAD_NAME, MALFORMED, OUT_OF_RANGE};
use crate::database::identifier::Identifier;
use crate::error::Code;

/// A value that the file can hold.
pub(super) trait Value: Sized {
    /// Reads it; the message of a problem follows the name of the key.
    fn read(value: &DeValue<'_>) -> Result<Self, Problem>;
}

/// Why a value is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) code: Code,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Problem {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: None,
        }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The value has another TOML type than expected.
    pub(super) fn kind(expected: &str, value: &DeValue<'_>) -> Self {
        Self::new(
            MALFORMED,
            format!("must be {expected}, not {}", article(value.type_str())),
        )
    }
}

/// A text form for messages.
pub(super) trait Shown {
    fn shown(&self) -> String;
}

impl Shown for Duration {
    fn shown(&self) -> String {
        format!("\"{}\"", humantime::format_duration(*self))
    }
}

impl Shown for ByteSize {
    fn shown(&self) -> String {
        format!("\"{}\"", size_text(*self))
    }
}

impl Shown for u32 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

impl Shown for u64 {
    fn shown(&self) -> String {
        self.to_string()
    }
}

/// A check that a value lies within bounds, both included.
pub(super) fn within<T: PartialOrd + Shown>(min: T, max: T) -> impl Fn(&T) -> Result<(), Problem> {
    move |value| {
        if *value >= min && *value <= max {
            return Ok(());
        }
        Err(Problem::new(
            OUT_OF_RANGE,
            format!(
                "is {}, but must lie between {} and {}",
                value.shown(),
                min.shown(),
                max.shown()
            ),
        ))
    }
}

/// The bounds of an ordinary duration: a millisecond to a day.
pub(super) fn day(value: &Duration) -> Result<(), Problem> {
    within(Duration::from_millis(1), Duration::from_secs(86_400))(value)
}

/// A check that a text is a name of at most so many bytes: ASCII letters, digits, `.`, `_` and `-`.
pub(super) fn name(bytes_max: usize) -> impl Fn(&String) -> Result<(), Problem> {
    move |value| {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if value.is_empty() {
            Err(Problem::new(BAD_NAME, "is empty"))
        } else if value.len() > bytes_max {
            Err(Problem::new(
                BAD_NAME,
                format!("has {} bytes, but may have {bytes_max}", value.len()),
            ))
        } else if let Some(c) = value.chars().find(|c| !fine(*c)) {
            Err(Problem::new(BAD_NAME, format!("has the character {c:?}"))
                .hint("use ASCII letters, digits, `.`, `_` and `-`"))
        } else {
            Ok(())
        }
    }
}

/// A check that a text is the name of an environment variable, and not what should stand in it.
pub(super) fn variable(value: &String) -> Result<(), Problem> {
    let fine = |(at, c): (usize, char)| {
        c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit())
    };
    if !value.is_empty() && value.chars().enumerate().all(fine) {
        return Ok(());
    }
    Err(
        Problem::new(BAD_NAME, "is not the name of an environment variable")
            .hint("put the secret into an environment variable and write its name here"),
    )
}

impl Value for String {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        value
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| Problem::kind("a text", value))
    }
}

impl Value for bool {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        value
            .as_bool()
            .ok_or_else(|| Problem::kind("true or false", value))
    }
}

impl Value for i64 {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        let integer = value
            .as_integer()
            .ok_or_else(|| Problem::kind("an integer", value))?;
        Self::from_str_radix(integer.as_str(), integer.radix())
            .map_err(|_| Problem::new(OUT_OF_RANGE, "does not fit into 64 bits"))
    }
}

impl Value for u64 {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        let integer = i64::read(value)?;
        Self::try_from(integer).map_err(|_| {
            Problem::new(
                OUT_OF_RANGE,
                format!("is {integer}, but cannot be negative"),
            )
        })
    }
}

impl Value for u32 {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        let integer = i64::read(value)?;
        Self::try_from(integer).map_err(|_| {
            Problem::new(
                OUT_OF_RANGE,
                format!("is {integer}, but must lie between 0 and {}", Self::MAX),
            )
        })
    }
}

impl Value for Duration {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        let hint = "write a number with a unit, such as \"250ms\", \"30s\" or \"5m\"";
        let text = value
            .as_str()
            .ok_or_else(|| Problem::kind("a duration in quotes", value).hint(hint))?;
        humantime::parse_duration(text)
            .map_err(|error| Problem::new(MALFORMED, format!("is no duration: {error}")).hint(hint))
    }
}

impl Value for ByteSize {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        let hint = "write a number with a unit, such as \"512KiB\", \"8MiB\" or \"1GiB\"";
        let text = value
            .as_str()
            .ok_or_else(|| Problem::kind("a size in quotes", value).hint(hint))?;
        let with_unit = text.chars().last().is_some_and(char::is_alphabetic);
        match text.parse() {
            Ok(size) if with_unit => Ok(size),
            _ => Err(Problem::new(MALFORMED, "is no size").hint(hint)),
        }
    }
}

impl Value for Identifier {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        Self::new(String::read(value)?)
            .map_err(|error| Problem::new(BAD_NAME, format!("is no schema name: {error}")))
    }
}

impl Value for Vec<String> {
    fn read(value: &DeValue<'_>) -> Result<Self, Problem> {
        value
            .as_array()
            .ok_or_else(|| Problem::kind("a list of texts", value))?
            .iter()
            .map(|item| {
                let item = item.get_ref();
                String::read(item).map_err(|_| Problem::kind("a list of texts only", item))
            })
            .collect()
    }
}

/// Writes a duration as text with units.
pub(super) fn duration<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&humantime::format_duration(*value))
}

/// Writes a size as text with a unit.
pub(super) fn size<S: Serializer>(value: &ByteSize, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&size_text(*value))
}

/// Writes anything that has a text form.
pub(super) fn text<T: Display, S: Serializer>(value: &T, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// A size in the largest unit that divides it.
pub(super) fn size_text(size: ByteSize) -> String {
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let bytes = size.as_u64();
    for (shift, unit) in units {
        if bytes >= 1 << shift && bytes.is_multiple_of(1 << shift) {
            return format!("{}{unit}", bytes >> shift);
        }
    }
    format!("{bytes}B")
}

/// In the JSON schema: a duration.
pub(super) struct DurationText;

impl JsonSchema for DurationText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "duration with unit", "pattern": "^[0-9].*[a-z]$"})
    }
}

/// In the JSON schema: a size.
pub(super) struct SizeText;

impl JsonSchema for SizeText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "size with unit", "pattern": "^[0-9].*[A-Za-z]$"})
    }
}

/// An enum whose variants are words in the file.
macro_rules! choice {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[doc = $doc:expr])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
        pub enum $name { $($(#[doc = $doc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// The word in the file.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl $crate::config::value::Value for $name {
            fn read(value: &toml::de::DeValue<'_>) -> Result<Self, $crate::config::value::Problem> {
                let words = [$($text),+];
                match value.as_str() {
                    $(Some($text) => Ok(Self::$variant),)+
                    _ => Err($crate::config::value::not_among(&words, value)),
                }
            }
        }
    };
}
pub(super) use choice;

/// The problem of a word that is not in the list.
pub(super) fn not_among(words: &[&str], value: &DeValue<'_>) -> Problem {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    unlike(&format!("one of {}", quoted.join(", ")), words, value)
}

/// The problem of a value that is none of the expected ones, some of which are words.
pub(super) fn unlike(expected: &str, words: &[&str], value: &DeValue<'_>) -> Problem {
    match value.as_str() {
        None => Problem::kind(expected, value),
        Some(text) => {
            let problem = Problem::new(MALFORMED, format!("is {text:?}, but must be {expected}"));
            match closest(text, words.iter().copied()) {
                Some(word) => problem.hint(format!("did you mean \"{word}\"?")),
                None => problem,
            }
        }
    }
}

/// The candidate that somebody probably meant.
pub(crate) fn closest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    const SIMILARITY_MIN: f64 = 0.8;
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(word, candidate), candidate))
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}

fn article(kind: &str) -> String {
    match kind {
        "string" => "a text".to_owned(),
        "integer" | "array" => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_are_printed_as_they_can_be_read_again() {
        for text in ["8MiB", "1GiB", "1KiB", "1500B"] {
            let size: ByteSize = text.parse().expect("a size");
            assert_eq!(size_text(size), text);
        }
        assert_eq!(Duration::from_millis(250).shown(), "\"250ms\"");
    }

    #[test]
    fn the_closest_word_is_proposed_and_a_distant_one_is_not() {
        let words = ["poll_interval", "notify", "schema"];
        assert_eq!(closest("pol_intervall", words), Some("poll_interval"));
        assert_eq!(closest("shema", words), Some("schema"));
        assert_eq!(closest("zzz", words), None);
    }
}
