//! Reading an event's payload into a type of the plugin's own.

use serde::Deserialize;
use serde_json::error::Category;

use crate::contract::Text;
use crate::failure::Failure;
use crate::types::Timestamp;

/// One event as the store holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
pub struct Event {
    /// Rises strictly inside a batch and over batches.
    pub position: u64,
    /// The event's own identifier.
    pub id: Text,
    /// The stream that it belongs to.
    pub stream: Text,
    /// Place within the stream, from 1; 0 when the store has none.
    pub version: u64,
    /// Its type.
    pub event_type: Text,
    /// Version of the payload's shape.
    pub schema_version: u32,
    /// Microseconds since 1970-01-01T00:00:00Z.
    pub recorded_at: i64,
    /// JSON text as stored; see [`data`](Self::data).
    pub data: Text,
    /// JSON text, `{}` when absent.
    pub metadata: Text,
}

impl Event {
    /// The payload, which must be a JSON object. Unknown fields are ignored unless `T` says otherwise; an absent
    /// field and null both become `None`.
    ///
    /// # Errors
    ///
    /// Rejects the event with `missing-field`, `invalid-field` or `malformed-json`; the message names the field.
    pub fn data<T: Deserialize<'static>>(&self) -> Result<T, Failure> {
        object(self.data.as_str())
    }

    /// The metadata, read like [`data`](Self::data).
    ///
    /// # Errors
    ///
    /// As [`data`](Self::data).
    pub fn metadata<T: Deserialize<'static>>(&self) -> Result<T, Failure> {
        object(self.metadata.as_str())
    }

    /// When the store recorded the event.
    #[must_use]
    pub fn recorded_at(&self) -> Timestamp {
        Timestamp::from_micros(self.recorded_at)
    }
}

fn object<'text, T: Deserialize<'text>>(text: &'text str) -> Result<T, Failure> {
    // A list would otherwise be taken for the fields in their order.
    let is_object = text.trim_start().starts_with('{');
    match serde_json::from_str(text) {
        Ok(value) if is_object => Ok(value),
        Ok(_) => Err(not_an_object()),
        Err(error) if error.is_data() && !is_object => Err(not_an_object()),
        Err(_) => Err(explain::<T>(text)),
    }
}

fn not_an_object() -> Failure {
    Failure::rejected("malformed-json", "the payload is no JSON object")
}

/// Reads once more, slower, to learn which field it was.
#[cold]
fn explain<'text, T: Deserialize<'text>>(text: &'text str) -> Failure {
    let mut json = serde_json::Deserializer::from_str(text);
    let (path, error) = match serde_path_to_error::deserialize::<_, T>(&mut json) {
        Err(error) => (error.path().to_string(), error.into_inner()),
        Ok(_) => match json.end() {
            Err(error) => (".".to_owned(), error),
            Ok(()) => return Failure::rejected("malformed-json", "the payload cannot be read"),
        },
    };
    let reason = error.to_string();
    if error.classify() != Category::Data {
        return Failure::rejected("malformed-json", in_field(&path, &reason));
    }
    let code = if reason.starts_with("missing field") {
        "missing-field"
    } else {
        "invalid-field"
    };
    Failure::rejected(code, in_field(&path, &reason))
}

fn in_field(path: &str, reason: &str) -> String {
    if path == "." {
        reason.to_owned()
    } else {
        format!("field `{path}`: {reason}")
    }
}

#[cfg(test)]
mod tests {
    use super::object;
    use crate::types::{Integer, Timestamp, Uuid};

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Paid {
        order: Uuid,
        cents: Integer,
        at: Option<Timestamp>,
        note: Option<String>,
    }

    const ORDER: &str = "0a1b2c3d-4e5f-6789-abcd-ef0123456789";

    fn check(fields: &str, expected: Result<(), (&str, &str)>) {
        let text = fields.replace("$order", &format!("\"order\":\"{ORDER}\""));
        match (object::<Paid>(&text), expected) {
            (Ok(_), Ok(())) => {}
            (Err(failure), Err((code, part))) => {
                assert_eq!(failure.code(), code, "{text}: {failure}");
                assert!(failure.message().contains(part), "{text}: {failure}");
            }
            (found, _) => panic!("{text}: {found:?}"),
        }
    }

    #[test]
    fn absent_and_null_are_the_same_and_unknown_fields_are_ignored() {
        check(r#"{$order,"cents":1}"#, Ok(()));
        check(
            r#" {$order,"cents":1.0,"at":null,"note":null,"more":{"x":[1]}} "#,
            Ok(()),
        );
    }

    #[test]
    fn faults_name_the_field() {
        check(r#"{$order}"#, Err(("missing-field", "`cents`")));
        check(
            r#"{$order,"cents":null}"#,
            Err(("invalid-field", "`cents`")),
        );
        check(r#"{$order,"cents":"1"}"#, Err(("invalid-field", "`cents`")));
        check(r#"{$order,"cents":1.5}"#, Err(("invalid-field", "`cents`")));
        check(
            r#"{$order,"cents":1,"at":"today"}"#,
            Err(("invalid-field", "`at`")),
        );
        check(
            r#"{$order,"cents":1,"note":7}"#,
            Err(("invalid-field", "`note`")),
        );
        check(
            r#"{"order":"x","cents":1}"#,
            Err(("invalid-field", "`order`")),
        );
        check(
            r#"{$order,"cents":1,"note":"\ud800"}"#,
            Err(("malformed-json", "`note`")),
        );
    }

    #[test]
    fn only_an_object_is_a_payload() {
        check(
            &format!(r#"["{ORDER}",1,null,null]"#),
            Err(("malformed-json", "object")),
        );
        check("null", Err(("malformed-json", "object")));
        check("", Err(("malformed-json", "EOF")));
        check("{", Err(("malformed-json", "EOF")));
        check(
            r#"{$order,"cents":1} x"#,
            Err(("malformed-json", "trailing")),
        );
    }
}
