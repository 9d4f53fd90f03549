//! `cargo xtask sample`: events of a made-up CRM for housekeeping companies, as `projector-host append` takes them.
//!
//! The same seed gives the same bytes, on every machine and for ever: the repository ships one such file, and a test
//! that failed with a seed can be run again. Every event can be projected; none is poison.

mod event;
mod life;
mod random;
mod words;
mod world;

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

pub use event::Event;
pub use world::World;

/// How many events the shipped file has.
pub const SHIPPED_EVENTS: usize = 2_000;

/// The seed of the shipped file.
pub const SHIPPED_SEED: u64 = 7;

/// What the user may choose.
#[derive(clap::Args)]
pub struct Arguments {
    /// How many events
    #[arg(long, default_value_t = SHIPPED_EVENTS)]
    events: usize,
    /// The same seed gives the same events
    #[arg(long, default_value_t = SHIPPED_SEED)]
    seed: u64,
    /// Where to write them; standard output if not given
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Writes the events.
pub fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.out {
        Some(path) => {
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            write(BufWriter::new(file), arguments.events, arguments.seed)
                .with_context(|| format!("cannot write {}", path.display()))
        }
        None => match write(
            BufWriter::new(std::io::stdout().lock()),
            arguments.events,
            arguments.seed,
        ) {
            // The reader has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            result => result.context("cannot write to standard output"),
        },
    }
}

/// The shipped file.
pub fn shipped() -> PathBuf {
    crate::place::root().join(Path::new("xtask/sample/events.ndjson"))
}

/// One event a line.
pub fn write(mut out: impl Write, events: usize, seed: u64) -> std::io::Result<()> {
    for event in World::new(seed, events).take(events) {
        writeln!(out, "{}", event.line())?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use serde_json::Value;

    use super::*;

    fn lines(events: usize, seed: u64) -> Vec<Value> {
        let mut bytes = Vec::new();
        write(&mut bytes, events, seed).expect("a vector takes everything");
        let text = String::from_utf8(bytes).expect("JSON is UTF-8");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("each line is JSON"))
            .collect()
    }

    #[test]
    fn the_same_seed_gives_the_same_events_and_another_seed_others() {
        assert_eq!(lines(500, 1), lines(500, 1));
        assert_ne!(lines(500, 1), lines(500, 2));
        assert_eq!(lines(0, 1).len(), 0);
    }

    #[test]
    fn the_shipped_sample_has_every_event_of_every_aggregate_and_the_odd_ones() {
        let events = lines(SHIPPED_EVENTS, SHIPPED_SEED);
        assert_eq!(events.len(), SHIPPED_EVENTS);
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for event in &events {
            *names
                .entry(event["type"].as_str().expect("a name"))
                .or_default() += 1;
        }
        assert_eq!(names.len(), 13, "{names:?}");
        let text = |event: &Value| event["data"].to_string();
        let some = |what: &str| {
            assert!(
                events.iter().any(|event| text(event).contains(what)),
                "no {what}"
            )
        };
        for odd in ["tenant_schema", "order_id", "trace_id", "00.0", "🐈"] {
            some(odd);
        }
        let ids: HashSet<&str> = events
            .iter()
            .filter_map(|event| event["id"].as_str())
            .collect();
        assert_eq!(
            ids.len(),
            events.len(),
            "every event has an identifier of its own"
        );
    }

    #[test]
    fn streams_mix_and_each_begins_with_a_creation_as_a_rule() {
        let events = lines(20_000, 3);
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        for event in &events {
            first
                .entry(event["stream"].as_str().expect("a stream"))
                .or_insert(event["type"].as_str().expect("a name"));
        }
        let created = first
            .values()
            .filter(|name| name.ends_with("Created"))
            .count();
        assert!(
            created < first.len() && created * 100 > first.len() * 97,
            "{created} of {}",
            first.len()
        );
        let same = events
            .windows(2)
            .filter(|pair| pair[0]["stream"] == pair[1]["stream"])
            .count();
        assert!(
            same * 2 < events.len(),
            "{same} events follow one of their own stream"
        );
    }
}
