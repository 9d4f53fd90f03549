//! The closed part of WASI: deterministic, and nothing of the machine in it.

use projector_host::guest::bindings::{Change, Value};
use projector_host::guest::{Category, Limits};

use crate::fixture::{events, guest, project};

fn key(output: &projector_host::guest::Output) -> i64 {
    let writes = output.writes.to_list();
    assert!(matches!(writes[0].change, Change::Put(_)));
    match writes[0].target.key[0].value {
        Value::Int(value) => value,
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn the_clock_stands_at_the_last_event_and_chance_is_always_the_same() {
    let guest = guest("wasi");
    assert!(
        guest.unavailable_imports().is_empty(),
        "{:?}",
        guest.unavailable_imports()
    );
    let mut batch = events(3);
    batch[2].recorded_at = 1_234_567_890_000_000;
    let began = std::time::Instant::now();
    let first = project(&guest, batch.clone(), &Limits::default()).expect("gets through");
    assert!(
        began.elapsed().as_secs() < 15,
        "its sleep of 30 seconds is over at once"
    );
    assert_eq!(key(&first) & ((1 << 40) - 1), 1_234_567_890);
    let chance = key(&first) >> 40;
    assert_ne!(chance, 0);
    for _ in 0..3 {
        let again = project(&guest, batch.clone(), &Limits::default()).expect("gets through");
        assert_eq!(key(&again), key(&first));
        assert_eq!(again.fuel, first.fuel);
    }
    let later = project(&guest, events(1), &Limits::default()).expect("gets through");
    assert_eq!(key(&later), (chance << 40) | 1_700_000_000);
}

#[test]
fn what_is_not_in_the_closed_part_loads_and_traps_when_it_is_called() {
    let guest = guest("wasi-socket");
    assert_eq!(guest.unavailable_imports(), ["wasi:sockets/lookup@0.2.3"]);
    let error = project(&guest, events(1), &Limits::default()).expect_err("traps");
    assert_eq!(error.category, Category::Trap);
    assert!(
        error.message.contains("wasi:sockets/lookup@0.2.3#resolve"),
        "{error}"
    );
}

#[test]
fn what_is_printed_becomes_log_lines_within_their_bound() {
    let limits = Limits {
        log_lines_max: 0,
        ..Limits::default()
    };
    let output = project(&guest("wasi"), events(1), &limits).expect("gets through");
    assert_eq!(output.log_lines_dropped, 1);
}
