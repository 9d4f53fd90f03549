//! Databases, the program, and waiting for what must come.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use projector_host::database::session::{Database, Purpose};
use projector_testkit::{TestDatabase, test_database};
use sqlx::postgres::PgConnection;

/// Longest wait for anything that must happen.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn fresh() -> TestDatabase {
    test_database().expect("a server is installed")
}

pub fn database(test: &TestDatabase, node: &str) -> Database {
    Database::new("lock", test.url().to_owned().into(), "test", node)
}

pub async fn connect(test: &TestDatabase) -> PgConnection {
    let database = database(test, "plain");
    database
        .connect(&Purpose::Admin)
        .await
        .expect("the server runs")
}

/// Advisory locks that are held in this database.
pub fn held(test: &TestDatabase) -> String {
    test.psql(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .expect("it answers")
}

/// Waits for advisory locks in this database.
pub fn waiting_for_locks(test: &TestDatabase) -> String {
    test.psql(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND waitstart IS NOT NULL
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .expect("it answers")
}

/// `projector-host locks …` in a database, without a configuration.
pub fn locks(test: &TestDatabase, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_projector-host"));
    let (verb, rest) = arguments.split_first().expect("a verb");
    command
        .args(["locks", verb])
        .args(["--url-env", "LOCK_URL"])
        .args(rest)
        .env("LOCK_URL", test.url())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

pub fn finished(mut command: Command) -> Output {
    command.output().expect("the program starts")
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}

/// A program that is ended with the test.
pub struct Background(pub Child);

impl Background {
    pub fn start(mut command: Command) -> Self {
        Self(command.spawn().expect("the program starts"))
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.0.id()).expect("pids are small")
    }

    /// Its exit code; -1 for a signal.
    pub fn code(&mut self) -> i32 {
        let code = eventually_some("the program ends", || {
            self.0.try_wait().expect("it is ours")
        });
        code.code().unwrap_or(-1)
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(self.pid()).expect("it has a pid");
        rustix::process::kill_process(pid, signal).expect("it runs");
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _gone = self.0.wait();
    }
}

/// A file in which a command leaves its mark.
pub struct Mark(pub tempfile::TempDir);

impl Mark {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("there is room"))
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn read(&self, name: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.path(name)).ok()?;
        (text.ends_with('\n')).then(|| text.trim().to_owned())
    }
}

/// Blocks its thread: what it waits for must not run on the same one.
pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    eventually_some(what, || check().then_some(()));
}

pub fn eventually_some<T>(what: &str, mut check: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = check() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether a process is there, and not only waiting to be buried.
pub fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim()
            .starts_with('Z')
    })
}
