//! One form for each value, so that a row reads the same whether the host answered it or this batch wrote it.
//!
//! A value that does not fit its column is left as it is: the host refuses the write, and the batch with it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::description::ColumnType;
use crate::types::{Decimal, Timestamp, Uuid};
use crate::value::Value;

/// JSON nested deeper than this is left as it is.
const DEPTH_MAX: usize = 128;

/// The form that the host answers for a column of this type: `int` for bigint, `float` for double precision,
/// `boolean`, `bytes`, `texts`, and canonical text for all others. `position` is that of the write's event.
pub(crate) fn canonical(column_type: ColumnType, value: Value, position: u64) -> Value {
    let fitting = match (column_type, value) {
        (_, Value::Null) => return Value::Null,
        (_, Value::Position) => {
            let number = i64::try_from(position).unwrap_or(i64::MAX);
            return canonical(column_type, Value::Int(number), position);
        }
        (ColumnType::Text, Value::Text(_)) | (ColumnType::BigInt, Value::Int(_)) => None,
        (ColumnType::Uuid, Value::Text(text)) if Uuid::is_final(&text) => None,
        (ColumnType::Timestamptz, Value::Text(text)) if Timestamp::is_final(&text) => None,
        (ColumnType::BigInt, Value::Text(text) | Value::Other(_, text)) => {
            whole(&text).map(Value::Int)
        }
        (ColumnType::Double, Value::Int(number)) => Some(Value::Float(number as f64)),
        // There is one zero.
        (ColumnType::Double, Value::Float(number)) => (number == 0.0).then_some(Value::Float(0.0)),
        (ColumnType::Double, Value::Text(text) | Value::Other(_, text)) => {
            let number = text.parse().ok();
            number.map(|number: f64| Value::Float(if number == 0.0 { 0.0 } else { number }))
        }
        (ColumnType::BigInt, Value::Float(number)) => Decimal::parse(&number.to_string())
            .and_then(|number| number.to_i64())
            .map(Value::Int),
        (ColumnType::Boolean, Value::Text(text) | Value::Other(_, text)) => match text.as_str() {
            "true" | "t" => Some(Value::Boolean(true)),
            "false" | "f" => Some(Value::Boolean(false)),
            _ => None,
        },
        (ColumnType::Numeric, Value::Int(number)) => Some(number.to_string().into()),
        (ColumnType::Numeric, Value::Float(number)) => Some(number.to_string().into()),
        (ColumnType::Numeric, Value::Text(text) | Value::Other(_, text)) => {
            Decimal::parse(&text).map(|number| number.to_string().into())
        }
        (ColumnType::Timestamptz, Value::Text(text) | Value::Other(_, text)) => {
            Timestamp::parse_with_offset(&text).map(Value::from)
        }
        (ColumnType::Uuid, Value::Text(text) | Value::Other(_, text)) => {
            uuid(&text).map(Value::from)
        }
        (ColumnType::Bytea, Value::Text(text) | Value::Other(_, text)) => bytes(&text),
        (ColumnType::Jsonb, Value::Text(text) | Value::Other(_, text)) => {
            json(&text).map(Value::from)
        }
        (ColumnType::Text | ColumnType::Date, Value::Other(_, text)) => Some(Value::Text(text)),
        _ => None,
    };
    fitting.unwrap_or(value)
}

/// The form of a part of a key, in which equal keys are equal: a numeric without the zeros that end its fraction.
pub(crate) fn canonical_key(column_type: ColumnType, value: Value, position: u64) -> Value {
    match (column_type, canonical(column_type, value, position)) {
        (ColumnType::Numeric, Value::Text(text)) if text.contains('.') => {
            Value::from(text.trim_end_matches('0').trim_end_matches('.'))
        }
        (_, value) => value,
    }
}

/// With or without dashes, as the host reads it.
pub(crate) fn uuid(text: &str) -> Option<Uuid> {
    Uuid::parse(text).or_else(|| Uuid::parse_simple(text))
}

/// `\x` and two hexadecimal digits a byte.
fn bytes(text: &str) -> Option<Value> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let (pairs, rest) = digits.as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |&[high, low]: &[u8; 2]| Some((digit(high)? << 4 | digit(low)?) as u8);
    let bytes: Vec<u8> = pairs.iter().map(byte).collect::<Option<_>>()?;
    rest.is_empty().then(|| Value::Bytes(bytes.into()))
}

fn whole(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| Decimal::parse(text)?.to_i64())
}

/// JSON as `jsonb` keeps it: the last of equal keys, keys by length and then by bytes, plain numbers; compact.
fn json(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    write_json(text, DEPTH_MAX, &mut out)?;
    Some(out)
}

fn write_json(text: &str, depth: usize, out: &mut String) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let text = text.trim();
    match text.as_bytes().first()? {
        b'{' => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            let mut members: Vec<_> = members.into_iter().collect();
            members.sort_by(|(left, _), (right, _)| (left.len(), left).cmp(&(right.len(), right)));
            for (place, (name, value)) in members.iter().enumerate() {
                out.push(if place == 0 { '{' } else { ',' });
                out.push_str(&serde_json::to_string(name).ok()?);
                out.push(':');
                write_json(value.get(), depth, out)?;
            }
            out.push_str(if members.is_empty() { "{}" } else { "}" });
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            for (place, value) in items.iter().enumerate() {
                out.push(if place == 0 { '[' } else { ',' });
                write_json(value.get(), depth, out)?;
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        b'"' => {
            let value: String = serde_json::from_str(text).ok()?;
            out.push_str(&serde_json::to_string(&value).ok()?);
        }
        b't' | b'f' | b'n' => {
            serde_json::from_str::<&RawValue>(text).ok()?;
            out.push_str(text);
        }
        _ => {
            serde_json::from_str::<&RawValue>(text).ok()?;
            out.push_str(&Decimal::parse(text)?.to_string());
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::{canonical, canonical_key, json};
    use crate::description::ColumnType;
    use crate::value::Value;

    fn check(column_type: ColumnType, value: impl Into<Value>, expected: impl Into<Value>) {
        let value = value.into();
        let described = format!("{value:?} as {column_type:?}");
        assert_eq!(
            canonical(column_type, value, 7),
            expected.into(),
            "{described}"
        );
    }

    #[test]
    fn values_take_the_form_that_the_host_answers() {
        check(ColumnType::BigInt, Value::Position, 7_i64);
        check(ColumnType::Numeric, Value::Position, "7");
        check(ColumnType::BigInt, "42", 42_i64);
        check(
            ColumnType::BigInt,
            "99999999999999999999",
            "99999999999999999999",
        );
        check(ColumnType::Double, 2_i64, 2.0);
        check(ColumnType::Double, "0.5", 0.5);
        check(ColumnType::Boolean, "true", true);
        check(ColumnType::Numeric, "+01.50", "1.50");
        check(
            ColumnType::Timestamptz,
            "2026-01-01T08:00:00.1234567+08:00",
            "2026-01-01T00:00:00.123456Z",
        );
        check(
            ColumnType::Uuid,
            "0A1B2C3D-4E5F-6789-ABCD-EF0123456789",
            "0a1b2c3d-4e5f-6789-abcd-ef0123456789",
        );
        check(
            ColumnType::Uuid,
            "0a1b2c3d4e5f6789abcdef0123456789",
            "0a1b2c3d-4e5f-6789-abcd-ef0123456789",
        );
        check(ColumnType::Uuid, "nonsense", "nonsense");
        check(ColumnType::Bytea, "\\x0aFF", vec![10_u8, 255]);
        check(ColumnType::Bytea, "\\x0", "\\x0");
        check(ColumnType::Boolean, "t", true);
        check(ColumnType::BigInt, 2.0, 2_i64);
        for zero in ["-0", "-0.0", "0", "-0e5"] {
            // Compared by their bits, since the two zeros are equal.
            let found = canonical(ColumnType::Double, zero.into(), 7);
            assert_eq!(
                format!("{found:?}"),
                format!("{:?}", Value::Float(0.0)),
                "{zero}"
            );
        }
        check(
            ColumnType::Timestamptz,
            "2026-01-01 08:00:00+08",
            "2026-01-01T00:00:00Z",
        );
        check(
            ColumnType::Timestamptz,
            "0001-01-01T00:00:00+01:00",
            "0001-01-01T00:00:00+01:00",
        );
        check(ColumnType::Text, Value::Null, Value::Null);
    }

    #[test]
    fn equal_parts_of_keys_have_one_form() {
        for (text, expected) in [
            ("1.00", "1"),
            ("1.0", "1"),
            ("1", "1"),
            ("100", "100"),
            ("1e2", "100"),
            ("-0.00", "0"),
            ("10.50", "10.5"),
        ] {
            let found = canonical_key(ColumnType::Numeric, text.into(), 7);
            assert_eq!(found, Value::from(expected), "{text}");
        }
    }

    #[test]
    fn json_takes_the_form_of_jsonb() {
        for (text, expected) in [
            (
                r#" {"bb":1, "a":[1e2, -0.0, 1.50], "bb": {"x":"\u00e9"}} "#,
                Some(r#"{"a":[100,0.0,1.50],"bb":{"x":"é"}}"#),
            ),
            ("{}", Some("{}")),
            ("[ ]", Some("[]")),
            ("null", Some("null")),
            ("nul", None),
            ("01", None),
            ("{\"a\":}", None),
        ] {
            assert_eq!(json(text).as_deref(), expected, "{text}");
        }
        assert_eq!(json(&"[".repeat(200)), None);
    }
}
