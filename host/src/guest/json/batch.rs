//! Events as the JSON text that an interpreted guest gets.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::event_store::event::Event;
use crate::guest::error::{CallError, Category};

#[derive(Serialize)]
struct JsonEvent<'a> {
    position: String,
    id: &'a str,
    stream: &'a str,
    version: String,
    #[serde(rename = "type")]
    event_type: &'a str,
    schema_version: i32,
    recorded_at: String,
    data: &'a RawValue,
    metadata: &'a RawValue,
}

/// The text for a batch.
///
/// # Errors
/// When the store holds a payload that is no JSON: this event cannot be handed to such a guest.
pub(in crate::guest) fn batch(events: &[Event]) -> Result<String, CallError> {
    let events = events
        .iter()
        .enumerate()
        .map(|(at, event)| {
            Ok(JsonEvent {
                position: event.position.to_string(),
                id: &event.id,
                stream: &event.stream,
                version: event.version.to_string(),
                event_type: &event.event_type,
                schema_version: event.schema_version,
                recorded_at: event.recorded_at.to_string(),
                data: raw(&event.data, "data", at)?,
                metadata: raw(&event.metadata, "metadata", at)?,
            })
        })
        .collect::<Result<Vec<_>, CallError>>()?;
    serde_json::to_string(&events)
        .map_err(|error| CallError::new(Category::Bug, format!("a batch is no JSON: {error}")))
}

fn raw<'a>(text: &'a str, field: &str, at: usize) -> Result<&'a RawValue, CallError> {
    serde_json::from_str(text).map_err(|error| CallError {
        category: Category::Rejected,
        event: Some(at),
        message: format!("the `{field}` of the event is no JSON: {error}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_store::event::Position;

    fn event(data: &str) -> Event {
        Event {
            position: Position(9_007_199_254_740_993),
            id: "e1".into(),
            stream: "order-1".into(),
            version: 2,
            event_type: "OrderCreated".into(),
            schema_version: 1,
            recorded_at: 1_700_000_000_000_001,
            data: data.into(),
            metadata: "{}".into(),
        }
    }

    #[test]
    fn numbers_of_64_bits_are_text_and_payloads_stay_as_they_are() {
        let text = batch(&[event(r#"{"total": 1.10}"#)]).expect("valid payload");
        assert_eq!(
            text,
            r#"[{"position":"9007199254740993","id":"e1","stream":"order-1","version":"2","type":"OrderCreated","schema_version":1,"recorded_at":"1700000000000001","data":{"total": 1.10},"metadata":{}}]"#
        );
    }

    #[test]
    fn a_payload_that_is_no_json_is_blamed_on_its_event() {
        let error = batch(&[event("{}"), event("{]")]).expect_err("invalid payload");
        assert_eq!((error.category, error.event), (Category::Rejected, Some(1)));
    }
}
