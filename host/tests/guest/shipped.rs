//! The components that ship with the host.

use std::time::Instant;

use projector_host::event_store::event::{Event, Position};
use projector_host::guest::lookups::Answers;
use projector_host::guest::writes::Keys;
use projector_host::guest::{Limits, LookupFailure, Lookups};
use projector_host::plugin::{Loaded, Options, load_all};

use crate::fixture::{engine, events, project, project_with, shipped};

/// Every row is absent.
struct Empty;

impl Lookups for Empty {
    fn get(&mut self, keys: &Keys) -> Result<Answers, LookupFailure> {
        Ok(vec![None; keys.len()])
    }
}

fn load() -> Loaded {
    let dir = shipped("order").parent().expect("a folder").to_owned();
    load_all(
        engine(),
        &Options {
            dir,
            cache_dir: None,
            limits: Limits::default(),
            projections: Vec::new(),
            program: None,
        },
    )
}

fn orders(count: i64) -> Vec<Event> {
    let mut batch = events(count);
    for event in &mut batch {
        let order = format!("00000000-0000-4000-8000-{:012}", event.position.0);
        event.stream = format!("order-{order}");
        event.version = 1;
        event.event_type = "OrderCreated".into();
        event.data = format!(
            r#"{{"merchant_id":"11111111-1111-4111-8111-111111111111","order_uuid":"{order}","customer_uuid":"22222222-2222-4222-8222-222222222222","status":"pending","settlement_status":"unsettled","amount_cents":12900,"notes":"ring twice","inserted_at":"2024-05-01T08:00:00Z","updated_at":"2024-05-01T08:00:00.123456Z"}}"#
        );
    }
    batch
}

#[test]
fn the_three_projections_load_and_describe_themselves() {
    let loaded = load();
    let names: Vec<&str> = loaded
        .plugins
        .iter()
        .map(|p| p.manifest.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["order", "scheduling", "service-request"],
        "{:?}",
        loaded.refused
    );
    for plugin in &loaded.plugins {
        assert!(!plugin.manifest.tables.is_empty());
        assert!(!plugin.guest.is_json());
        project(&plugin.guest, Vec::new(), &plugin.limits).expect("an empty batch is no fault");
    }
}

#[test]
fn a_batch_of_orders_becomes_writes_the_same_ones_each_time() {
    let loaded = load();
    let order = loaded.plugin("order").expect("order is there");
    let first = project_with(&order.guest, orders(50), Box::new(Empty), &order.limits)
        .expect("gets through");
    let second = project_with(&order.guest, orders(50), Box::new(Empty), &order.limits)
        .expect("gets through");
    assert!(first.writes.len() >= 50, "{}", first.writes.len());
    assert_eq!(
        format!("{:?}", first.writes),
        format!("{:?}", second.writes)
    );
    assert_eq!(first.fuel, second.fuel, "the same call uses the same fuel");
}

#[test]
fn a_malformed_event_is_blamed_by_its_place() {
    let loaded = load();
    let order = loaded.plugin("order").expect("order is there");
    let mut batch = orders(3);
    batch[1].data = "{}".into();
    batch[1].position = Position(2);
    let error =
        project_with(&order.guest, batch, Box::new(Empty), &order.limits).expect_err("poison");
    assert_eq!(error.event, Some(1), "{error}");
    assert_eq!(
        error.category,
        projector_host::guest::Category::Rejected,
        "{error}"
    );
}

#[test]
fn five_thousand_orders_in_one_call_take_microseconds_each() {
    let loaded = load();
    let order = loaded.plugin("order").expect("order is there");
    let batch = orders(5_000);
    project_with(&order.guest, batch.clone(), Box::new(Empty), &order.limits)
        .expect("gets through");
    let began = Instant::now();
    let output =
        project_with(&order.guest, batch, Box::new(Empty), &order.limits).expect("gets through");
    let each = began.elapsed() / 5_000;
    println!(
        "{each:?} and {} fuel an event, {} writes, {} MiB",
        output.fuel / 5_000,
        output.writes.len(),
        output.memory_peak >> 20
    );
    assert!(output.fuel < order.limits.fuel_max / 4, "{}", output.fuel);
}
