//! The results as a table for people and as JSON for programs.

use serde_json::{Value, json};

use super::contest::{COMMITS, LISTENER, ORDER, ROWS, SQL, THREE};
use super::measure::{Results, Sample, Spread};
use super::table::Table;

/// Ratios that are of interest: (words, who, than whom).
pub const RATIOS: [(&str, &str, &str); 4] = [
    ("order, against set-based SQL", ORDER, SQL),
    ("order, against row by row in one transaction", ORDER, ROWS),
    (
        "order, against row by row with a commit each",
        ORDER,
        COMMITS,
    ),
    (
        "order, against the disintegrate-postgres listener",
        ORDER,
        LISTENER,
    ),
];

/// Contestants and ratios, for people.
pub fn table(results: &Results) -> String {
    let median = |figures: Vec<f64>| {
        Spread::of(figures).map_or_else(String::new, |spread| format!("{:.1}", spread.median))
    };
    let mut contestants = Table::new([
        "",
        "events",
        "events/s",
        "min",
        "max",
        "host µs",
        "server µs",
        "MiB",
    ]);
    for name in results.names() {
        let Some(rate) = results.spread(name, Sample::rate) else {
            continue;
        };
        let events = results.of(name).next().map_or(0, |sample| sample.events);
        let memory = results.memory_peak(name);
        contestants.row([
            name.to_owned(),
            events.to_string(),
            format!("{:.0}", rate.median),
            format!("{:.0}", rate.min),
            format!("{:.0}", rate.max),
            median(results.of(name).filter_map(Sample::own_micros).collect()),
            median(results.of(name).map(Sample::server_micros).collect()),
            memory.map_or_else(String::new, |bytes| (bytes >> 20).to_string()),
        ]);
    }
    let mut compared = Table::new(["ratio", "median", "min", "max"]);
    for (words, spread) in ratios(results) {
        compared.row([
            words,
            format!("{:.2}", spread.median),
            format!("{:.2}", spread.min),
            format!("{:.2}", spread.max),
        ]);
    }
    format!(
        "{} events, {}, {}, rounds: {}\n\n{contestants}\n\n{compared}",
        results.events,
        results.postgres,
        results.machine,
        results.rounds.len()
    )
}

/// Everything, for programs.
pub fn json(results: &Results) -> Value {
    let rounds = results.rounds.iter().map(|round| {
        let samples = round.iter().map(|sample| {
            json!({
                "name": sample.name,
                "events": sample.events,
                "seconds": sample.seconds,
                "events_per_second": sample.rate(),
                "cpu_seconds": sample.cpu_seconds,
                "server_cpu_seconds": sample.server_cpu_seconds,
                "memory_peak_bytes": sample.memory_peak,
            })
        });
        samples.collect::<Vec<_>>()
    });
    let ratios = ratios(results).into_iter().map(|(words, spread)| {
        json!({ "ratio": words, "min": spread.min, "median": spread.median, "max": spread.max })
    });
    json!({
        "machine": results.machine,
        "postgres": results.postgres,
        "events": results.events,
        "idle_seconds": results.idle_seconds,
        "ratios": ratios.collect::<Vec<_>>(),
        "rounds": rounds.collect::<Vec<_>>(),
    })
}

/// The ratios that could be taken.
pub fn ratios(results: &Results) -> Vec<(String, Spread)> {
    let mut all: Vec<(String, Spread)> = RATIOS
        .iter()
        .filter_map(|(words, who, than)| Some(((*words).to_owned(), results.ratio(who, than)?)))
        .collect();
    // How long three take against one: of times, not of rates, since they work through different events.
    let pairs = results.of(THREE).zip(results.of(ORDER));
    if let Some(spread) = Spread::of(
        pairs
            .map(|(three, one)| three.seconds / one.seconds)
            .collect(),
    ) {
        all.push((
            "time of three projections, against order alone".to_owned(),
            spread,
        ));
    }
    // Processor time depends less on who else is busy on the machine.
    if let Some(spread) = results.processor_ratio(ORDER, SQL) {
        all.push((
            "processor time of order, against set-based SQL".to_owned(),
            spread,
        ));
    }
    all
}
