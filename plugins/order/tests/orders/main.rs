//! The `order` projection, case by case and against an independent fold of the same events.

mod naive;
mod poison;
mod story;
mod transitions;
mod values;

use projection_order::Orders;
use projection_testing::Numbers;
use projector_sdk::Event;
use projector_sdk::testing::Harness;

use naive::Fold;
use story::random_event;

/// Runs the events and compares every table with the naive fold.
fn check(events: &[Event]) {
    let tables = Harness::<Orders>::new("{}").project(events).rows();
    Fold::of(events).assert_equals(&tables);
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
fn a_long_batch_equals_the_naive_fold() {
    let mut numbers = Numbers(4_711);
    let events: Vec<Event> = (0..1_200).map(|_| random_event(&mut numbers)).collect();
    check(&events);
}

#[test]
fn without_change_logs_the_other_tables_are_the_same() {
    let mut numbers = Numbers(7);
    let events: Vec<Event> = (0..200).map(|_| random_event(&mut numbers)).collect();
    let with = Harness::<Orders>::new(r#"{"change_logs":true}"#)
        .project(&events)
        .rows();
    let without = Harness::<Orders>::new(r#"{"change_logs":false}"#)
        .project(&events)
        .rows();
    assert!(!without.has("order_change_logs"));
    for table in ["orders", "order_totals"] {
        assert_eq!(with.json(table), without.json(table));
    }
}

#[test]
fn an_unknown_setting_is_refused_by_name() {
    use projector_sdk::{Config, Projection};
    for (config, part) in [
        (r#"{"change_log":false}"#, "change_log"),
        (r#"{"change_logs":1}"#, "change_logs"),
        (r#"{"change_logs":null}"#, "change_logs"),
    ] {
        let refusal = Orders::new(&Config::from_json(config))
            .err()
            .unwrap_or_default();
        assert!(refusal.contains(part), "{config}: {refusal}");
    }
}
