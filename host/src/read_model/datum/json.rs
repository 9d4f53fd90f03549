//! Whether a JSON text can stand in a jsonb column.
//!
//! PostgreSQL refuses some legal JSON: NUL and lone surrogates in strings. Such a text is found here, so that
//! the message can name the column and the transaction is not lost.

use serde::de::IgnoredAny;

use super::text::shown;

/// Largest exponent that surely fits numeric, which jsonb numbers are kept as.
const EXPONENT_MAX: u32 = 16_000;

pub(super) fn storable(text: &str) -> Result<(), String> {
    serde_json::from_str::<IgnoredAny>(text)
        .map_err(|error| format!("the text {} is not JSON: {error}", shown(text)))?;
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut in_string = false;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => in_string = !in_string,
            b'\\' if in_string => {
                if bytes.get(at + 1) == Some(&b'u') {
                    at = escape(text, at)?;
                    continue;
                }
                at += 1;
            }
            b'e' | b'E' if !in_string && at > 0 && (bytes[at - 1].is_ascii_digit()) => {
                exponent(text, at)?
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// Checks the `\u` escape at `at`; returns where to go on.
fn escape(text: &str, at: usize) -> Result<usize, String> {
    let unit = |at: usize| {
        text.get(at + 2..at + 6)
            .and_then(|hex| u16::from_str_radix(hex, 16).ok())
    };
    match unit(at) {
        Some(0) => Err(format!(
            "the JSON text has a NUL character at byte {at}, which PostgreSQL cannot store"
        )),
        Some(0xD800..=0xDBFF) => {
            let low = (text.get(at + 6..at + 8) == Some("\\u"))
                .then(|| unit(at + 6))
                .flatten();
            match low {
                Some(0xDC00..=0xDFFF) => Ok(at + 12),
                _ => Err(lone(at)),
            }
        }
        Some(0xDC00..=0xDFFF) => Err(lone(at)),
        _ => Ok(at + 6),
    }
}

fn lone(at: usize) -> String {
    format!(
        "the JSON text has half of a surrogate pair at byte {at}, which PostgreSQL cannot store"
    )
}

fn exponent(text: &str, at: usize) -> Result<(), String> {
    let digits: String = text[at + 1..]
        .trim_start_matches(['+', '-'])
        .chars()
        .take_while(char::is_ascii_digit)
        .collect();
    match digits.parse::<u32>() {
        Ok(exponent) if exponent <= EXPONENT_MAX => Ok(()),
        _ => Err(format!(
            "the JSON text has a number with the exponent {digits} at byte {at}, too large to store"
        )),
    }
}
