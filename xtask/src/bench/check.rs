//! `cargo xtask bench --check`: counts that do not depend on the machine, against those of the committed baseline.
//!
//! Fuel for each event (instructions of the plugin, roughly), statements and guest calls for each batch. A host as the
//! tests build it does, since neither optimisation nor load changes them.

use std::{
    collections::BTreeMap,
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use projector_testkit::Installation;

use crate::{generated, place, plugins, postgres, steps::Steps};

use super::{
    arena::{Arena, STORE},
    host::{Host, Plugins, Running},
};

/// Enough that the store is read in full batches.
const EVENTS: usize = 10_000;

/// Batches that do not grow, so that their number does not depend on the pace.
const BATCH_EVENTS: usize = 500;

/// By how much a count may be above its baseline: compilers differ a little.
const TOLERANCE: f64 = 0.15;

/// So many batches may be cut in two, whatever their number.
const BATCHES_MORE: f64 = 2.0;

type Counts = BTreeMap<String, f64>;

/// Counts, and compares or writes the baseline.
pub fn run(bless: bool) -> Result<()> {
    let mut steps = Steps::begin();
    let program = steps.run("build the host", generated::build_host)?;
    steps.run("build the plugins", || plugins::build(None))?;
    let installation = steps.run("find PostgreSQL", || postgres::provide(None))?;
    let counts = steps.run("count", || count(installation, program))?;
    if bless {
        let text = format!("{:#}\n", serde_json::json!(counts));
        fs::write(baseline(), text).context("cannot write the baseline")?;
        println!("{}", baseline().display());
        return Ok(());
    }
    let text = fs::read_to_string(baseline()).context("cannot read the baseline")?;
    let before: Counts = serde_json::from_str(&text).context("the baseline cannot be read")?;
    compare(&before, &counts)
}

fn baseline() -> PathBuf {
    place::root().join("xtask/bench-baseline.json")
}

fn compare(before: &Counts, now: &Counts) -> Result<()> {
    let mut worse = Vec::new();
    println!("{:<44} {:>10} {:>10}", "", "baseline", "now");
    for (name, before) in before {
        let Some(now) = now.get(name) else {
            bail!(
                "{name} was not counted; `cargo xtask bench --check --bless` writes a new baseline"
            );
        };
        println!("{name:<44} {before:>10.1} {now:>10.1}");
        let more = if name.ends_with("batches") {
            BATCHES_MORE
        } else {
            0.0
        };
        if *now > before * (1.0 + TOLERANCE) + more {
            worse.push(format!("{name} went from {before:.1} to {now:.1}"));
        }
    }
    if worse.is_empty() {
        return Ok(());
    }
    bail!(
        "{}; if that is worth it, `cargo xtask bench --check --bless` makes it the baseline",
        worse.join(", ")
    )
}

fn count(installation: Installation, program: PathBuf) -> Result<Counts> {
    let settings = [("shared_preload_libraries", "pg_stat_statements")];
    let mut arena = Arena::start(installation, &settings)?;
    arena.fill(EVENTS, &program)?;
    let host = Host::apart(&mut arena, &program, Plugins::Shipped)?;
    let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
    host.configure(
        &format!("[event_store]\nbatch_events_max = {BATCH_EVENTS}\n"),
        port,
    )?;
    host.migrate()?;
    let server = &arena.server;
    server.psql(&host.database, "create extension pg_stat_statements")?;
    let mut running = Running::start(&host)?;
    host.wait()?;
    let metrics = get(port, "/metrics")?;
    running.stop()?;
    let statements: f64 = server
        .psql(
            &host.database,
            // On the projections' own tables: what the host writes down once a second depends on the time it takes.
            "select sum(calls) from pg_stat_statements s join pg_database d on d.oid = s.dbid \
             where d.datname = current_database() and query ~ '^(SELECT|INSERT|UPDATE|DELETE)' and position('_g1' in query) > 0",
        )?
        .parse()?;

    let mut counts = Counts::new();
    let mut batches = 0.0;
    for (name, wanted) in [
        ("order", "Order%"),
        ("scheduling", "Schedule%"),
        ("service-request", "ServiceRequest%"),
    ] {
        let events = format!("select count(*) from event_store.events where type like '{wanted}'");
        let events: f64 = server.psql(STORE, &events)?.parse()?;
        let fuel = metric(&metrics, "projector_guest_fuel_total", name)?;
        let done = metric(&metrics, "projector_batches_total", name)?;
        if fuel <= 0.0 || done <= 0.0 {
            bail!("{name} used {fuel} of fuel in {done} batches: nothing was measured");
        }
        batches += done;
        counts.insert(format!("{name}: fuel for an event"), fuel / events);
        counts.insert(format!("{name}: batches"), done);
    }
    counts.insert("statements for a batch".to_owned(), statements / batches);
    Ok(counts)
}

fn get(port: u16, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).context("the host does not listen")?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// A counter of one projection.
fn metric(text: &str, name: &str, projection: &str) -> Result<f64> {
    let label = format!("projection=\"{projection}\"");
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{name}{{")) && line.contains(&label))
        .with_context(|| format!("there is no {name} of {projection}"))?;
    let value = line.rsplit(' ').next().unwrap_or_default();
    value
        .parse()
        .with_context(|| format!("{line:?} is no metric"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(fuel: f64) -> Counts {
        Counts::from([("fuel".to_owned(), fuel)])
    }

    #[test]
    fn more_than_the_baseline_allows_is_an_error_that_names_it() {
        assert!(compare(&counts(100.0), &counts(114.0)).is_ok());
        assert!(compare(&counts(100.0), &counts(1.0)).is_ok());
        let error = compare(&counts(100.0), &counts(116.0)).expect_err("too much");
        assert!(
            error.to_string().contains("fuel went from 100.0 to 116.0"),
            "{error}"
        );
        assert!(compare(&counts(100.0), &Counts::new()).is_err());
        let batches = |number| Counts::from([("order: batches".to_owned(), number)]);
        assert!(compare(&batches(5.0), &batches(7.0)).is_ok());
        assert!(compare(&batches(5.0), &batches(8.0)).is_err());
    }

    #[test]
    fn a_counter_is_found_by_its_projection() {
        let text = "# HELP a b\nx_total{projection=\"a\"} 1\nx_total{projection=\"order\"} 25\n";
        assert_eq!(metric(text, "x_total", "order").ok(), Some(25.0));
        assert!(metric(text, "x_total", "other").is_err());
    }
}
