//! One column value, both ways.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::value::RawValue;

use super::Budget;
use super::cells::Members;
use crate::guest::bindings::Value;

/// Reads a value; see docs/plugins-json.md for the forms.
pub(super) fn read(raw: &RawValue, budget: &mut Budget) -> Result<Value, String> {
    let text = raw.get();
    budget.take(text.len())?;
    match text.as_bytes().first() {
        Some(b'n') => Ok(Value::Null),
        Some(b't') => Ok(Value::Boolean(true)),
        Some(b'f') => Ok(Value::Boolean(false)),
        Some(b'"') => Ok(Value::Text(parse(text)?)),
        Some(b'[') => {
            // An element is at least `"",`.
            budget.take(text.len() / 3 * size_of::<String>())?;
            parse(text).map(Value::Texts).map_err(|_| {
                "an array may hold only texts (for text[]); for jsonb use {\"json\": …}".into()
            })
        }
        Some(b'{') => tagged(raw, budget),
        _ => number(text),
    }
}

/// Writes a value the way a guest gets it.
pub(super) struct Written<'a>(pub(super) &'a Value);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Null | Value::Position => serializer.serialize_unit(),
            Value::Boolean(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.collect_str(value),
            Value::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            Value::Float(value) => one(serializer, "float", &value.to_string()),
            Value::Text(value) | Value::Other((_, value)) => serializer.serialize_str(value),
            Value::Bytes(value) => one(serializer, "bytes", &hex(value)),
            Value::Texts(values) => {
                let mut seq = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    seq.serialize_element(value)?;
                }
                seq.end()
            }
        }
    }
}

fn one<S: Serializer>(serializer: S, tag: &str, text: &str) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(tag, text)?;
    map.end()
}

fn number(text: &str) -> Result<Value, String> {
    if text.contains(['.', 'e', 'E']) {
        let value: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
        if value.is_finite() {
            return Ok(Value::Float(value));
        }
        return Err(format!("{text} does not fit a double; give it as text"));
    }
    text.parse()
        .map(Value::Int)
        .map_err(|_| format!("{text} does not fit 64 bits; give it as text"))
}

fn tagged(raw: &RawValue, budget: &mut Budget) -> Result<Value, String> {
    const FORMS: &str = "an object as value is one of {\"int\": \"…\"}, {\"float\": \"…\"}, {\"bytes\": \"hex\"}, \
         {\"json\": …}, {\"position\": true}, {\"other\": [\"type\", \"text\"]}";
    let members = Members::read(raw, budget)?;
    let [(tag, inner)] = members.as_slice() else {
        return Err(FORMS.into());
    };
    let text = inner.get();
    match &**tag {
        "int" => {
            let digits: Cow<'_, str> = parse(text)?;
            digits
                .parse()
                .map(Value::Int)
                .map_err(|_| "`int` is a text with a whole number of 64 bits".into())
        }
        "float" => {
            let digits: Cow<'_, str> = parse(text)?;
            digits
                .parse()
                .map(Value::Float)
                .map_err(|_| "`float` is a text with a number".into())
        }
        "bytes" => unhex(&parse::<Cow<'_, str>>(text)?).map(Value::Bytes),
        "json" => Ok(Value::Text(text.to_owned())),
        "position" if text == "true" => Ok(Value::Position),
        "other" => parse::<(String, String)>(text).map(Value::Other),
        _ => Err(FORMS.into()),
    }
}

fn parse<'a, T: serde::Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: &u8| {
        char::from(*byte)
            .to_digit(16)
            .and_then(|d| u8::try_from(d).ok())
    };
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if rest.is_empty() {
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|[high, low]| Some(digit(high)? << 4 | digit(low)?))
            .collect();
        if let Some(bytes) = bytes {
            return Ok(bytes);
        }
    }
    Err("`bytes` is a text of hexadecimal digits, two a byte".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Result<Value, &str>) {
        let raw: &RawValue = serde_json::from_str(json).expect("JSON");
        let found = read(raw, &mut Budget::new(10_000));
        match (found, expected) {
            (Ok(found), Ok(expected)) => {
                assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{json}")
            }
            (Err(found), Err(expected)) => assert!(found.contains(expected), "{json}: {found}"),
            (found, expected) => panic!("{json}: {found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn every_form_has_one_meaning() {
        check("null", Ok(Value::Null));
        check("true", Ok(Value::Boolean(true)));
        check("false", Ok(Value::Boolean(false)));
        check("9007199254740993", Ok(Value::Int(9_007_199_254_740_993)));
        check("-9223372036854775808", Ok(Value::Int(i64::MIN)));
        check("9223372036854775808", Err("does not fit 64 bits"));
        check("1.5", Ok(Value::Float(1.5)));
        check("1e400", Err("does not fit a double"));
        check(r#""a\u00e4""#, Ok(Value::Text("aä".into())));
        check(
            r#"["a","b"]"#,
            Ok(Value::Texts(vec!["a".into(), "b".into()])),
        );
        check("[1]", Err("only texts"));
        check(r#"{"int":"9223372036854775807"}"#, Ok(Value::Int(i64::MAX)));
        check(r#"{"int":"1.5"}"#, Err("whole number"));
        check(r#"{"bytes":"00fF"}"#, Ok(Value::Bytes(vec![0, 255])));
        check(r#"{"bytes":"0"}"#, Err("hexadecimal"));
        check(r#"{"bytes":"äz"}"#, Err("hexadecimal"));
        check(
            r#"{"json":{"a":[1.10]}}"#,
            Ok(Value::Text(r#"{"a":[1.10]}"#.into())),
        );
        check(r#"{"position":true}"#, Ok(Value::Position));
        check(r#"{"position":false}"#, Err("one of"));
        check(
            r#"{"other":["numeric","1.50"]}"#,
            Ok(Value::Other(("numeric".into(), "1.50".into()))),
        );
        check(r#"{"a":1,"b":2}"#, Err("one of"));
        check("{}", Err("one of"));
    }
}
