//! One private server: made, started, stopped, started again, copied into a standby, removed.
//!
//! The server process is our direct child in a process group of its own, so that Ctrl-C in a terminal reaches the
//! program under test first and the server only through us. It must never outlive us: see [`janitor`].

mod folder;
mod janitor;
mod options;
mod process;
mod standby;

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use options::ServerOptions;
pub use process::Mode;

use crate::{
    account::Account,
    error::{Error, Result},
    installation::Installation,
    tool,
};
use folder::Folder;
use process::Postmaster;

/// The superuser of every private server; there is no password.
const SUPERUSER: &str = "postgres";

/// Another program may take the free port before the server does; then another one is tried.
const START_ATTEMPTS_MAX: usize = 5;

/// A private PostgreSQL server. Methods take `&self`, so tests may share it between threads.
#[derive(Debug)]
pub struct Server {
    // Fields are dropped in this order: the process must be gone before its folder.
    process: Mutex<Option<Postmaster>>,
    folder: Folder,
    installation: Installation,
    options: ServerOptions,
    port: u16,
}

impl Server {
    /// Makes an empty server and starts it; about a second, most of it `initdb`.
    pub fn start(options: ServerOptions) -> Result<Self> {
        let installation = installation(&options)?;
        let folder = Folder::create(Account::pick()?, options.parent.as_deref())?;
        let mut command = folder.command(&installation.program("initdb")?);
        command.args([
            "--no-sync",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--username",
            SUPERUSER,
            "-D",
        ]);
        tool::run("initdb", command.arg(folder.data()))?;
        if let Some(network) = &options.trusted {
            folder.trust(network)?;
        }
        Self::start_in(folder, installation, options)
    }

    /// Starts a server on a data folder that is there already.
    fn start_in(
        folder: Folder,
        installation: Installation,
        options: ServerOptions,
    ) -> Result<Self> {
        let mut attempt = 1;
        loop {
            let port = free_port()?;
            match Postmaster::start(&folder, &installation, &options, port) {
                Ok(process) => {
                    let process = Mutex::new(Some(process));
                    return Ok(Self {
                        process,
                        folder,
                        installation,
                        options,
                        port,
                    });
                }
                Err(Error::EndedEarly { log, .. })
                    if attempt < START_ATTEMPTS_MAX && log.contains("Address already in use") =>
                {
                    attempt += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The programs it runs on.
    pub fn installation(&self) -> &Installation {
        &self.installation
    }

    /// The port on 127.0.0.1; stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A superuser's connection URL.
    pub fn url(&self, database: &str) -> String {
        let server = format!("postgresql://{SUPERUSER}@127.0.0.1:{}/", self.port);
        crate::url::with_database(&server, database).unwrap_or(server)
    }

    /// The folder that holds its Unix socket.
    pub fn socket_dir(&self) -> PathBuf {
        self.folder.path().to_path_buf()
    }

    /// The process id of the server's main process while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.process().as_ref().map(Postmaster::pid)
    }

    /// Creates an empty database.
    pub fn create_database(&self, name: &str) -> Result<()> {
        self.psql("postgres", &format!("create database {}", quoted(name)))
            .map(drop)
    }

    /// Creates a copy of a database that nobody is connected to.
    pub fn create_database_from_template(&self, name: &str, template: &str) -> Result<()> {
        let sql = format!(
            "create database {} template {}",
            quoted(name),
            quoted(template)
        );
        self.psql("postgres", &sql).map(drop)
    }

    /// Runs SQL; gives the rows as text, columns split by `|`. The first error ends the script.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String> {
        psql(
            &self.installation.program("psql")?,
            &self.url(database),
            sql,
        )
    }

    /// Stops it and waits for its end. A stopped server can be started again.
    pub fn stop(&self, mode: Mode) -> Result<()> {
        let mut process = self.process();
        let running = process.as_mut().ok_or(Error::Stopped)?;
        running.stop(mode, &self.folder)?;
        *process = None;
        Ok(())
    }

    /// Starts it on the same data and the same port.
    pub fn start_again(&self) -> Result<()> {
        let mut process = self.process();
        if process.is_some() {
            return Err(Error::Running);
        }
        *process = Some(Postmaster::start(
            &self.folder,
            &self.installation,
            &self.options,
            self.port,
        )?);
        Ok(())
    }

    /// Puts a stopped server's data aside, for [`restore`](Self::restore).
    pub fn save(&self) -> Result<()> {
        if self.process().is_some() {
            return Err(Error::Running);
        }
        self.folder.save()
    }

    /// Gives a stopped server the data that were put aside, as a restore from a backup does.
    pub fn restore(&self) -> Result<()> {
        if self.process().is_some() {
            return Err(Error::Running);
        }
        self.folder.restore()
    }

    /// Whether its process has ended by itself; it can be started again then.
    pub fn has_ended(&self) -> bool {
        let mut process = self.process();
        let ended = process.as_mut().is_none_or(Postmaster::has_ended);
        if ended {
            *process = None;
        }
        ended
    }

    /// Stops it and starts it again.
    pub fn restart(&self, mode: Mode) -> Result<()> {
        self.stop(mode)?;
        self.start_again()
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        self.folder.log_tail()
    }

    fn process(&self) -> MutexGuard<'_, Option<Postmaster>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Text as a quoted SQL identifier.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Runs a script with `psql`: unaligned, rows only, stopping at the first error.
pub(crate) fn psql(program: &Path, url: &str, sql: &str) -> Result<String> {
    let mut command = Command::new(program);
    command.args([
        "--no-psqlrc",
        "--quiet",
        "--no-align",
        "--tuples-only",
        "--set=ON_ERROR_STOP=1",
        "--file=-",
        url,
    ]);
    // So that a test that waits for a statement fails, and does not hang.
    command.env("PGOPTIONS", "-c statement_timeout=120s");
    tool::run_with_input("psql", &mut command, sql)
}

fn installation(options: &ServerOptions) -> Result<Installation> {
    options
        .installation
        .clone()
        .map_or_else(Installation::find, Ok)
}

fn free_port() -> Result<u16> {
    let listener =
        TcpListener::bind(("127.0.0.1", 0)).map_err(Error::io("find a free port on 127.0.0.1"))?;
    Ok(listener
        .local_addr()
        .map_err(Error::io("find a free port on 127.0.0.1"))?
        .port())
}
