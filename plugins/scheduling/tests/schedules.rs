//! The `scheduling` projection, case by case and against an independent fold of the same events.

use std::collections::BTreeMap;

use projection_scheduling::Scheduling;
use projection_testing::{MERCHANT, Numbers, event_of, lower, merchant, rows, time, with};
use projector_sdk::testing::{Harness, Stop, Tables};
use projector_sdk::{Config, Event, Projection};
use serde_json::{Map, Value, json};

const ORDER: &str = "11111111-1111-4111-8111-111111111111";
const OTHER_ORDER: &str = "22222222-2222-4222-8222-222222222222";
const ANNA: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const BEN: &str = "bbbbbbbb-0000-4000-8000-000000000002";

/// An event about `ORDER` of `MERCHANT`; `fields` come on top of what its type requires.
fn schedule_event(event_type: &str, fields: Value) -> Event {
    let common = json!({
        "merchant_id": MERCHANT,
        "order_uuid": ORDER,
        "updated_at": "2026-03-02T10:00:00Z",
    });
    let required = match event_type {
        "ScheduleAssignmentCreated" => json!({
            "schedule_uuid": "CCCCCCCC-0000-4000-8000-000000000003",
            "assigned_user_uuid": ANNA,
            "start_at": "2026-03-05T08:00:00.000Z",
            "end_at": "2026-03-05T10:00:00.000000Z",
            "status": "planned",
            "inserted_at": "2026-03-01T08:30:00.123456789Z",
        }),
        "ScheduleAssignmentUpdated" => json!({
            "assigned_user_uuid": BEN,
            "start_at": "2026-03-06T08:00:00Z",
            "end_at": "2026-03-06T10:00:00Z",
        }),
        "ScheduleStatusChanged" => json!({"status": "done"}),
        "ScheduleDeleted" => json!({"deleted_at": "2026-03-04T08:00:00Z"}),
        _ => json!({}),
    };
    event_of("schedule-anything", event_type, common, [required, fields])
}

/// The rules once more, over JSON and without the SDK.
fn fold(events: &[Event]) -> BTreeMap<(String, String), Map<String, Value>> {
    let mut schedules: BTreeMap<_, Map<String, Value>> = BTreeMap::new();
    for (number, event) in events.iter().enumerate() {
        let data: Value = serde_json::from_str(&event.data).expect("the tests write JSON");
        let order = [&data["order_uuid"], &data["order_id"]]
            .into_iter()
            .find(|id| id.is_string());
        let key = (merchant(&data), lower(order.unwrap_or(&Value::Null)));
        let is_new = event.event_type == "ScheduleAssignmentCreated";
        if is_new == schedules.contains_key(&key) {
            continue;
        }
        let fields: &[&str] = match event.event_type.as_str() {
            "ScheduleAssignmentCreated" => &[
                "schedule_uuid",
                "worker_uuid",
                "start_at",
                "end_at",
                "status",
                "notes",
                "inserted_at",
            ],
            "ScheduleAssignmentUpdated" => &["worker_uuid", "start_at", "end_at", "notes"],
            "ScheduleStatusChanged" => &["status"],
            "ScheduleDeleted" => {
                schedules.remove(&key);
                continue;
            }
            _ => continue,
        };
        let row = schedules.entry(key.clone()).or_default();
        row.insert("merchant_id".to_owned(), json!(key.0));
        row.insert("order_uuid".to_owned(), json!(key.1));
        for &field in fields.iter().chain(&["updated_at"]) {
            let value = match field {
                "worker_uuid" => json!(lower(&data["assigned_user_uuid"])),
                "schedule_uuid" => json!(lower(&data[field])),
                field if field.ends_with("_at") => json!(time(&data[field])),
                field => data[field].clone(),
            };
            row.insert(field.to_owned(), value);
        }
        row.insert("last_position".to_owned(), json!(number + 1));
    }
    schedules
}

/// Runs the events and compares both tables with the fold.
fn check(events: &[Event]) -> Tables {
    let tables = Harness::<Scheduling>::new("{}").project(events).rows();
    let expected = fold(events);
    let found: Vec<Value> = rows(&tables, "schedules");
    assert_eq!(
        found,
        expected
            .values()
            .cloned()
            .map(Value::Object)
            .collect::<Vec<_>>()
    );

    let mut load: BTreeMap<_, i64> = BTreeMap::new();
    for row in expected.values() {
        let key = ["merchant_id", "worker_uuid", "status"].map(|name| lower(&row[name]));
        *load.entry(key).or_default() += 1;
    }
    let found = rows(&tables, "worker_load")
        .into_iter()
        .filter(|row| row["schedules"] != 0);
    let found = found.map(|row| {
        let key = ["merchant_id", "worker_uuid", "status"].map(|name| lower(&row[name]));
        (key, row["schedules"].as_i64().unwrap_or_default())
    });
    assert_eq!(found.collect::<BTreeMap<_, _>>(), load);
    tables
}

fn stop(event: Event) -> Stop {
    Harness::<Scheduling>::new("{}")
        .project(&[event])
        .stopped()
        .0
}

fn random_event(numbers: &mut Numbers) -> Event {
    let types = [
        "ScheduleAssignmentCreated",
        "ScheduleAssignmentCreated",
        "ScheduleAssignmentUpdated",
        "ScheduleStatusChanged",
        "ScheduleDeleted",
        "SchedulePraised",
    ];
    let mut fields = json!({
        "assigned_user_uuid": numbers.one_of(&[ANNA, BEN, &ANNA.to_uppercase()]),
        "status": numbers.one_of(&["planned", "in_service", "done", "cancelled"]),
        "notes": numbers.one_of(&[Value::Null, json!("钥匙 😀 \"\\")]),
        "updated_at": numbers.one_of(&["2026-03-01T08:30:00Z", "2020-03-01T08:30:00.1200Z"]),
        "more": [1],
    });
    let order = numbers.one_of(&[ORDER, OTHER_ORDER]);
    if numbers.below(3) == 0 {
        fields["order_uuid"] = Value::Null;
        fields["order_id"] = json!(order.to_uppercase());
    } else {
        fields["order_uuid"] = json!(order);
    }
    schedule_event(numbers.one_of(&types), with(fields, numbers.tenant()))
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
fn create_delete_and_create_again_in_one_batch() {
    let tables = check(&[
        schedule_event("ScheduleAssignmentCreated", json!({"notes": "first"})),
        schedule_event("ScheduleDeleted", json!({})),
        schedule_event("ScheduleStatusChanged", json!({})),
        schedule_event(
            "ScheduleAssignmentCreated",
            json!({"assigned_user_uuid": BEN}),
        ),
        schedule_event("ScheduleAssignmentCreated", json!({"notes": "too late"})),
    ]);
    let row = &rows(&tables, "schedules")[0];
    assert_eq!(
        (&row["worker_uuid"], &row["notes"], &row["last_position"]),
        (&json!(BEN), &Value::Null, &json!(4))
    );
    assert_eq!(row["inserted_at"], "2026-03-01T08:30:00.123456Z");
}

#[test]
fn reassignment_moves_the_load_to_the_other_worker() {
    let tables = check(&[
        schedule_event("ScheduleAssignmentCreated", json!({})),
        schedule_event("ScheduleAssignmentUpdated", json!({})),
        schedule_event("ScheduleStatusChanged", json!({"status": "in_service"})),
    ]);
    let load = rows(&tables, "worker_load");
    let of = |worker: &str, status: &str| {
        let row = load
            .iter()
            .find(|row| row["worker_uuid"] == worker && row["status"] == status);
        row.map(|row| row["schedules"].clone())
    };
    assert_eq!(of(ANNA, "planned"), Some(json!(0)));
    assert_eq!(of(BEN, "planned"), Some(json!(0)));
    assert_eq!(of(BEN, "in_service"), Some(json!(1)));
    assert_eq!(of(ANNA, "in_service"), None);
}

#[test]
fn without_a_row_every_other_event_is_passed_over() {
    for event_type in [
        "ScheduleAssignmentUpdated",
        "ScheduleStatusChanged",
        "ScheduleDeleted",
    ] {
        let tables = check(&[schedule_event(event_type, json!({}))]);
        assert_eq!(
            tables.rows("schedules").count() + tables.rows("worker_load").count(),
            0
        );
    }
}

#[test]
fn a_malformed_event_names_the_field_also_where_it_would_be_passed_over() {
    for (event_type, field, value) in [
        ("ScheduleAssignmentCreated", "status", json!("open")),
        ("ScheduleAssignmentCreated", "schedule_uuid", Value::Null),
        ("ScheduleAssignmentCreated", "start_at", json!("8 o'clock")),
        (
            "ScheduleAssignmentUpdated",
            "assigned_user_uuid",
            Value::Null,
        ),
        ("ScheduleAssignmentUpdated", "end_at", json!(7)),
        ("ScheduleStatusChanged", "status", json!("confirmed")),
        ("ScheduleStatusChanged", "order_uuid", json!("x")),
        ("ScheduleDeleted", "deleted_at", Value::Null),
        ("ScheduleDeleted", "order_uuid", Value::Null),
    ] {
        let stop = stop(schedule_event(event_type, json!({field: value})));
        assert!(
            stop.message.contains(&format!("`{field}`")),
            "{event_type} {field}: {}",
            stop.message
        );
    }
}

#[test]
fn a_setting_is_refused_by_name() {
    let refusal = Scheduling::new(&Config::from_json(r#"{"change_logs":false}"#)).err();
    assert!(refusal.is_some_and(|message| message.contains("change_logs")));
}
