//! Values at their limits: positions, times, amounts and texts.

use projection_order::Orders;
use projection_testing::MERCHANT;
use projector_sdk::Event;
use projector_sdk::testing::Harness;
use serde_json::json;

use super::check;
use super::story::{ORDER, OTHER_ORDER, order_event, raw_event};

#[test]
fn positions_beyond_2_to_the_53_are_exact() {
    let at = |position: u64, event: Event| Event { position, ..event };
    let first = (1 << 53) + 1;
    let events = [
        at(first, order_event("OrderCreated", json!({}))),
        at(first + 2, order_event("OrderCancelled", json!({}))),
    ];
    check(&events);
    let tables = Harness::<Orders>::new("{}").project(&events).rows();
    let positions = tables
        .rows("order_change_logs")
        .filter_map(|row| row.int("position"));
    assert_eq!(
        positions.collect::<Vec<_>>(),
        [9_007_199_254_740_993, 9_007_199_254_740_995]
    );
}

#[test]
fn the_log_shows_amounts_exactly_and_times_canonically() {
    let events = [
        order_event(
            "OrderCreated",
            json!({"amount_cents": 9_007_199_254_740_993_i64, "completed_at": "2026-01-01T00:00:00.000000001Z",
                   "paid_at": "2026-01-01T00:00:00.1239999Z"}),
        ),
        order_event("OrderDetailsUpdated", json!({"amount_cents": i64::MIN})),
    ];
    check(&events);
    let tables = Harness::<Orders>::new("{}").project(&events).rows();
    let logs: Vec<_> = tables.rows("order_change_logs").collect();
    let before = logs[1].text("before").unwrap_or_default();
    for part in [
        r#""amount_cents":9007199254740993"#,
        r#""completed_at":"2026-01-01T00:00:00Z""#,
        r#""paid_at":"2026-01-01T00:00:00.123999Z""#,
        r#""request_uuid":null"#,
    ] {
        assert!(before.contains(part), "{part} in {before}");
    }
    assert!(
        logs[1]
            .text("after")
            .unwrap_or_default()
            .contains(r#""amount_cents":-9223372036854775808"#)
    );
    assert!(
        logs[0]
            .get("before")
            .is_some_and(projector_sdk::Value::is_null)
    );
    for hidden in ["merchant_id", "order_uuid", "last_position"] {
        assert!(!before.contains(hidden), "{hidden} in {before}");
    }
}

#[test]
fn a_total_may_pass_the_limit_within_an_event_but_not_after_it() {
    let first = |amount: i64| order_event("OrderCreated", json!({"amount_cents": amount}));
    let second = |amount: i64| {
        order_event(
            "OrderCreated",
            json!({"amount_cents": amount, "order_uuid": OTHER_ORDER}),
        )
    };
    let reprice = |amount: i64| order_event("OrderDetailsUpdated", json!({"amount_cents": amount}));

    check(&[first(i64::MAX), reprice(i64::MIN), reprice(i64::MAX)]);
    check(&[first(10), second(i64::MAX - 10), reprice(5), reprice(10)]);
    check(&[
        first(i64::MAX),
        second(i64::MIN),
        reprice(0),
        reprice(i64::MAX),
    ]);
    check(&[
        first(i64::MIN),
        order_event("OrderCancelled", json!({})),
        second(i64::MAX),
    ]);

    for events in [
        vec![first(i64::MAX), second(1)],
        vec![
            first(i64::MAX),
            second(0),
            order_event(
                "OrderDetailsUpdated",
                json!({"amount_cents": 1, "order_uuid": OTHER_ORDER}),
            ),
        ],
        vec![first(i64::MIN), second(-1), reprice(0)],
    ] {
        let (stop, _) = Harness::<Orders>::new("{}").project(&events).stopped();
        assert!(
            stop.message.contains("order_totals") && stop.message.contains("amount_cents"),
            "{stop:?}"
        );
        let overflow = if events.len() == 3 && stop.position == 3 {
            3
        } else {
            2
        };
        assert_eq!(stop.position, overflow);
    }
}

#[test]
fn an_overflow_stops_at_its_event_even_if_a_later_one_would_undo_it() {
    let events = [
        order_event("OrderCreated", json!({"amount_cents": i64::MAX})),
        order_event(
            "OrderCreated",
            json!({"amount_cents": 1, "order_uuid": OTHER_ORDER}),
        ),
        order_event("OrderDetailsUpdated", json!({"amount_cents": 0})),
    ];
    let (stop, tables) = Harness::<Orders>::new("{}").project(&events).stopped();
    assert_eq!(stop.position, 2);
    assert_eq!(tables.rows("orders").count(), 1);
}

#[test]
fn every_spelling_of_a_whole_number_is_read() {
    for (spelling, expected) in [
        ("19900", 19_900),
        ("19900.0", 19_900),
        ("1.99e4", 19_900),
        ("9007199254740993.0", 9_007_199_254_740_993),
        ("-9.223372036854775808E18", i64::MIN),
    ] {
        let data = format!(
            r#"{{"merchant_id":"{MERCHANT}","order_uuid":"{ORDER}","status":"pending","settlement_status":"settled",
                "amount_cents":{spelling},"inserted_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z"}}"#
        );
        let tables = Harness::<Orders>::new("{}")
            .project(&[raw_event("OrderCreated", &data)])
            .rows();
        let amounts = tables
            .rows("orders")
            .filter_map(|row| row.int("amount_cents"));
        assert_eq!(amounts.collect::<Vec<_>>(), [expected], "{spelling}");
    }
}

#[test]
fn texts_of_every_kind_and_size_come_through() {
    let huge = "客户😀\"\\\u{1}\n".repeat(60_000);
    check(&[
        order_event(
            "OrderCreated",
            json!({"notes": huge, "payment_method": "微信 \"支付\" \\ 😀"}),
        ),
        order_event(
            "OrderAssignmentUpdated",
            json!({"dispatch_note": "\u{7f}\u{2028}'; drop table orders; --"}),
        ),
    ]);
}
