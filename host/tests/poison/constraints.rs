//! Constraints that somebody added to a projection's table: the event that wrote the row is found.

use projector_testkit::site::Databases;
use serde_json::json;

use crate::support::{letters, numbers, order, site};

fn with(number: usize, amount: i64, customer: bool) -> String {
    let customer = if customer {
        "\"cccccccc-0000-4000-8000-000000000001\""
    } else {
        "null"
    };
    order(number, "pending").replace(
        "\"amount_cents\":100",
        &format!("\"amount_cents\":{amount},\"customer_uuid\":{customer}"),
    )
}

#[test]
fn check_unique_and_not_null_are_traced_to_the_event_that_wrote_the_row() {
    let site = site(Databases::Two, "[defaults]\non_error = \"skip\"");
    let leader = site.leader("a");
    leader.stop();
    site.model(
        "alter table order_g1.orders add constraint even_amounts check (amount_cents % 2 = 0);
         alter table order_g1.orders alter column customer_uuid set not null;
         create unique index one_of_them on order_g1.orders (amount_cents) where amount_cents = 888",
    );
    let bad = [17, 40, 61];
    let lines: String = (0..100)
        .map(|at| match at {
            17 => with(at, 101, true),
            30 | 40 => with(at, 888, true),
            61 => with(at, 200, false),
            _ => with(at, 100, true),
        })
        .collect();
    site.append(&lines, 500);
    let _next = site.leader("b");
    site.all_is_right_at_the_head();
    let found = letters(&site, "order");
    assert_eq!(
        numbers(&found, "position"),
        bad.map(|at| at + 1),
        "{found:?}"
    );
    for letter in &found {
        assert_eq!(
            (&letter["category"], &letter["table"]),
            (&json!("constraint"), &json!("orders")),
            "{letter}"
        );
    }
    assert_eq!(found[2]["column"], "customer_uuid", "{found:?}");
    for (letter, name) in found
        .iter()
        .zip(["even_amounts", "one_of_them", "customer_uuid"])
    {
        let message = letter["message"].as_str().unwrap_or_default();
        assert!(
            message.contains(name) && message.contains("OrderCreated at position"),
            "{letter}"
        );
    }
}
