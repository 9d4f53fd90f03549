//! Events for the tests: named ones with defaults, and random ones.

use projector_sdk::Event;
use projector_sdk::testing::event;
use serde_json::{Value, json};

pub const MERCHANT: &str = "0a1b2c3d-4e5f-6789-abcd-ef0123456789";
pub const OTHER_MERCHANT: &str = "0a1b2c3d-4e5f-6789-abcd-ef012345678a";
pub const ORDER: &str = "11111111-1111-4111-8111-111111111111";
pub const OTHER_ORDER: &str = "22222222-2222-4222-8222-222222222222";

/// An event about `ORDER` of `MERCHANT`; `fields` come on top of what its type requires.
pub fn order_event(event_type: &str, fields: Value) -> Event {
    let mut data = json!({
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
    for more in [required, fields] {
        for (name, value) in more.as_object().into_iter().flatten() {
            data[name] = value.clone();
        }
    }
    raw_event(event_type, &data.to_string())
}

/// An event with this payload, whatever it is.
pub fn raw_event(event_type: &str, data: &str) -> Event {
    event("order-anything", event_type, data)
}

/// A small generator of numbers: the same ones on every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn pick(&mut self, from: &[Value]) -> Value {
        from[self.below(from.len())].clone()
    }
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
            fields[name] = numbers.pick(values);
        }
    }
    let merchant = [MERCHANT, OTHER_MERCHANT][numbers.below(2)];
    match numbers.below(4) {
        0 => {
            fields["merchant_id"] = Value::Null;
            fields["tenant_schema"] = json!(format!("merchant_{}", merchant.replace('-', "")));
        }
        1 => {
            fields["merchant_id"] = json!(merchant.to_uppercase());
            fields["tenant_schema"] = json!("whatever");
        }
        _ => fields["merchant_id"] = json!(merchant),
    }
    fields["order_uuid"] = json!([ORDER, OTHER_ORDER][numbers.below(2)]);
    order_event(types[numbers.below(types.len())], fields)
}
