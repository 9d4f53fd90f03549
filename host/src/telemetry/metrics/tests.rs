//! Keeps `docs/reference/metrics.md` and the registry equal.

use std::collections::BTreeSet;

use super::{Metrics, Stage, Stand, State};
use crate::error::Class;
use crate::event_store::event::Position;
use crate::projection::verdict::File;

const PAGE: &str = include_str!("../../../../docs/reference/metrics.md");

#[test]
fn every_metric_stands_in_the_page_and_the_other_way_round() {
    let encoded = exposed();
    let page: BTreeSet<String> = PAGE
        .lines()
        .filter_map(|line| line.strip_prefix("| `projector_"))
        .filter_map(|rest| rest.split_once('`'))
        .map(|(name, _)| format!("projector_{name}"))
        .collect();
    assert_eq!(
        encoded, page,
        "the program on the left, the page on the right"
    );
}

fn stand(state: State, position: i64) -> Stand {
    Stand {
        state: Some(state),
        position: Position(position),
        begun: true,
        file: File::Good,
    }
}

#[test]
fn who_stands_still_is_not_caught_up_and_nobody_is_ahead_of_the_head() {
    for state in State::ALL {
        let metrics = Metrics::new();
        let projection = metrics.projection("order");
        for position in [9, 10, 260] {
            projection.state(&stand(state, position), Position(10));
            let page = metrics.encode().expect("every label can be written");
            let has = |name: &str, value: i64| {
                page.contains(&format!(
                    "projector_{name}{{projection=\"order\"}} {value}\n"
                ))
            };
            let still = matches!(state, State::Stopped | State::Paused | State::NoPlugin);
            let done = i64::from(!still && position >= 10);
            assert!(has("caught_up", done), "{state:?} at {position}: {page}");
            assert!(has("lag_events", (10 - position).max(0)), "{page}");
        }
    }
}

/// The names that the program exposes. A family without series is not written, so one of each is made first.
fn exposed() -> BTreeSet<String> {
    let metrics = Metrics::new();
    let projection = metrics.projection("order");
    projection.batch_read(1);
    projection.called("ok");
    projection.waits(1, 1, 1);
    projection.projected(1, 1);
    projection.took(Stage::Guest, 0.1);
    projection.committed(1, Position(1));
    projection.retried(Class::Transient);
    projection.failed("rejected");
    projection.fenced();
    metrics.module_loaded(true);
    metrics.of_leader().ended("resigned");
    metrics.leads_projection("order", true);
    projection.state(&stand(State::Live, 0), Position(0));
    let text = metrics.encode().expect("every label can be written");
    text.lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|rest| rest.split_once(' '))
        .map(|(name, kind)| match kind {
            "counter" => format!("{name}_total"),
            "info" => format!("{name}_info"),
            _ => name.to_owned(),
        })
        .collect()
}
