//! Events for the tests: named ones with defaults, and random ones.

use projection_testing::{MERCHANT, Numbers, event_of, with};
use projector_sdk::Event;
use projector_sdk::testing::event;
use serde_json::{Value, json};

pub const ORDER: &str = "11111111-1111-4111-8111-111111111111";
pub const OTHER_ORDER: &str = "22222222-2222-4222-8222-222222222222";

const STREAM: &str = "order-anything";

/// An event about `ORDER` of `MERCHANT`; `fields` come on top of what its type requires.
pub fn order_event(event_type: &str, fields: Value) -> Event {
    let common = json!({
        "merchant_id": MERCHANT,
        "order_uuid": ORDER,
        "updated_at": "2026-03-02T10:00:00Z",
    });
    let required = match event_type {
        "OrderCreated" => json!({
            "status": "pending",
            "settlement_status": "unsettled",
            "amount_cents": 19_900,
            "inserted_at": "2026-03-01T08:30:00Z",
        }),
        "OrderDetailsUpdated" => json!({"amount_cents": 25_000}),
        "OrderStatusChanged" => json!({"status": "confirmed"}),
        "OrderCancelled" => json!({"cancellation_reason": "moved away"}),
        "OrderSettlementUpdated" => json!({"settlement_status": "settled"}),
        _ => json!({}),
    };
    event_of(STREAM, event_type, common, [required, fields])
}

/// An event with this payload, whatever it is.
pub fn raw_event(event_type: &str, data: &str) -> Event {
    event(STREAM, event_type, data)
}

/// Any of the six events, or one of a foreign type, about one of a few orders, in an old or a new shape.
pub fn random_event(numbers: &mut Numbers) -> Event {
    let types = [
        "OrderCreated",
        "OrderCreated",
        "OrderDetailsUpdated",
        "OrderStatusChanged",
        "OrderStatusChanged",
        "OrderCancelled",
        "OrderAssignmentUpdated",
        "OrderSettlementUpdated",
        "OrderPraised",
    ];
    let texts = [
        Value::Null,
        json!("客户说 \"好\" \\ 😀\n"),
        json!(""),
        json!("plain"),
    ];
    let times = [
        Value::Null,
        json!("2026-03-01T08:30:00Z"),
        json!("2026-03-01T08:30:00.120Z"),
        json!("2025-12-31T23:59:59.999999999Z"),
        json!("2025-12-31T23:59:59.000000999Z"),
    ];
    let uuids = [
        Value::Null,
        json!("AAAAAAAA-0000-4000-8000-00000000000B"),
        json!(ORDER),
    ];
    let amounts = [
        json!(0),
        json!(19_900),
        json!(-500),
        json!(12_345.0),
        json!(9_007_199_254_740_993_i64),
    ];
    let statuses = [
        "pending",
        "confirmed",
        "dispatching",
        "in_service",
        "completed",
        "cancelled",
    ]
    .map(Value::from);

    let mut fields = json!({"unknown": {"deep": [1, 2.5, "x"]}});
    for (names, values) in [
        (
            &[
                "notes",
                "dispatch_note",
                "settlement_note",
                "payment_method",
            ][..],
            &texts[..],
        ),
        (
            &[
                "scheduled_start_at",
                "scheduled_end_at",
                "completed_at",
                "paid_at",
            ],
            &times,
        ),
        (&["inserted_at", "updated_at"], &times[1..]),
        (&["operator_uuid", "request_id", "customer_uuid"], &uuids),
        (&["amount_cents"], &amounts),
        (
            &["paid_amount_cents"],
            &[Value::Null, json!(100), json!(7.0)],
        ),
        (&["status"], &statuses),
        (
            &["settlement_status"],
            &[json!("unsettled"), json!("settled")],
        ),
        (&["cancellation_reason"], &texts[1..]),
    ] {
        for name in names {
            fields[name] = numbers.one_of(values);
        }
    }
    fields["order_uuid"] = json!(numbers.one_of(&[ORDER, OTHER_ORDER]));
    order_event(numbers.one_of(&types), with(fields, numbers.tenant()))
}
