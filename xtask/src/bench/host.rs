//! The host as a user runs it: a real process, a config file, a folder of plugins.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{place, process};

use super::arena::{Arena, STORE};

/// The host drains for 20 s at most.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// How often a running host is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// A host with a read model of its own.
pub struct Host {
    program: PathBuf,
    folder: TempDir,
    environment: [(&'static str, String); 2],
    /// The database of its read model.
    pub database: String,
}

/// What one run cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Run {
    /// From start to end of the process.
    pub seconds: f64,
    /// Processor time of the process, user and system.
    pub cpu_seconds: f64,
    /// The most memory that it held.
    pub memory_peak: u64,
}

impl Host {
    /// A host on the arena's store. Its plugins are the shipped ones: `order` alone, or all three.
    pub fn new(arena: &mut Arena, program: PathBuf, alone: bool) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("projector-bench-")
            .tempdir()
            .context("cannot create a folder")?;
        let database = arena.read_model()?;
        let plugins = folder.path().join("plugins");
        fs::create_dir(&plugins).context("cannot create a folder")?;
        let names: &[&str] = match alone {
            true => &["order"],
            false => &["order", "scheduling", "service-request"],
        };
        for name in names {
            let file = format!("{name}.wasm");
            fs::copy(place::plugins().join(&file), plugins.join(&file))
                .with_context(|| format!("cannot copy the plugin {name}"))?;
        }
        Self::make(arena, program, folder, STORE, database)
    }

    /// A host whose read model is in the same database as its events, with all plugins.
    pub fn together(arena: &mut Arena, program: PathBuf) -> Result<Self> {
        let host = Self::new(arena, program, false)?;
        let database = host.database.clone();
        Self::make(
            arena,
            host.program,
            host.folder,
            &database.clone(),
            database,
        )
    }

    fn make(
        arena: &Arena,
        program: PathBuf,
        folder: TempDir,
        store: &str,
        database: String,
    ) -> Result<Self> {
        let environment = [
            ("ES_DATABASE_URL", arena.server.url(store)),
            ("DATABASE_URL", arena.server.url(&database)),
        ];
        let host = Self {
            program,
            folder,
            environment,
            database,
        };
        host.configure("change_logs = false", "", 0)?;
        Ok(host)
    }

    /// Writes the config: of the `order` plugin, other sections, and the port of HTTP (0 for any).
    pub fn configure(&self, order: &str, more: &str, port: u16) -> Result<()> {
        // One cache for all runs, so that plugins are compiled once.
        let cache = place::target().join("tmp").join("bench-compiled");
        fs::create_dir_all(&cache).context("cannot create a folder")?;
        let text = format!(
            "[host]\nnode = \"bench\"\nlog = \"warn\"\ncache_dir = '{}'\n{more}\n[plugins]\ndir = \"plugins\"\n\
             [http]\nlisten = \"127.0.0.1:{port}\"\n\
             [[projection]]\nname = \"order\"\nconfig = {{ {order} }}\n",
            cache.display()
        );
        fs::write(self.folder.path().join("projections.toml"), text)
            .context("cannot write a config")
    }

    /// Makes the tables of store and read model.
    pub fn migrate(&self) -> Result<()> {
        process::capture(self.command(&["migrate", "up"]).stderr(Stdio::null())).map(drop)
    }

    /// Projects until nothing is left to do.
    pub fn run(&self) -> Result<Run> {
        let begun = Instant::now();
        let mut command = self.command(&["run", "--until-caught-up", "--timeout", "3600s"]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {}", process::name(&command)))?;
        let mut run = Run::default();
        loop {
            // What is gone cannot be looked at: the last look before the end counts.
            run.look(child.id());
            if let Some(status) = child.try_wait().context("cannot wait for the host")? {
                run.seconds = begun.elapsed().as_secs_f64();
                if status.success() {
                    return Ok(run);
                }
                bail!("the host failed ({status})");
            }
            thread::sleep(LOOK_INTERVAL);
        }
    }

    /// A command of the host in this place.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--config")
            .arg(self.folder.path().join("projections.toml"))
            .args(arguments)
            .current_dir(self.folder.path())
            .envs(self.environment.clone());
        command
    }
}

/// A host that runs until it is stopped, or until this is dropped.
pub struct Running(Child);

impl Running {
    /// Starts it.
    pub fn start(host: &Host) -> Result<Self> {
        let mut command = host.command(&["run"]);
        let child = command.stdin(Stdio::null()).spawn();
        let child = child.with_context(|| format!("cannot run {}", process::name(&command)))?;
        Ok(Self(child))
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Asks it to stop and waits for it.
    pub fn stop(&mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.0), Signal::TERM).context("cannot stop the host")?;
        match process::wait_until(&mut self.0, STOP_LIMIT)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("the host did not stop well ({status})"),
            None => bail!("the host did not stop"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

impl Run {
    fn look(&mut self, pid: u32) {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
        if let Some(peak) = read("status").as_deref().and_then(memory_peak) {
            self.memory_peak = self.memory_peak.max(peak);
        }
        if let Some(seconds) = read("stat")
            .as_deref()
            .and_then(|stat| cpu_seconds(stat, Of::Itself))
        {
            self.cpu_seconds = self.cpu_seconds.max(seconds);
        }
    }
}

/// The most memory that a process held, from `/proc/PID/status`.
fn memory_peak(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// Whose processor time.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    /// The process's own.
    Itself,
    /// That of its children that have ended.
    Children,
}

/// User and system time, from `/proc/PID/stat`, in the kernel's hundredths of a second.
pub fn cpu_seconds(stat: &str, of: Of) -> Option<f64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field)?.parse::<u32>().ok();
    let first = match of {
        Of::Itself => 11,
        Of::Children => 13,
    };
    Some(f64::from(ticks(first)? + ticks(first + 1)?) / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_tables_are_read() {
        assert_eq!(
            memory_peak("VmPeak:\t 9 kB\nVmHWM:\t    100 kB\n"),
            Some(102_400)
        );
        assert_eq!(memory_peak("no such line"), None);
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 30 20 20 0 4 0";
        assert_eq!(cpu_seconds(stat, Of::Itself), Some(2.0));
        assert_eq!(cpu_seconds(stat, Of::Children), Some(0.5));
        assert_eq!(cpu_seconds("", Of::Itself), None);
    }
}
