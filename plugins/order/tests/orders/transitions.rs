//! What follows upon what: the log is the truth, so nothing is refused.

use projection_order::Orders;
use projection_testing::{MERCHANT, OTHER_MERCHANT};
use projector_sdk::testing::Harness;
use projector_sdk::{Event, Key};
use serde_json::{Value, json};

use super::check;
use super::story::{ORDER, OTHER_ORDER, order_event};

/// Runs the events, compares them with the naive fold, and gives the columns of `ORDER` as JSON.
fn order_after(events: &[Event]) -> Value {
    check(events);
    let tables = Harness::<Orders>::new("{}").project(events).rows();
    let key = Key::new("orders")
        .part("merchant_id", MERCHANT)
        .part("order_uuid", ORDER);
    let row = tables.row(&key).map(|row| row.to_json(|_| true));
    row.map_or(Value::Null, |row| {
        serde_json::from_str(&row).expect("a row is JSON")
    })
}

fn created() -> Event {
    order_event("OrderCreated", json!({}))
}

fn completed() -> Event {
    order_event(
        "OrderStatusChanged",
        json!({"status": "completed", "completed_at": "2026-03-02T09:00:00.5Z"}),
    )
}

fn cancelled() -> Event {
    order_event("OrderCancelled", json!({}))
}

#[test]
fn cancel_after_completion_clears_when_it_was_completed() {
    let order = order_after(&[created(), completed(), cancelled()]);
    assert_eq!(order["status"], "cancelled");
    assert_eq!(order["cancellation_reason"], "moved away");
    assert_eq!(order["completed_at"], Value::Null);
}

#[test]
fn completion_after_cancel_keeps_the_reason() {
    let order = order_after(&[created(), cancelled(), completed(), completed()]);
    assert_eq!(order["status"], "completed");
    assert_eq!(order["cancellation_reason"], "moved away");
    assert_eq!(order["completed_at"], "2026-03-02T09:00:00.500000Z");
    assert_eq!(order["last_position"], 4);
}

#[test]
fn an_old_cancellation_is_a_change_of_status() {
    let old = order_event("OrderStatusChanged", json!({"status": "cancelled"}));
    let events = [created(), cancelled(), completed(), old];
    let order = order_after(&events);
    assert_eq!(order["cancellation_reason"], "moved away");
    assert_eq!(order["completed_at"], Value::Null);
    let tables = Harness::<Orders>::new("{}").project(&events).rows();
    let actions = tables
        .rows("order_change_logs")
        .filter_map(|row| row.text("action"));
    assert_eq!(
        actions.collect::<Vec<_>>(),
        ["created", "cancelled", "status_changed", "status_changed"]
    );
}

#[test]
fn settlement_goes_both_ways_and_on_a_cancelled_order_too() {
    let settled = order_event(
        "OrderSettlementUpdated",
        json!({"paid_amount_cents": 19_900, "payment_method": "cash", "paid_at": "2026-03-02T09:00:00Z"}),
    );
    let order = order_after(&[created(), cancelled(), settled]);
    assert_eq!(order["settlement_status"], "settled");
    assert_eq!(order["status"], "cancelled");
    assert_eq!(order["paid_amount_cents"], 19_900);

    let unsettled = order_event(
        "OrderSettlementUpdated",
        json!({"settlement_status": "unsettled"}),
    );
    let order = order_after(&[created(), settled, unsettled]);
    assert_eq!(order["settlement_status"], "unsettled");
    assert_eq!(order["payment_method"], Value::Null);
    assert_eq!(order["paid_at"], Value::Null);
}

#[test]
fn without_a_row_every_other_event_is_passed_over() {
    for event_type in [
        "OrderDetailsUpdated",
        "OrderStatusChanged",
        "OrderCancelled",
        "OrderAssignmentUpdated",
        "OrderSettlementUpdated",
    ] {
        assert_eq!(
            order_after(&[order_event(event_type, json!({}))]),
            Value::Null
        );
        let order = order_after(&[order_event(event_type, json!({})), created()]);
        assert_eq!(
            (&order["status"], &order["last_position"]),
            (&json!("pending"), &json!(2))
        );
    }
}

#[test]
fn a_second_creation_changes_nothing() {
    let again = order_event(
        "OrderCreated",
        json!({"status": "completed", "amount_cents": 1}),
    );
    let order = order_after(&[created(), again]);
    assert_eq!(
        (&order["status"], &order["last_position"]),
        (&json!("pending"), &json!(1))
    );
}

#[test]
fn two_orders_come_from_one_request_and_one_uuid_belongs_to_two_merchants() {
    let request = "33333333-3333-4333-8333-333333333333";
    let events = [
        order_event("OrderCreated", json!({"request_id": request})),
        order_event(
            "OrderCreated",
            json!({"request_id": request, "order_uuid": OTHER_ORDER}),
        ),
        order_event("OrderCreated", json!({"merchant_id": OTHER_MERCHANT})),
        order_event("OrderCancelled", json!({"merchant_id": OTHER_MERCHANT})),
    ];
    let order = order_after(&events);
    assert_eq!(
        (&order["status"], &order["request_uuid"]),
        (&json!("pending"), &json!(request))
    );
    let tables = Harness::<Orders>::new("{}").project(&events).rows();
    assert_eq!(tables.rows("orders").count(), 3);
}

#[test]
fn null_and_absence_clear_a_group_of_fields() {
    let full = order_event(
        "OrderCreated",
        json!({"customer_uuid": ORDER, "notes": "key under the mat", "dispatch_note": "two people",
               "scheduled_start_at": "2026-03-05T08:00:00Z", "scheduled_end_at": "2026-03-05T10:00:00Z"}),
    );
    let order = order_after(&[
        full,
        order_event("OrderDetailsUpdated", json!({"notes": null})),
        order_event("OrderAssignmentUpdated", json!({})),
    ]);
    for column in [
        "customer_uuid",
        "notes",
        "dispatch_note",
        "scheduled_start_at",
        "scheduled_end_at",
    ] {
        assert_eq!(order[column], Value::Null, "{column}");
    }
    assert_eq!(order["amount_cents"], 25_000);
}

#[test]
fn the_order_of_events_counts_and_not_their_times() {
    let order = order_after(&[
        order_event(
            "OrderCreated",
            json!({"updated_at": "2030-01-01T00:00:00Z"}),
        ),
        order_event(
            "OrderStatusChanged",
            json!({"updated_at": "2020-01-01T00:00:00Z"}),
        ),
    ]);
    assert_eq!(order["updated_at"], "2020-01-01T00:00:00Z");
    assert_eq!(order["status"], "confirmed");
}
