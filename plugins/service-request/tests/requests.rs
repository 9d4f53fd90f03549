//! The `service-request` projection, case by case and against an independent fold of the same events.

use std::collections::BTreeMap;

use projection_service_request::ServiceRequests;
use projection_testing::{MERCHANT, Numbers, event_of, lower, merchant, rows, time, with};
use projector_sdk::testing::{Harness, Stop, Tables};
use projector_sdk::{Config, Event, Projection};
use serde_json::{Map, Value, json};

const REQUEST: &str = "33333333-3333-4333-8333-333333333333";
const OTHER_REQUEST: &str = "44444444-4444-4444-8444-444444444444";
const CUSTOMER: &str = "cccccccc-0000-4000-8000-00000000000c";

/// An event about `REQUEST` of `MERCHANT`; `fields` come on top of what its type requires.
fn request_event(event_type: &str, fields: Value) -> Event {
    let common = json!({
        "merchant_id": MERCHANT,
        "request_uuid": REQUEST,
        "updated_at": "2026-03-02T10:00:00Z",
    });
    let required = match event_type {
        "ServiceRequestCreated" => json!({
            "customer_uuid": CUSTOMER.to_uppercase(),
            "creator_uuid": CUSTOMER,
            "service_content": "windows",
            "status": "new",
            "source": "phone",
            "inserted_at": "2026-03-01T08:30:00Z",
        }),
        "ServiceRequestDetailsUpdated" => json!({"service_content": "windows and floors"}),
        "ServiceRequestStatusChanged" => json!({"status": "confirmed"}),
        _ => json!({}),
    };
    event_of(
        "service_request-anything",
        event_type,
        common,
        [required, fields],
    )
}

/// The rules once more, over JSON and without the SDK.
fn fold(events: &[Event]) -> BTreeMap<(String, String), Map<String, Value>> {
    let mut requests: BTreeMap<_, Map<String, Value>> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        let data: Value = serde_json::from_str(&event.data).expect("the tests write JSON");
        let details = [
            "service_catalog_uuid",
            "service_content",
            "appointment_start_at",
            "appointment_end_at",
            "notes",
        ];
        let key = (merchant(&data), lower(&data["request_uuid"]));
        let is_new = event.event_type == "ServiceRequestCreated";
        if is_new == requests.contains_key(&key) {
            continue;
        }
        let mut fields = vec!["updated_at"];
        match event.event_type.as_str() {
            "ServiceRequestCreated" => {
                fields.extend(details);
                fields.extend([
                    "customer_uuid",
                    "creator_uuid",
                    "status",
                    "source",
                    "inserted_at",
                ]);
            }
            "ServiceRequestDetailsUpdated" => fields.extend(details),
            "ServiceRequestStatusChanged" => fields.push("status"),
            _ => continue,
        }
        let row = requests.entry(key.clone()).or_default();
        row.insert("merchant_id".to_owned(), json!(key.0));
        row.insert("request_uuid".to_owned(), json!(key.1));
        for field in fields {
            let value = match &data[field] {
                Value::Null => Value::Null,
                value if field.ends_with("_uuid") => json!(lower(value)),
                value if field.ends_with("_at") => json!(time(value)),
                value => value.clone(),
            };
            row.insert(field.to_owned(), value);
        }
        row.insert("last_position".to_owned(), json!(number + 1));
    }
    requests
}

/// Runs the events and compares both tables with the fold.
fn check(events: &[Event]) -> Tables {
    let tables = Harness::<ServiceRequests>::new("{}").project(events).rows();
    let expected = fold(events);
    let found: Vec<Value> = rows(&tables, "service_requests");
    assert_eq!(
        found,
        expected
            .values()
            .cloned()
            .map(Value::Object)
            .collect::<Vec<_>>()
    );

    let mut funnel: BTreeMap<_, i64> = BTreeMap::new();
    for row in expected.values() {
        *funnel
            .entry(["merchant_id", "status"].map(|name| lower(&row[name])))
            .or_default() += 1;
    }
    let found = rows(&tables, "request_funnel")
        .into_iter()
        .filter(|row| row["requests"] != 0);
    let found = found.map(|row| {
        let key = ["merchant_id", "status"].map(|name| lower(&row[name]));
        (key, row["requests"].as_i64().unwrap_or_default())
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), funnel);
    tables
}

fn stop(event: Event) -> Stop {
    Harness::<ServiceRequests>::new("{}")
        .project(&[event])
        .stopped()
        .0
}

fn random_event(numbers: &mut Numbers) -> Event {
    let types = [
        "ServiceRequestCreated",
        "ServiceRequestCreated",
        "ServiceRequestDetailsUpdated",
        "ServiceRequestStatusChanged",
        "ServiceRequestPraised",
    ];
    let times = [
        Value::Null,
        json!("2026-03-01T08:30:00.5Z"),
        json!("2026-03-01T08:30:00.000000999Z"),
    ];
    let mut fields = json!({
        "service_catalog_uuid": numbers.one_of(&[Value::Null, json!(CUSTOMER.to_uppercase())]),
        "service_content": numbers.one_of(&["", "擦窗 😀 \"\\\n"]),
        "appointment_start_at": numbers.one_of(&times),
        "appointment_end_at": numbers.one_of(&times),
        "status": numbers.one_of(&["new", "confirmed", "converted", "cancelled"]),
        "notes": numbers.one_of(&[Value::Null, json!("n")]),
        "more": {"x": null},
    });
    fields["request_uuid"] = json!(numbers.one_of(&[REQUEST, OTHER_REQUEST]));
    request_event(numbers.one_of(&types), with(fields, numbers.tenant()))
}

#[test]
fn random_events_equal_the_naive_fold_at_every_moment() {
    for seed in 0..30 {
        let mut numbers = Numbers(seed);
        let events: Vec<Event> = (0..60).map(|_| random_event(&mut numbers)).collect();
        for upto in [1, 2, 3, 5, 8, 13, 21, 34, 55, 60] {
            check(&events[..upto]);
        }
    }
}

#[test]
fn details_replace_their_fields_and_nothing_else() {
    let tables = check(&[
        request_event(
            "ServiceRequestCreated",
            json!({"notes": "dog", "appointment_start_at": "2026-03-05T08:00:00Z", "service_catalog_uuid": CUSTOMER}),
        ),
        request_event(
            "ServiceRequestStatusChanged",
            json!({"status": "converted"}),
        ),
        request_event("ServiceRequestDetailsUpdated", json!({"status": "new"})),
    ]);
    let row = &rows(&tables, "service_requests")[0];
    assert_eq!(
        (&row["status"], &row["source"]),
        (&json!("converted"), &json!("phone"))
    );
    for column in ["notes", "appointment_start_at", "service_catalog_uuid"] {
        assert_eq!(row[column], Value::Null, "{column}");
    }
}

#[test]
fn without_a_row_every_other_event_is_passed_over() {
    for event_type in [
        "ServiceRequestDetailsUpdated",
        "ServiceRequestStatusChanged",
    ] {
        let tables = check(&[request_event(event_type, json!({}))]);
        assert_eq!(
            tables.rows("service_requests").count() + tables.rows("request_funnel").count(),
            0
        );
    }
}

#[test]
fn a_malformed_event_names_the_field_also_where_it_would_be_passed_over() {
    for (event_type, field, value) in [
        ("ServiceRequestCreated", "status", json!("pending")),
        ("ServiceRequestCreated", "customer_uuid", Value::Null),
        ("ServiceRequestCreated", "creator_uuid", json!("me")),
        ("ServiceRequestCreated", "source", json!(7)),
        ("ServiceRequestCreated", "service_content", Value::Null),
        (
            "ServiceRequestDetailsUpdated",
            "appointment_end_at",
            json!(""),
        ),
        (
            "ServiceRequestDetailsUpdated",
            "service_content",
            json!(["windows"]),
        ),
        ("ServiceRequestStatusChanged", "status", Value::Null),
        ("ServiceRequestStatusChanged", "request_uuid", Value::Null),
        ("ServiceRequestStatusChanged", "merchant_id", Value::Null),
    ] {
        let stop = stop(request_event(event_type, json!({field: value})));
        assert!(
            stop.message.contains(&format!("`{field}`")),
            "{event_type} {field}: {}",
            stop.message
        );
    }
}

#[test]
fn a_setting_is_refused_by_name() {
    let refusal = ServiceRequests::new(&Config::from_json(r#"{"change_logs":false}"#)).err();
    assert!(refusal.is_some_and(|message| message.contains("change_logs")));
}
