//! A whole site for tests: two databases (or one for both), a configuration, and replicas of the real program.
//!
//! It is a small language: what a test says should read like what an operator does. Whatever goes wrong here ends the
//! test at once, with everything that one needs to understand why: roles, locks, sessions and the ends of the logs.
//! There is one wait, [`Site::eventually`], and one patience.

mod command;
mod http;
mod replica;
mod report;
mod rows;
mod session;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tempfile::TempDir;

pub use command::Answer;
pub use replica::Replica;
pub use session::Session;

use crate::{
    Installation, Server, ServerOptions, TestDatabase, domain::PROJECTIONS, guests,
    history::COUNTS, installation::in_path, server::psql, test_database,
};
use report::Trace;

/// Longest wait for anything that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Between two looks.
const LOOK_INTERVAL: Duration = Duration::from_millis(15);

/// Leases that end within seconds, so that tests of silent leaders are short.
pub const QUICK: &str = "retry_interval = \"100ms\"\nheartbeat_interval = \"300ms\"\nlocal_lease = \"1500ms\"\n\
                         server_lease = \"2500ms\"\n";

/// The programs' own default leases.
pub const DEFAULT: &str = "";

/// What is tested.
#[derive(Clone, Debug)]
pub struct Programs {
    /// The program `projector-host`.
    pub host: PathBuf,
    /// The folder of the shipped plugins.
    pub plugins: PathBuf,
    /// Where compiled plugins are kept from test to test.
    pub cache: PathBuf,
}

/// Environment variable that names the folder of the built plugins.
pub const PLUGINS_VARIABLE: &str = "PROJECTOR_TEST_PLUGINS";

impl Programs {
    /// This program with the plugins that `cargo xtask plugins` has built; `temporary` is cargo's folder for
    /// tests, which lies in the target folder.
    ///
    /// # Panics
    /// When the plugins have not been built.
    pub fn built(host: &str, temporary: &str) -> Self {
        let temporary = Path::new(temporary);
        let target = temporary.parent().expect("it lies in the target folder");
        let plugins = std::env::var_os(PLUGINS_VARIABLE)
            .map_or_else(|| target.join("plugins"), PathBuf::from);
        assert!(
            plugins.join("order.wasm").is_file(),
            "there are no plugins in {}: run `cargo xtask plugins` first, or `cargo xtask test`",
            plugins.display()
        );
        Self {
            host: host.into(),
            plugins,
            cache: temporary.join("compiled-plugins"),
        }
    }

    /// The same with the guest that counts beside the shipped plugins, in a folder of all that count.
    ///
    /// # Panics
    /// When the folder cannot be filled.
    #[must_use]
    pub fn counting(mut self) -> Self {
        let folder = self.cache.with_file_name("counting-plugins");
        fs::create_dir_all(&folder).expect("there is room");
        for name in PROJECTIONS {
            let file = format!("{name}.wasm");
            let content = fs::read(self.plugins.join(&file)).expect("it was built");
            place(&folder.join(&file), &content);
        }
        let guest = guests::from_text(&guests::text(COUNTS));
        place(&folder.join(format!("{COUNTS}.wasm")), &guest);
        self.plugins = folder;
        self
    }
}

/// Writes a file in one step, and not at all if it is the same: hosts of other tests watch the folder.
fn place(file: &Path, content: &[u8]) {
    if fs::read(file).is_ok_and(|old| old == content) {
        return;
    }
    let folder = file.parent().expect("it lies in a folder");
    let fresh = tempfile::NamedTempFile::new_in(folder).expect("there is room");
    fs::write(fresh.path(), content).expect("there is room");
    fresh.persist(file).expect("one folder");
}

/// Where events and rows live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Databases {
    /// Both in one.
    One,
    /// Each in its own.
    Two,
}

/// Databases, configuration, and all that has run here.
#[derive(Debug)]
pub struct Site {
    // Before the databases, so that nothing runs any more when they go.
    traces: Mutex<Vec<Trace>>,
    programs: Programs,
    store: String,
    model: String,
    psql: PathBuf,
    /// Dropped with the site.
    _kept: Vec<TestDatabase>,
    servers: Vec<Server>,
    folder: TempDir,
}

impl Site {
    /// A migrated site on the server that all tests share.
    pub fn shared(programs: Programs, databases: Databases, leader: &str) -> Self {
        let site = Self::unmigrated(programs, databases, leader);
        site.migrate();
        site
    }

    /// The same, with empty databases.
    pub fn unmigrated(programs: Programs, databases: Databases, leader: &str) -> Self {
        let database = || test_database().expect("a PostgreSQL server can be had");
        let kept = match databases {
            Databases::One => vec![database()],
            Databases::Two => vec![database(), database()],
        };
        let urls = (
            kept[0].url().to_owned(),
            kept[kept.len() - 1].url().to_owned(),
        );
        Self::new(programs, urls, leader, kept, Vec::new())
    }

    /// A migrated site on a server of its own, that a test may stop and start.
    pub fn own_server(programs: Programs, databases: Databases, leader: &str) -> Self {
        Self::own_server_with(programs, databases, leader, ServerOptions::default())
    }

    /// The same with options for the server.
    pub fn own_server_with(
        programs: Programs,
        databases: Databases,
        leader: &str,
        options: ServerOptions,
    ) -> Self {
        let server = Server::start(options).expect("a PostgreSQL server can be started");
        let model = match databases {
            Databases::One => "events",
            Databases::Two => "models",
        };
        for name in std::collections::BTreeSet::from(["events", model]) {
            server
                .create_database(name)
                .expect("a fresh server takes databases");
        }
        let urls = (server.url("events"), server.url(model));
        let site = Self::new(programs, urls, leader, Vec::new(), vec![server]);
        site.migrate();
        site
    }

    /// A migrated site on two servers of its own: one has the events, the other the rows.
    pub fn two_servers(programs: Programs, leader: &str, options: &ServerOptions) -> Self {
        let servers = ["events", "models"].map(|database| {
            let server =
                Server::start(options.clone()).expect("a PostgreSQL server can be started");
            server
                .create_database(database)
                .expect("a fresh server takes databases");
            server
        });
        let urls = (servers[0].url("events"), servers[1].url("models"));
        let site = Self::new(programs, urls, leader, Vec::new(), servers.into());
        site.migrate();
        site
    }

    /// A migrated site whose events are in a database that the test has made, and its rows in one that all share.
    pub fn with_store(programs: Programs, store: &str, leader: &str) -> Self {
        let model = test_database().expect("a PostgreSQL server can be had");
        let urls = (store.to_owned(), model.url().to_owned());
        let site = Self::new(programs, urls, leader, vec![model], Vec::new());
        site.migrate();
        site
    }

    /// A migrated site in databases that the test has made: events, rows.
    pub fn at(programs: Programs, store: &str, model: &str, leader: &str) -> Self {
        let urls = (store.to_owned(), model.to_owned());
        let site = Self::new(programs, urls, leader, Vec::new(), Vec::new());
        site.migrate();
        site
    }

    /// Puts a file into the site's folder and gives its path.
    pub fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("there is room");
        path.to_string_lossy().into_owned()
    }

    fn new(
        programs: Programs,
        (store, model): (String, String),
        leader: &str,
        kept: Vec<TestDatabase>,
        servers: Vec<Server>,
    ) -> Self {
        let own = servers.first().map(|server| server.installation().clone());
        let psql = own
            .map_or_else(Installation::find, Ok)
            .and_then(|installation| installation.program("psql"))
            .ok()
            .or_else(|| in_path("psql"))
            .expect("psql is installed");
        let folder = tempfile::Builder::new()
            .prefix("projector-site-")
            .tempdir()
            .expect("there is room");
        let config = format!(
            "[host]\ncache_dir = '{}'\ndrain_timeout = \"5s\"\n\n\
             [event_store]\nurl_env = \"ES_DATABASE_URL\"\npoll_interval = \"100ms\"\n\n\
             [read_model]\nurl_env = \"DATABASE_URL\"\n\n\
             [leader]\n{leader}\n\
             [plugins]\ndir = '{}'\n\n\
             [http]\nlisten = \"127.0.0.1:0\"\n",
            programs.cache.display(),
            programs.plugins.display(),
        );
        fs::write(folder.path().join("projections.toml"), config).expect("there is room");
        Self {
            traces: Mutex::default(),
            programs,
            store,
            model,
            psql,
            _kept: kept,
            servers,
            folder,
        }
    }

    /// The configuration file.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("projections.toml")
    }

    /// Rewrites the configuration file, as a deployment does: whole, by a rename.
    pub fn configure(&self, change: impl FnOnce(String) -> String) {
        let (path, fresh) = (self.config(), self.folder.path().join("fresh.toml"));
        let text = fs::read_to_string(&path).expect("it was written");
        fs::write(&fresh, change(text)).expect("there is room");
        fs::rename(fresh, path).expect("one folder");
    }

    /// The server of its own.
    ///
    /// # Panics
    /// When this site shares one.
    pub fn server(&self) -> &Server {
        self.servers
            .first()
            .expect("this site was made with a server of its own")
    }

    /// Every server of its own: that of the events first.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The two databases' URLs: events, rows.
    pub fn urls(&self) -> (&str, &str) {
        (&self.store, &self.model)
    }

    /// Runs SQL where the events are.
    pub fn store(&self, sql: &str) -> String {
        psql(&self.psql, &self.store, sql).unwrap_or_else(|error| self.fail(&error.to_string()))
    }

    /// Runs SQL where the rows are.
    pub fn model(&self, sql: &str) -> String {
        psql(&self.psql, &self.model, sql).unwrap_or_else(|error| self.fail(&error.to_string()))
    }

    /// An open session where the events are, for transactions that take their time.
    pub fn session(&self) -> Session {
        Session::open(&self.psql, &self.store)
    }

    /// The same where the rows are.
    pub fn model_session(&self) -> Session {
        Session::open(&self.psql, &self.model)
    }

    /// Ends every session whose purpose is one of these, and says how many there were.
    pub fn end_sessions(&self, purposes: &[&str]) -> usize {
        let sql = |purpose: &str| {
            format!(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity \
                 where datname = current_database() and application_name like 'projector/%/{purpose}'"
            )
        };
        let urls: std::collections::BTreeSet<&str> =
            [self.store.as_str(), self.model.as_str()].into();
        let ended = purposes
            .iter()
            .flat_map(|purpose| urls.iter().map(move |url| (purpose, url)));
        ended
            .map(|(purpose, url)| {
                let count = psql(&self.psql, url, &sql(purpose))
                    .unwrap_or_else(|error| self.fail(&error.to_string()));
                count.parse::<usize>().unwrap_or_default()
            })
            .sum()
    }

    /// Sessions of replicas, and advisory locks of anybody, in both databases.
    pub fn remains(&self) -> (usize, usize) {
        let count = |sql: &str| -> usize {
            let of = |url| {
                psql(&self.psql, url, sql)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(usize::MAX / 4)
            };
            if self.store == self.model {
                of(&self.store)
            } else {
                of(&self.store) + of(&self.model)
            }
        };
        let sessions = count(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'projector/%'",
        );
        let locks = count(
            "select count(*) from pg_locks where locktype = 'advisory' \
             and database = (select oid from pg_database where datname = current_database())",
        );
        (sessions, locks)
    }

    /// Looks again and again until it finds something.
    ///
    /// # Panics
    /// When patience is over.
    pub fn eventually<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let begun = Instant::now();
        loop {
            if let Some(found) = look() {
                return found;
            }
            if begun.elapsed() >= PATIENCE {
                self.fail(&format!("waited in vain until {what}"));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Ends the test and shows how everything stood.
    pub fn fail(&self, why: &str) -> ! {
        let report = self.report();
        panic!("{why}\n{report}")
    }

    fn traces(&self) -> MutexGuard<'_, Vec<Trace>> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
