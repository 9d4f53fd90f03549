//! The contestants, run in turn, round after round, and their rows compared.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context as _, Result, bail};

use crate::process;

use super::{
    Scene,
    arena::{Arena, STORE},
    host::{Host, Plugins},
    measure::{Results, Sample},
};

/// The host with the `order` projection alone.
pub const ORDER: &str = "host, order";
/// The host with three projections.
pub const THREE: &str = "host, three projections";
/// Set-based SQL inside the database, for `order`.
pub const SQL: &str = "set-based SQL in the database";

/// Hand-written Rust, row by row.
pub const ROWS: &str = "row by row, one transaction";
/// The same with a commit for each event.
pub const COMMITS: &str = "row by row, a commit each";
/// The listener of the library that the CRM uses.
pub const LISTENER: &str = "disintegrate-postgres listener";

/// The slow ones: (name, the program's word, one in how many events of the store it is given).
const SLOW: [(&str, &str, usize); 3] = [
    (ROWS, "rows-in-one-transaction", 10),
    (COMMITS, "row-commits", 50),
    (LISTENER, "listener", 50),
];

/// No slow contestant is given more events of the store than this.
const SLOW_EVENTS_MAX: usize = 40_000;

/// Events that the set-based SQL folds and commits at a time.
const SQL_BATCH_EVENTS: usize = 1_000;

/// The schema of the peers' tables, in the store's database.
const PEER: &str = "peer";

/// What has been measured so far.
pub struct Contest {
    arena: Arena,
    program: PathBuf,
    /// The program of the slow contestants, if they take part.
    peers: Option<PathBuf>,
    /// What the rows must be after so many events.
    expected: HashMap<i64, String>,
    order_events: usize,
    /// Where the first and the last of them stand.
    first_order: i64,
    last_order: i64,
    /// The same contestants with one event to do: what it costs to start and to end.
    idle: Vec<Sample>,
    rounds: Vec<Vec<Sample>>,
}

impl Contest {
    /// Nothing measured yet.
    pub fn new(arena: Arena, program: PathBuf, peers: Option<PathBuf>) -> Result<Self> {
        let orders = "select count(*), min(position), max(position) from event_store.events where type like 'Order%'";
        let orders = arena.psql(STORE, orders)?;
        let [order_events, first_order, last_order] = orders.split('|').collect::<Vec<_>>()[..]
        else {
            bail!("not three figures: {orders}");
        };
        Ok(Self {
            arena,
            program,
            peers,
            expected: HashMap::new(),
            order_events: order_events.parse()?,
            first_order: first_order.parse()?,
            last_order: last_order.parse()?,
            idle: Vec::new(),
            rounds: Vec::new(),
        })
    }

    /// The host and the set-based SQL once.
    pub fn duel(&mut self) -> Result<()> {
        let (round, _) = self.pair()?;
        self.rounds.push(round);
        Ok(())
    }

    /// Every contestant once.
    pub fn round(&mut self) -> Result<()> {
        let (mut round, rows) = self.pair()?;
        let (three, three_rows) = self.host(THREE, self.arena.events, Plugins::Shipped)?;
        round.push(three);
        same(THREE, &three_rows, ORDER, &rows)?;
        if let Some(peers) = self.peers.clone() {
            for (name, word, share) in SLOW {
                round.push(self.slow(&peers, name, word, share)?);
            }
        }
        self.rounds.push(round);
        Ok(())
    }

    /// All rounds.
    pub fn results(self, scene: &Scene) -> Results {
        let idle = |name, figure: fn(&Sample) -> f64| {
            let runs = self.idle.iter().filter(|sample| sample.name == name);
            // Of no runs, nothing is taken off.
            runs.map(figure).reduce(f64::min).unwrap_or(0.0)
        };
        let mut rounds = self.rounds;
        for sample in rounds.iter_mut().flatten() {
            sample.seconds = (sample.seconds - idle(sample.name, |idle| idle.seconds)).max(0.001);
            let server = idle(sample.name, |idle| idle.server_cpu_seconds);
            sample.server_cpu_seconds = (sample.server_cpu_seconds - server).max(0.0);
            if let Some(cpu) = &mut sample.cpu_seconds {
                *cpu = (*cpu - idle(sample.name, |idle| idle.cpu_seconds.unwrap_or(0.0))).max(0.0);
            }
        }
        Results {
            machine: scene.machine.clone(),
            postgres: scene.installation.version().to_owned(),
            events: self.arena.events,
            idle_seconds: idle(ORDER, |idle| idle.seconds),
            rounds,
        }
    }

    /// The two that are compared most, and their rows.
    fn pair(&mut self) -> Result<(Vec<Sample>, String)> {
        let (order, rows) = self.host(ORDER, self.order_events, Plugins::Order)?;
        let (sql, sql_rows) = self.sql()?;
        same(SQL, &sql_rows, ORDER, &rows)?;
        Ok((vec![order, sql], rows))
    }

    fn host(
        &mut self,
        name: &'static str,
        events: usize,
        plugins: Plugins,
    ) -> Result<(Sample, String)> {
        let host = Host::behind(&mut self.arena, &self.program, plugins)?;
        host.migrate()?;
        let run = || {
            self.arena.settle()?;
            let before = self.arena.server_cpu_seconds();
            let run = host.run()?;
            self.arena.settle()?;
            Ok::<_, anyhow::Error>(Sample {
                name,
                events,
                seconds: run.seconds,
                cpu_seconds: Some(run.cpu_seconds),
                server_cpu_seconds: self.arena.server_cpu_seconds() - before,
                memory_peak: Some(run.memory_peak),
            })
        };
        // Makes the tables, as the peers' are made before the clock runs.
        host.run()?;
        // With nothing at all to do it would end before it leads, reads and writes; so it gets one event, as the SQL does.
        host.rewind(&self.arena, self.last_order - 1)?;
        let idle = run()?;
        host.rewind(&self.arena, 0)?;
        let sample = run()?;
        let rows = self.arena.digest(&host.database, "read_model")?;
        self.arena.drop_database(&host.database)?;
        self.idle.push(idle);
        tell(&sample);
        Ok((sample, rows))
    }

    fn sql(&mut self) -> Result<(Sample, String)> {
        let run = |upto| {
            self.prepare()?;
            self.arena.settle()?;
            let before = self.arena.server_cpu_seconds();
            let begun = Instant::now();
            self.fold(upto)?;
            let seconds = begun.elapsed().as_secs_f64();
            self.arena.settle()?;
            let server_cpu_seconds = self.arena.server_cpu_seconds() - before;
            let rows = self.arena.digest(STORE, PEER)?;
            self.clear()?;
            let sample = Sample {
                name: SQL,
                events: self.order_events,
                seconds,
                cpu_seconds: None,
                server_cpu_seconds,
                memory_peak: None,
            };
            Ok::<_, anyhow::Error>((sample, rows))
        };
        let (sample, rows) = run(i64::MAX)?;
        let (idle, _) = run(self.first_order)?;
        self.idle.push(idle);
        tell(&sample);
        Ok((sample, rows))
    }

    /// A contestant that gets the first events only; its rate stands for all.
    fn slow(
        &mut self,
        program: &Path,
        name: &'static str,
        word: &str,
        share: usize,
    ) -> Result<Sample> {
        let upto = i64::try_from((self.arena.events / share).clamp(1, SLOW_EVENTS_MAX))?;
        let expected = match self.expected.get(&upto) {
            Some(known) => known.clone(),
            None => {
                self.prepare()?;
                self.fold(upto)?;
                let rows = self.arena.digest(STORE, PEER)?;
                self.clear()?;
                self.expected.insert(upto, rows.clone());
                rows
            }
        };
        self.prepare()?;
        self.arena.settle()?;
        let before = self.arena.server_cpu_seconds();
        let mut command = Command::new(program);
        command.args([word, &self.arena.url(STORE), &upto.to_string()]);
        let said = String::from_utf8(process::capture(&mut command)?)?;
        self.arena.settle()?;
        let server_cpu_seconds = self.arena.server_cpu_seconds() - before;
        let (events, seconds) = said
            .trim()
            .split_once(' ')
            .context("the peers' program said nothing")?;
        let rows = self.arena.digest(STORE, PEER)?;
        self.clear()?;
        same(name, &rows, SQL, &expected)?;
        let sample = Sample {
            name,
            events: events.parse()?,
            seconds: seconds.parse()?,
            cpu_seconds: None,
            server_cpu_seconds,
            memory_peak: None,
        };
        tell(&sample);
        Ok(sample)
    }

    /// Empty tables for a peer.
    fn prepare(&self) -> Result<()> {
        for sql in [
            include_str!("sql/order_tables.sql"),
            include_str!("sql/order_fold.sql"),
        ] {
            let sql = sql.replace("{schema}", PEER);
            self.arena.psql(STORE, &sql)?;
        }
        Ok(())
    }

    fn fold(&self, upto: i64) -> Result<()> {
        let call = format!("call {PEER}.fold({upto}, {SQL_BATCH_EVENTS})");
        self.arena.psql(STORE, &call)?;
        Ok(())
    }

    fn clear(&self) -> Result<()> {
        let sql = format!(
            "drop schema {PEER} cascade; drop table if exists event, event_listener; \
             drop sequence if exists seq_event_event_id"
        );
        self.arena.psql(STORE, &sql)?;
        Ok(())
    }
}

/// Says at once what came out, start and end included: the table may be half an hour away.
fn tell(sample: &Sample) {
    eprintln!(
        "    {}: {:.2} s, {:.0} events/s",
        sample.name,
        sample.seconds,
        sample.rate()
    );
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
