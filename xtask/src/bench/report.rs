//! The results as a table for people and as JSON for programs.

use serde_json::json;

use super::contest::{COMMITS, LISTENER, ORDER, ROWS, SQL, THREE};
use super::measure::{Results, Sample, Spread};

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
    let mut lines = vec![
        format!(
            "{} events, {}, {}",
            results.events, results.postgres, results.machine
        ),
        String::new(),
        format!(
            "{:<32} {:>8} {:>26} {:>9} {:>9} {:>6}",
            "", "events", "events/s: min, median, max", "host µs", "server µs", "MiB"
        ),
    ];
    let median = |figures: Vec<f64>| {
        Spread::of(figures).map_or_else(String::new, |spread| format!("{:.1}", spread.median))
    };
    for name in results.names() {
        let Some(rate) = results.spread(name, Sample::rate) else {
            continue;
        };
        let events = results.of(name).next().map_or(0, |sample| sample.events);
        let own = results.of(name).filter_map(Sample::own_micros).collect();
        let server = results.of(name).map(Sample::server_micros).collect();
        let memory = results
            .of(name)
            .filter_map(|sample| sample.memory_peak)
            .max();
        lines.push(format!(
            "{name:<32} {events:>8} {:>8.0} {:>8.0} {:>8.0} {:>9} {:>9} {:>6}",
            rate.min,
            rate.median,
            rate.max,
            median(own),
            median(server),
            memory.map_or_else(String::new, |bytes| (bytes >> 20).to_string()),
        ));
    }
    lines.push(String::new());
    lines.push(format!(
        "{:<52} {:>7} {:>7} {:>7}",
        "ratio", "min", "median", "max"
    ));
    for (words, spread) in ratios(results) {
        lines.push(format!(
            "{words:<52} {:>7.2} {:>7.2} {:>7.2}",
            spread.min, spread.median, spread.max
        ));
    }
    lines.join("\n")
}

/// Everything, for programs.
pub fn json(results: &Results) -> String {
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
    let document = json!({
        "machine": results.machine,
        "postgres": results.postgres,
        "events": results.events,
        "idle_seconds": results.idle_seconds,
        "ratios": ratios.collect::<Vec<_>>(),
        "rounds": rounds.collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
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
    // Processor time does not depend on who else is busy on the machine.
    let pairs = results.of(ORDER).zip(results.of(SQL));
    let total = |sample: &Sample| sample.own_micros().unwrap_or(0.0) + sample.server_micros();
    if let Some(spread) = Spread::of(pairs.map(|(a, b)| total(a) / total(b)).collect()) {
        all.push((
            "processor time of order, against set-based SQL".to_owned(),
            spread,
        ));
    }
    all
}
