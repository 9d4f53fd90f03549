//! Reading payloads: fields with their types, in old and new shapes. A cell comes out as the comparison wants it:
//! UUIDs in lower case, times with exactly six fraction digits, whole numbers as JSON integers.

use serde_json::{Map, Value};

/// The fields of one payload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a>(&'a Map<String, Value>);

type Read<T = Value> = Result<T, String>;

impl<'a> Fields<'a> {
    pub(super) fn of(data: &'a Value) -> Read<Self> {
        let object = data.as_object().ok_or("the payload is no object")?;
        Ok(Self(object))
    }

    /// Null and absent are the same.
    fn given(self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn required(self, name: &str, read: impl Fn(&Value) -> Option<Value>) -> Read {
        let value = self.given(name).ok_or(format!("{name} is missing"))?;
        read(value).ok_or(format!("{name} is malformed"))
    }

    fn optional(self, name: &str, read: impl Fn(&Value) -> Option<Value>) -> Read {
        match self.given(name) {
            None => Ok(Value::Null),
            Some(value) => read(value).ok_or(format!("{name} is malformed")),
        }
    }

    pub(super) fn text(self, name: &str) -> Read {
        self.required(name, text)
    }

    pub(super) fn text_or_null(self, name: &str) -> Read {
        self.optional(name, text)
    }

    pub(super) fn uuid(self, name: &str) -> Read {
        self.required(name, uuid)
    }

    pub(super) fn uuid_or_null(self, name: &str) -> Read {
        self.optional(name, uuid)
    }

    pub(super) fn time(self, name: &str) -> Read {
        self.required(name, time)
    }

    pub(super) fn time_or_null(self, name: &str) -> Read {
        self.optional(name, time)
    }

    pub(super) fn integer(self, name: &str) -> Read {
        self.required(name, integer)
    }

    pub(super) fn integer_or_null(self, name: &str) -> Read {
        self.optional(name, integer)
    }

    /// A word of a closed list.
    pub(super) fn word(self, name: &str, list: &[&str]) -> Read {
        self.required(name, |value| {
            let word = value.as_str()?;
            list.contains(&word).then(|| word.into())
        })
    }

    /// The tenant, in the new shape or in the old one.
    pub(super) fn merchant(self) -> Read<String> {
        if self.given("merchant_id").is_some() {
            return self.uuid("merchant_id").map(into_text);
        }
        let from_schema = |value: &Value| {
            let schema = value.as_str()?;
            let hex = schema.get(schema.len().checked_sub(32)?..)?;
            if !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                return None;
            }
            let parts = [
                &hex[..8],
                &hex[8..12],
                &hex[12..16],
                &hex[16..20],
                &hex[20..],
            ];
            Some(parts.join("-").to_lowercase().into())
        };
        self.required("tenant_schema", from_schema).map(into_text)
    }

    /// The identifier; the newer name goes before the older one.
    pub(super) fn identifier(self, name: &str, old: Option<&str>) -> Read<String> {
        let name = match old {
            Some(old) if self.given(name).is_none() && self.given(old).is_some() => old,
            _ => name,
        };
        self.uuid(name).map(into_text)
    }
}

/// The text of a cell that is one.
pub(super) fn into_text(cell: Value) -> String {
    match cell {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

fn text(value: &Value) -> Option<Value> {
    value.as_str().map(Value::from)
}

fn uuid(value: &Value) -> Option<Value> {
    let text = value.as_str()?;
    let places: Vec<usize> = text.split('-').map(str::len).collect();
    let hex = text.bytes().filter(u8::is_ascii_hexdigit).count();
    (places == [8, 4, 4, 4, 12] && hex == 32).then(|| text.to_lowercase().into())
}

/// `…T08:30:00[.digits]Z` with the fraction cut or filled to six digits.
fn time(value: &Value) -> Option<Value> {
    let text = value.as_str()?.strip_suffix('Z')?;
    let (seconds, fraction) = match text.split_once('.') {
        Some((seconds, fraction)) if !fraction.is_empty() => (seconds, fraction),
        Some(_) => return None,
        None => (text, "0"),
    };
    let shape: String = seconds
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    if shape != "0000-00-00T00:00:00" || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let six: String = fraction.chars().chain("000000".chars()).take(6).collect();
    Some(format!("{seconds}.{six}Z").into())
}

/// A JSON number without an exponent, as the store gives it; a fraction must be zero.
fn integer(value: &Value) -> Option<Value> {
    let Value::Number(number) = value else {
        return None;
    };
    let number = number.to_string();
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if fraction.bytes().any(|byte| byte != b'0') {
        return None;
    }
    whole.parse::<i64>().ok().map(Value::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(read: fn(&Value) -> Option<Value>, input: &str, expected: Option<Value>) {
        let value = serde_json::from_str(input).expect("the input is JSON");
        assert_eq!(read(&value), expected, "{input}");
    }

    #[test]
    fn cells_are_read_as_the_domain_says() {
        check(
            time,
            r#""2026-03-01T08:30:00Z""#,
            Some(json!("2026-03-01T08:30:00.000000Z")),
        );
        check(
            time,
            r#""2026-03-01T08:30:00.1239999Z""#,
            Some(json!("2026-03-01T08:30:00.123999Z")),
        );
        check(time, r#""2026-03-01T08:30:00+00:00""#, None);
        check(time, r#""2026-03-01T08:30:00.Z""#, None);
        check(integer, "19900.0", Some(json!(19_900)));
        check(integer, "9223372036854775807.00", Some(json!(i64::MAX)));
        check(integer, "9223372036854775808", None);
        check(integer, "1.5", None);
        check(integer, r#""1""#, None);
        check(
            uuid,
            r#""0A1B2C3D-4e5f-6789-abcd-ef0123456789""#,
            Some(json!("0a1b2c3d-4e5f-6789-abcd-ef0123456789")),
        );
        check(uuid, r#""0a1b2c3d4e5f6789abcdef0123456789""#, None);
    }
}
