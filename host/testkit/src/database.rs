//! A fresh database for one test.
//!
//! Under `cargo xtask test` all test programs share one server, named in [`SERVER_VARIABLE`]; without it each test
//! program starts one for itself, so that plain `cargo test` works too.

use std::{
    env, process,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use crate::{
    error::{Error, Result},
    installation::in_path,
    server::{Server, ServerOptions, psql, quoted},
    url::with_database,
};

/// Environment variable with a superuser's URL of a running server that tests may create databases in.
pub const SERVER_VARIABLE: &str = "PROJECTOR_TEST_SERVER";

/// Lives as long as the test program: the first test that asks starts it.
static SHARED: Mutex<Option<Server>> = Mutex::new(None);

/// A database of its own, dropped (with whoever is still connected) when the value goes.
#[derive(Debug)]
pub struct TestDatabase {
    server: Access,
    name: String,
    url: String,
}

/// How to reach a server: its maintenance database, and the `psql` to do it with.
#[derive(Clone, Debug)]
struct Access {
    psql: std::path::PathBuf,
    url: String,
}

/// An empty database in the shared server.
pub fn test_database() -> Result<TestDatabase> {
    let server = Access::shared()?;
    server.create(None)
}

impl TestDatabase {
    /// Its connection URL, as superuser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs SQL in it; gives the rows as text, columns split by `|`. The first error ends the script.
    pub fn psql(&self, sql: &str) -> Result<String> {
        psql(&self.server.psql, &self.url, sql)
    }

    /// Another database with the same content, much faster than to build it again. Nobody may be connected to this
    /// one meanwhile.
    pub fn copy(&self) -> Result<TestDatabase> {
        self.server.create(Some(&self.name))
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let sql = format!(
            "drop database if exists {} with (force)",
            quoted(&self.name)
        );
        if let Err(error) = psql(&self.server.psql, &self.server.url, &sql) {
            eprintln!(
                "warning: the test database {} stays behind: {error}",
                self.name
            );
        }
    }
}

impl Access {
    fn shared() -> Result<Self> {
        if let Some(url) = env::var(SERVER_VARIABLE).ok().filter(|url| !url.is_empty()) {
            let psql = match crate::Installation::find() {
                Ok(installation) => installation.program("psql")?,
                Err(error) => in_path("psql").ok_or(error)?,
            };
            return Ok(Self { psql, url });
        }
        let mut shared: MutexGuard<'_, Option<Server>> =
            SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let server = match &mut *shared {
            Some(server) => server,
            none => none.insert(Server::start(ServerOptions::default())?),
        };
        Ok(Self {
            psql: server.installation().program("psql")?,
            url: server.url("postgres"),
        })
    }

    fn create(&self, template: Option<&str>) -> Result<TestDatabase> {
        let name = unique_name();
        let url = with_database(&self.url, &name).ok_or_else(|| Error::BadUrl(self.url.clone()))?;
        let template = template
            .map(|template| format!(" template {}", quoted(template)))
            .unwrap_or_default();
        psql(
            &self.psql,
            &self.url,
            &format!("create database {}{template}", quoted(&name)),
        )?;
        Ok(TestDatabase {
            server: self.clone(),
            name,
            url,
        })
    }
}

/// Unique over the tests of a program (counter), programs (process id) and runs on one server (time).
fn unique_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    format!("test_{}_{:x}_{number}", process::id(), since.as_micros())
}
