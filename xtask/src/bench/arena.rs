//! Where everything is measured: one durable server, one store of sample events, a fresh read model for each run.

use std::{collections::HashMap, fmt::Write as _, fs, path::Path};

use anyhow::{Context, Result};
use projector_testkit::{Installation, Server, ServerOptions};

use crate::sample::{Event, World};

use super::host::{Host, Of, Plugins, cpu_seconds};

/// The database that holds the events, and the schemas of the peers.
pub const STORE: &str = "store";

/// Events that one COPY brings in.
const CHUNK_EVENTS: usize = 20_000;

/// How long a statement may take: what folds ten million events needs minutes.
const STATEMENT_LIMIT: &str = "2h";

/// Seed of the measured events.
const SEED: u64 = 5;

/// The server with its events.
pub struct Arena {
    /// PostgreSQL, set up as in production: whatever is committed is on disk.
    pub server: Server,
    /// How many events the store holds.
    pub events: usize,
    runs: usize,
}

impl Arena {
    /// A server with an empty store, and with these settings beside the usual ones.
    pub fn start(installation: Installation, settings: &[(&str, &str)]) -> Result<Self> {
        let mut options = ServerOptions::default()
            .installation(installation)
            .durable()
            .setting("shared_buffers", "512MB")
            .setting("max_wal_size", "8GB")
            .setting("checkpoint_timeout", "30min");
        for (name, value) in settings {
            options = options.setting(*name, *value);
        }
        let server = Server::start(options)?;
        server.create_database(STORE)?;
        Ok(Self {
            server,
            events: 0,
            runs: 0,
        })
    }

    /// Makes the store's tables and fills them with the same events as ever, as fast as the server takes them.
    pub fn fill(&mut self, events: usize, program: &Path) -> Result<()> {
        self.migrate(program)?;
        let mut versions: HashMap<String, u64> = HashMap::new();
        let mut world = World::new(SEED, events);
        let mut left = events;
        while left > 0 {
            let mut script = String::from(
                "COPY event_store.events (stream, version, id, type, data, metadata) FROM stdin;\n",
            );
            for event in world.by_ref().take(CHUNK_EVENTS.min(left)) {
                let version = versions.entry(event.stream.clone()).or_default();
                *version += 1;
                writeln!(script, "{}", copy_text(&event, *version))?;
            }
            script.push_str("\\.\n");
            self.psql(STORE, &script).context("cannot load events")?;
            left = left.saturating_sub(CHUNK_EVENTS);
        }
        self.filled(events)
    }

    /// Makes the store's tables and fills them with order events of so many orders: each is created, one after the
    /// other, then their status changes in turn.
    pub fn fill_orders(&mut self, events: usize, orders: usize, program: &Path) -> Result<()> {
        self.migrate(program)?;
        let sql = include_str!("sql/orders.sql")
            .replace("{events}", &events.to_string())
            .replace("{orders}", &orders.to_string());
        self.psql(STORE, &sql)?;
        self.filled(events)
    }

    /// Makes the store's tables. Before that, a host without events compiles the plugins, so that no run has to.
    fn migrate(&mut self, program: &Path) -> Result<()> {
        let warm = Host::together(self, program, Plugins::Shipped)?;
        warm.migrate()?;
        warm.run()?;
        self.drop_database(&warm.database)?;
        let host = Host::apart(self, program, Plugins::Order)?;
        host.migrate()?;
        self.drop_database(&host.database)
    }

    fn filled(&mut self, events: usize) -> Result<()> {
        self.psql(STORE, "VACUUM ANALYZE")?;
        self.events = events;
        Ok(())
    }

    /// Runs SQL, as long as it may take on a slow machine; gives the rows as text, columns split by `|`.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String> {
        let sql = format!("SET statement_timeout = '{STATEMENT_LIMIT}';\n{sql}");
        Ok(self.server.psql(database, &sql)?)
    }

    /// Where the host and the hand-written contestants connect: over a Unix socket, as one does to a server on the same
    /// machine.
    pub fn url(&self, database: &str) -> String {
        let (folder, port) = (self.server.socket_dir(), self.server.port());
        format!(
            "postgresql://postgres@localhost/{database}?host={}&port={port}",
            folder.display()
        )
    }

    /// A fresh database for one run.
    pub fn read_model(&mut self) -> Result<String> {
        self.runs += 1;
        let name = format!("run_{}", self.runs);
        self.server.create_database(&name)?;
        Ok(name)
    }

    /// Removes what a run left.
    pub fn drop_database(&self, name: &str) -> Result<()> {
        self.psql("postgres", &format!("drop database {name} with (force)"))?;
        Ok(())
    }

    /// Writes out what earlier runs left behind, so that nobody pays for somebody else's rows.
    pub fn settle(&self) -> Result<()> {
        self.psql("postgres", "checkpoint")?;
        Ok(())
    }

    /// Processor time of all processes of the server: sessions that are here or gone, and those that write and vacuum
    /// behind them.
    pub fn server_cpu_seconds(&self) -> f64 {
        let Some(server) = self.server.pid() else {
            return 0.0;
        };
        let seconds = |pid: &str, of| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            cpu_seconds(&stat, of)
        };
        let pid = server.to_string();
        let own = seconds(&pid, Of::Itself).unwrap_or(0.0);
        let ended = seconds(&pid, Of::Children).unwrap_or(0.0);
        // Without the list of its children only those count that have ended.
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let children = children.unwrap_or_default();
        let running = children.split_whitespace();
        own + ended
            + running
                .filter_map(|pid| seconds(pid, Of::Itself))
                .sum::<f64>()
    }

    /// What distinguishes the rows of one order projection from those of another.
    pub fn digest(&self, database: &str, schema: &str) -> Result<String> {
        let sql = include_str!("sql/digest.sql").replace("{schema}", schema);
        self.psql(database, &sql)
    }
}

/// An event as a line of COPY's text format.
fn copy_text(event: &Event, version: u64) -> String {
    let data = serde_json::Value::Object(event.data.clone()).to_string();
    // JSON escapes line breaks and tabs; what is left for COPY is the backslash.
    format!(
        "{}\t{version}\t{}\t{}\t{}\t{{\"source\": \"{}\"}}",
        event.stream,
        event.id,
        event.name,
        data.replace('\\', "\\\\"),
        event.source
    )
}
