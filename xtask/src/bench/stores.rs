//! The host against the set-based SQL on one store after the other: of different sizes, and of few and many rows.
//!
//! What is asked is whether the host keeps its distance, and its memory, whatever the store holds.

use anyhow::Result;
use serde_json::{Value, json};

use super::{
    Scene,
    arena::Arena,
    contest::{Contest, ORDER, SQL},
    measure::{Results, Sample, Spread},
    outcome::Outcome,
    report,
    table::Table,
};

/// Events of the stores.
const SIZES: [usize; 4] = [10_000, 100_000, 1_000_000, 10_000_000];

/// A small store is measured often, since little is measured each time; a large one once.
const EVENTS_TOTAL: usize = 3_000_000;
const ROUNDS_MAX: usize = 9;

/// By how much the ratio may differ from the median of all stores.
const FLAT: f64 = 0.2;

/// Orders that share the events of a store; with the last one each event is an order.
const ORDERS: [usize; 3] = [100, 10_000, usize::MAX];

/// Whether the ratio stays the same from the smallest store to one of so many events.
pub fn scale(scene: &mut Scene, events_max: usize) -> Result<Outcome> {
    let mut all = Vec::new();
    for events in SIZES.into_iter().filter(|events| *events <= events_max) {
        let usual = (EVENTS_TOTAL / events).clamp(1, ROUNDS_MAX);
        let rounds = scene
            .rounds
            .unwrap_or(if scene.quick { usual.min(3) } else { usual });
        let results = duels(
            scene,
            rounds,
            &format!("{events} events"),
            |arena, scene| arena.fill(events, &scene.program),
        )?;
        all.push((format!("{events} events"), results));
    }
    let medians = all.iter().filter_map(|(_, results)| ratio(results));
    let ratios: Vec<f64> = medians.map(|spread| spread.median).collect();
    let deviations = deviations(&ratios);
    let worst = deviations.iter().map(|share| share.abs());
    let worst = worst.reduce(f64::max).unwrap_or(0.0);
    let shares = deviations
        .iter()
        .map(|share| format!("{:+.0} %", share * 100.0));
    let verdict = format!(
        "the ratio differs from its median by {}; within {:.0} % is wanted: {}",
        shares.collect::<Vec<_>>().join(", "),
        FLAT * 100.0,
        if worst <= FLAT { "met" } else { "missed" }
    );
    Ok(outcome(scene, "scale", &all, &verdict))
}

/// Whether memory grows with the number of rows that the events of a store are about.
pub fn keys(scene: &mut Scene, events: Option<usize>) -> Result<Outcome> {
    let (usual, rounds) = if scene.quick {
        (50_000, 1)
    } else {
        (500_000, 3)
    };
    let events = events.unwrap_or(usual).max(ORDERS[0]);
    let rounds = scene.rounds.unwrap_or(rounds);
    let mut all = Vec::new();
    for orders in ORDERS.map(|orders| orders.min(events)) {
        let name = format!("{events} events of {orders} orders");
        let results = duels(scene, rounds, &name, |arena, scene| {
            arena.fill_orders(events, orders, &scene.program)
        })?;
        all.push((name, results));
    }
    let peaks: Vec<u64> = all
        .iter()
        .filter_map(|(_, results)| results.memory_peak(ORDER))
        .collect();
    let verdict = match (peaks.first(), peaks.last()) {
        (Some(few), Some(many)) => format!(
            "memory of the host: {} MiB with few orders, {} MiB with many",
            few >> 20,
            many >> 20
        ),
        _ => String::new(),
    };
    Ok(outcome(scene, "keys", &all, &verdict))
}

/// The two contestants on a store of its own.
fn duels(
    scene: &mut Scene,
    rounds: usize,
    name: &str,
    fill: impl FnOnce(&mut Arena, &Scene) -> Result<()>,
) -> Result<Results> {
    let mut arena = Arena::start(scene.installation.clone(), &[])?;
    eprintln!("==> load {name}");
    fill(&mut arena, scene)?;
    let mut contest = Contest::new(arena, scene.program.clone(), None)?;
    scene.steps.run(&format!("{name}, {rounds} times"), || {
        (0..rounds).try_for_each(|_| contest.duel())
    })?;
    Ok(contest.results(scene))
}

fn ratio(results: &Results) -> Option<Spread> {
    results.ratio(ORDER, SQL)
}

/// By how much each figure differs from the median of all, as a share.
fn deviations(figures: &[f64]) -> Vec<f64> {
    let Some(spread) = Spread::of(figures.to_vec()) else {
        return Vec::new();
    };
    let shares = figures.iter().map(|figure| figure / spread.median - 1.0);
    shares.collect()
}

fn outcome(scene: &Scene, name: &'static str, all: &[(String, Results)], verdict: &str) -> Outcome {
    let mut table = Table::new([
        "",
        "runs",
        "host ev/s",
        "SQL ev/s",
        "ratio",
        "min",
        "max",
        "host µs",
        "+ server",
        "SQL µs",
        "MiB",
    ]);
    let mut figures = Vec::new();
    for (words, results) in all {
        let middle = |name, figure: fn(&Sample) -> f64| {
            results
                .spread(name, figure)
                .map_or(0.0, |spread| spread.median)
        };
        let of = |figure: fn(Spread) -> f64| ratio(results).map_or(0.0, figure);
        table.row([
            words.clone(),
            results.rounds.len().to_string(),
            format!("{:.0}", middle(ORDER, Sample::rate)),
            format!("{:.0}", middle(SQL, Sample::rate)),
            format!("{:.2}", of(|spread| spread.median)),
            format!("{:.2}", of(|spread| spread.min)),
            format!("{:.2}", of(|spread| spread.max)),
            format!(
                "{:.1}",
                middle(ORDER, |sample| sample.own_micros().unwrap_or(0.0))
            ),
            format!("{:.1}", middle(ORDER, Sample::server_micros)),
            format!("{:.1}", middle(SQL, Sample::server_micros)),
            results
                .memory_peak(ORDER)
                .map_or_else(String::new, |bytes| (bytes >> 20).to_string()),
        ]);
        figures.push(json!({
            "store": words,
            "results": report::json(results),
        }));
    }
    Outcome {
        name,
        table: format!(
            "order against set-based SQL, {}, {}\n\n{table}\n\n{verdict}",
            scene.installation.version(),
            scene.machine
        ),
        figures: Value::Array(figures),
        picture: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_shares_of_the_median() {
        let shares = deviations(&[1.0, 2.0, 3.0]);
        assert_eq!(shares, [-0.5, 0.0, 0.5]);
        assert!(deviations(&[]).is_empty());
    }
}
