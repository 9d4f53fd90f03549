//! Events that cannot pass, and that the failure names the field.

use projection_order::Orders;
use projector_sdk::testing::{Harness, Stop};
use projector_sdk::{Event, Kind};
use serde_json::{Value, json};

use super::story::{order_event, raw_event};

fn stop(event: Event) -> Stop {
    let (stop, tables) = Harness::<Orders>::new("{}").project(&[event]).stopped();
    assert_eq!(tables.rows("orders").count(), 0);
    assert_eq!(stop.kind, Kind::Rejected);
    stop
}

/// The event stops the projection as it stands and also where it would be passed over, with this code and a message
/// that names the field.
fn check(event_type: &str, field: &str, value: Value, code: &str) {
    let stop = stop(order_event(event_type, json!({field: value})));
    assert_eq!(stop.code, code, "{event_type} {field}: {}", stop.message);
    assert!(
        stop.message.contains(&format!("`{field}`")),
        "{event_type} {field}: {}",
        stop.message
    );
}

#[test]
fn a_missing_or_null_field_is_named() {
    for (event_type, fields) in [
        (
            "OrderCreated",
            &[
                "status",
                "settlement_status",
                "amount_cents",
                "inserted_at",
                "updated_at",
            ][..],
        ),
        ("OrderDetailsUpdated", &["amount_cents", "updated_at"]),
        ("OrderStatusChanged", &["status", "updated_at"]),
        ("OrderCancelled", &["cancellation_reason", "updated_at"]),
        ("OrderAssignmentUpdated", &["updated_at"]),
        (
            "OrderSettlementUpdated",
            &["settlement_status", "updated_at"],
        ),
    ] {
        for field in fields {
            check(event_type, field, Value::Null, "invalid-field");
            let event = order_event(event_type, json!({}));
            let mut data: Value = serde_json::from_str(&event.data).expect("the tests write JSON");
            data.as_object_mut().and_then(|data| data.remove(*field));
            let stop = stop(raw_event(event_type, &data.to_string()));
            assert_eq!(stop.code, "missing-field", "{event_type} {field}");
            assert!(
                stop.message.contains(&format!("`{field}`")),
                "{}",
                stop.message
            );
        }
        for field in ["merchant_id", "order_uuid"] {
            check(event_type, field, Value::Null, "missing-field");
        }
    }
}

#[test]
fn a_field_of_another_type_is_named() {
    for (field, value) in [
        ("merchant_id", json!(7)),
        ("order_uuid", json!("11111111111141118111111111111111")),
        ("operator_uuid", json!("")),
        (
            "request_id",
            json!(["11111111-1111-4111-8111-111111111111"]),
        ),
        ("status", json!("PENDING")),
        ("status", json!({"pending": null})),
        ("settlement_status", json!("paid")),
        ("amount_cents", json!("19900")),
        ("amount_cents", json!(199.5)),
        ("amount_cents", json!(9_223_372_036_854_775_808_u64)),
        ("amount_cents", json!(true)),
        ("paid_amount_cents", json!(0.01)),
        ("notes", json!(7)),
        ("paid_at", json!(1_767_225_600)),
        ("paid_at", json!("2026-02-30T00:00:00Z")),
        ("inserted_at", json!("2026-01-01")),
        ("updated_at", json!("2026-01-01T00:00:00+08:00")),
    ] {
        check("OrderCreated", field, value, "invalid-field");
    }
}

#[test]
fn a_malformed_event_stops_also_where_it_would_be_passed_over() {
    check(
        "OrderStatusChanged",
        "status",
        json!("done"),
        "invalid-field",
    );
    check(
        "OrderDetailsUpdated",
        "customer_uuid",
        json!("x"),
        "invalid-field",
    );
    check(
        "OrderCancelled",
        "operator_uuid",
        json!("x"),
        "invalid-field",
    );
    check(
        "OrderAssignmentUpdated",
        "scheduled_end_at",
        json!("soon"),
        "invalid-field",
    );
    check(
        "OrderSettlementUpdated",
        "settlement_status",
        json!("half"),
        "invalid-field",
    );
}

#[test]
fn a_payload_that_is_no_object_is_malformed() {
    for data in ["", "null", "[]", "7", "{", "\"OrderCreated\""] {
        assert_eq!(
            stop(raw_event("OrderCreated", data)).code,
            "malformed-json",
            "{data}"
        );
    }
}

#[test]
fn a_lone_surrogate_is_no_text() {
    let event = order_event("OrderCreated", json!({"notes": "@"}));
    let data = event.data.replace("\"@\"", r#""\ud83d""#);
    let stop = stop(raw_event("OrderCreated", &data));
    assert!(stop.message.contains("`notes`"), "{}", stop.message);
}

#[test]
fn a_nul_is_left_to_the_tables_which_name_the_column() {
    let stop = stop(order_event(
        "OrderCreated",
        json!({"dispatch_note": "a\0b"}),
    ));
    assert_eq!(stop.code, "bad-write");
    assert!(
        stop.message.contains("`orders`") && stop.message.contains("`dispatch_note`"),
        "{}",
        stop.message
    );
}

#[test]
fn the_old_name_of_the_identifier_never_was_one_of_order_events() {
    let event = order_event(
        "OrderCreated",
        json!({"order_uuid": null, "order_id": "11111111-1111-4111-8111-111111111111"}),
    );
    assert_eq!(stop(event).code, "missing-field");
}

#[test]
fn events_of_other_types_and_fields_that_are_not_theirs_are_not_looked_at() {
    let events = [
        raw_event("OrderPraised", "nonsense"),
        order_event(
            "OrderDetailsUpdated",
            json!({"status": 7, "paid_at": "soon"}),
        ),
    ];
    let tables = Harness::<Orders>::new("{}").project(&events).rows();
    assert_eq!(tables.rows("orders").count(), 0);
}
