//! The contestants, run in turn, round after round, and their rows compared.

use std::{path::PathBuf, time::Instant};

use anyhow::{Result, bail};

use super::{
    arena::{Arena, STORE},
    host::Host,
    machine,
    measure::{Results, Sample, Spread},
};

/// The host with the `order` projection alone.
pub const ORDER: &str = "host, order";
/// The host with three projections.
pub const THREE: &str = "host, three projections";
/// Set-based SQL inside the database, for `order`.
pub const SQL: &str = "set-based SQL in the database";

/// Events that the set-based SQL folds and commits at a time.
const SQL_BATCH_EVENTS: usize = 1_000;

/// What has been measured so far.
pub struct Contest {
    arena: Arena,
    program: PathBuf,
    order_events: usize,
    idle: Vec<f64>,
    rounds: Vec<Vec<Sample>>,
}

impl Contest {
    /// Nothing measured yet.
    pub fn new(arena: Arena, program: PathBuf) -> Result<Self> {
        let count = "select count(*) from event_store.events where type like 'Order%'";
        let order_events = arena.server.psql(STORE, count)?.parse()?;
        Ok(Self {
            arena,
            program,
            order_events,
            idle: Vec::new(),
            rounds: Vec::new(),
        })
    }

    /// Every contestant once.
    pub fn round(&mut self) -> Result<()> {
        let mut round = Vec::new();
        let (order, rows) = self.host(ORDER, self.order_events, true)?;
        round.push(order);
        let (sql, sql_rows) = self.sql()?;
        round.push(sql);
        same(SQL, &sql_rows, ORDER, &rows)?;
        let (three, three_rows) = self.host(THREE, self.arena.events, false)?;
        round.push(three);
        same(THREE, &three_rows, ORDER, &rows)?;
        for sample in &round {
            eprintln!(
                "    {}: {:.2} s, {:.0} events/s",
                sample.name,
                sample.seconds,
                sample.rate()
            );
        }
        self.rounds.push(round);
        Ok(())
    }

    /// All rounds.
    pub fn results(self, postgres: String) -> Results {
        let idle_seconds = Spread::of(self.idle).map_or(0.0, |spread| spread.min);
        let mut rounds = self.rounds;
        for sample in rounds.iter_mut().flatten() {
            if sample.cpu_seconds.is_some() {
                sample.seconds = (sample.seconds - idle_seconds).max(0.001);
            }
        }
        Results {
            machine: machine(),
            postgres,
            events: self.arena.events,
            idle_seconds,
            rounds,
        }
    }

    fn host(&mut self, name: &'static str, events: usize, alone: bool) -> Result<(Sample, String)> {
        let host = Host::new(&mut self.arena, self.program.clone(), alone)?;
        host.migrate()?;
        self.arena.settle()?;
        let run = host.run()?;
        // The same again, with nothing left to do: what it costs to start and to end.
        self.idle.push(host.run()?.seconds);
        let rows = self.arena.digest(&host.database, "read_model")?;
        self.arena.drop_database(&host.database)?;
        let sample = Sample {
            name,
            events,
            seconds: run.seconds,
            cpu_seconds: Some(run.cpu_seconds),
            memory_peak: Some(run.memory_peak),
        };
        Ok((sample, rows))
    }

    fn sql(&mut self) -> Result<(Sample, String)> {
        let server = &self.arena.server;
        let render = |text: &str| text.replace("{schema}", "peer");
        server.psql(STORE, &render(include_str!("sql/order_tables.sql")))?;
        server.psql(STORE, &render(include_str!("sql/order_fold.sql")))?;
        self.arena.settle()?;
        let begun = Instant::now();
        let call = format!("call peer.fold({}, {SQL_BATCH_EVENTS})", i64::MAX);
        server.psql(STORE, &call)?;
        let seconds = begun.elapsed().as_secs_f64();
        let rows = self.arena.digest(STORE, "peer")?;
        server.psql(STORE, "drop schema peer cascade")?;
        let sample = Sample {
            name: SQL,
            events: self.order_events,
            seconds,
            cpu_seconds: None,
            memory_peak: None,
        };
        Ok((sample, rows))
    }
}

fn same(name: &str, rows: &str, other: &str, expected: &str) -> Result<()> {
    if rows == expected {
        return Ok(());
    }
    bail!(
        "{name} has other rows than {other}, so their times cannot be compared: {rows} and {expected} \
         (rows:digest of orders, then of order_totals)"
    )
}
