//! The demo's site: config, databases and environment, and how the host is run there.

use std::{
    fs,
    net::TcpListener,
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, Command},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use projector_testkit::Server;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{interrupt::Interrupt, place, process};

/// The database of the read models.
pub const READ_MODEL: &str = "read_model";

const EVENT_STORE: &str = "event_store";
const USUAL_PORT: u16 = 7400;
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The host drains for 20 s at most.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// Where the host runs. The folder goes with the value.
pub struct Site {
    folder: TempDir,
    program: PathBuf,
    port: u16,
    environment: [(&'static str, String); 2],
}

impl Site {
    /// Creates the databases and the config.
    pub fn create(server: &Server, program: PathBuf, port: Option<u16>) -> Result<Self> {
        server.create_database(EVENT_STORE)?;
        server.create_database(READ_MODEL)?;
        let folder = tempfile::Builder::new()
            .prefix("projector-demo-")
            .tempdir()
            .context("cannot create a folder")?;
        let port = free_port(port)?;
        let environment = [
            ("ES_DATABASE_URL", server.url(EVENT_STORE)),
            ("DATABASE_URL", server.url(READ_MODEL)),
        ];
        let site = Self {
            folder,
            program,
            port,
            environment,
        };
        fs::write(site.config(), config(port))
            .with_context(|| format!("cannot write {}", site.config().display()))?;
        Ok(site)
    }

    /// Runs one command of the host to its end; if we are interrupted meanwhile, it is asked to stop, and its stopping
    /// well is success.
    pub fn run(&self, arguments: &[&str], interrupt: &Interrupt) -> Result<()> {
        let mut command = Command::new(&self.program);
        command
            .arg("--config")
            .arg(self.config())
            .args(arguments)
            .current_dir(self.folder.path());
        command.envs(self.environment.clone());
        // A group of its own: Ctrl-C in the terminal reaches us, and the host gets one signal instead of two.
        let child = command.process_group(0).spawn();
        let mut child = child.with_context(|| format!("cannot run {}", process::name(&command)))?;
        loop {
            if let Some(status) = process::wait_until(&mut child, POLL_INTERVAL)? {
                if status.success() {
                    return Ok(());
                }
                bail!("`projector-host {}` failed ({status})", arguments.join(" "));
            }
            if interrupt.asked() {
                return stop(&mut child);
            }
        }
    }

    /// What people can do while the host runs.
    pub fn invitation(&self, server: &Server) -> String {
        let (events, models) = (server.url(EVENT_STORE), server.url(READ_MODEL));
        let (config, program) = (self.config(), self.program.display());
        let config = config.display();
        format!(
            "\n\
             probes        http://127.0.0.1:{0}/readyz\n\
             metrics       http://127.0.0.1:{0}/metrics\n\
             read models   psql {models}\n\
             events        psql {events}\n\
             commands      ES_DATABASE_URL={events} DATABASE_URL={models} {program} --config {config} status\n\
             \n\
             Ctrl-C stops everything and removes it.\n",
            self.port,
        )
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("projections.toml")
    }
}

/// Asks the host to stop and waits for it; ends it by force when it does not.
fn stop(child: &mut Child) -> Result<()> {
    eprintln!("    stopping the host");
    // If it has ended by itself meanwhile, waiting succeeds at once.
    let _ = kill_process(Pid::from_child(child), Signal::TERM);
    match process::wait_until(child, STOP_LIMIT)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => bail!("the host did not stop well ({status})"),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            bail!(
                "the host did not stop within {} s and was killed",
                STOP_LIMIT.as_secs()
            )
        }
    }
}

fn config(port: u16) -> String {
    format!(
        "# The demo's config; every option with its default stands in config/projections.toml.\n\
         [host]\n\
         node = \"demo\"\n\
         \n\
         [event_store]\n\
         url_env = \"ES_DATABASE_URL\"\n\
         \n\
         [read_model]\n\
         url_env = \"DATABASE_URL\"\n\
         \n\
         [plugins]\n\
         dir = '{}'\n\
         \n\
         [http]\n\
         listen = \"127.0.0.1:{port}\"\n",
        place::plugins().display()
    )
}

/// The one that was asked for, else the usual one, else any.
fn free_port(wanted: Option<u16>) -> Result<u16> {
    let try_port =
        |port| TcpListener::bind(("127.0.0.1", port)).and_then(|listener| listener.local_addr());
    let address = match wanted {
        Some(port) => try_port(port)
            .with_context(|| format!("port {port} is taken: choose another with --port"))?,
        None => try_port(USUAL_PORT)
            .or_else(|_| try_port(0))
            .context("there is no free port on 127.0.0.1")?,
    };
    Ok(address.port())
}
