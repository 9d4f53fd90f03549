//! The host as a user runs it: a real process, a config file, a folder of plugins.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::{place, process};

use super::{
    arena::{Arena, STORE},
    watch::Watch,
};

/// The host drains for 20 s at most.
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// How often a running host is looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How long a running host may take to catch up.
const WAIT_LIMIT: &str = "300s";

/// The shipped plugins.
const SHIPPED: [&str; 3] = ["order", "scheduling", "service-request"];

/// The only option of the plugin `order` that differs from the default.
const ORDER: &str = "config = { change_logs = false }\n";

/// What runs on a host.
#[derive(Debug, Clone, Copy)]
pub enum Plugins<'a> {
    /// The plugin `order`.
    Order,
    /// The three shipped plugins.
    Shipped,
    /// Others: (name, module).
    Others(&'a [(String, Vec<u8>)]),
}

/// A host with a read model of its own.
pub struct Host {
    program: PathBuf,
    folder: TempDir,
    environment: [(&'static str, String); 2],
    projections: Vec<String>,
    starts_late: bool,
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
    /// The memory that it holds.
    pub memory: u64,
    /// The most memory that it held.
    pub memory_peak: u64,
}

impl Host {
    /// A host on the arena's store, with a read model in another database.
    pub fn apart(arena: &mut Arena, program: &Path, plugins: Plugins) -> Result<Self> {
        let database = arena.read_model()?;
        Self::new(arena, program, plugins, STORE, database)
    }

    /// The same, but its projections begin behind what the store holds, until they are [rewound](Self::rewind).
    pub fn behind(arena: &mut Arena, program: &Path, plugins: Plugins) -> Result<Self> {
        let mut host = Self::apart(arena, program, plugins)?;
        host.starts_late = true;
        host.configure("", 0)?;
        Ok(host)
    }

    /// A host with a store and a read model of its own in one database.
    pub fn together(arena: &mut Arena, program: &Path, plugins: Plugins) -> Result<Self> {
        let database = arena.read_model()?;
        Self::new(arena, program, plugins, &database.clone(), database)
    }

    fn new(
        arena: &Arena,
        program: &Path,
        plugins: Plugins,
        store: &str,
        database: String,
    ) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("projector-bench-")
            .tempdir()
            .context("cannot create a folder")?;
        let shipped = |name: &&str| -> Result<(String, Vec<u8>)> {
            let file = place::plugins().join(format!("{name}.wasm"));
            let bytes = fs::read(file).with_context(|| format!("cannot read the plugin {name}"))?;
            Ok(((*name).to_owned(), bytes))
        };
        let plugins: Vec<(String, Vec<u8>)> = match plugins {
            Plugins::Order => SHIPPED.iter().take(1).map(shipped).collect::<Result<_>>()?,
            Plugins::Shipped => SHIPPED.iter().map(shipped).collect::<Result<_>>()?,
            Plugins::Others(others) => others.to_vec(),
        };
        let into = folder.path().join("plugins");
        fs::create_dir(&into).context("cannot create a folder")?;
        for (name, bytes) in &plugins {
            fs::write(into.join(format!("{name}.wasm")), bytes)
                .with_context(|| format!("cannot write the plugin {name}"))?;
        }
        let host = Self {
            program: program.to_path_buf(),
            folder,
            environment: [
                ("ES_DATABASE_URL", arena.url(store)),
                ("DATABASE_URL", arena.url(&database)),
            ],
            projections: plugins.into_iter().map(|(name, _)| name).collect(),
            starts_late: false,
            database,
        };
        host.configure("", 0)?;
        Ok(host)
    }

    /// Writes the config: more sections, and the port of HTTP (0 for any).
    pub fn configure(&self, more: &str, port: u16) -> Result<()> {
        // One cache for all runs, so that plugins are compiled once.
        let cache = place::target().join("tmp").join("bench-compiled");
        fs::create_dir_all(&cache).context("cannot create a folder")?;
        let mut sections = String::new();
        for name in &self.projections {
            let options = if name == "order" { ORDER } else { "" };
            let start = match self.starts_late {
                true => "start_from = \"now\"\n",
                false => "",
            };
            let _ = write!(
                sections,
                "[[projection]]\nname = \"{name}\"\n{options}{start}"
            );
        }
        let text = format!(
            "[host]\nnode = \"bench\"\nlog = \"warn\"\ncache_dir = '{}'\n{more}\n[plugins]\ndir = \"plugins\"\n\
             [http]\nlisten = \"127.0.0.1:{port}\"\n{sections}",
            cache.display()
        );
        fs::write(self.folder.path().join("projections.toml"), text)
            .context("cannot write a config")
    }

    /// Makes the tables of store and read model.
    pub fn migrate(&self) -> Result<()> {
        process::capture(self.command(&["migrate", "up"]).stderr(Stdio::null())).map(drop)
    }

    /// Empties the tables, and sends the projections back to a position.
    pub fn rewind(&self, arena: &Arena, position: i64) -> Result<()> {
        let rewind = include_str!("sql/rewind.sql").replace("{position}", &position.to_string());
        arena.psql(&self.database, &rewind).map(drop)
    }

    /// Projects until nothing is left to do.
    pub fn run(&self) -> Result<Run> {
        let begun = Instant::now();
        let before = ended_cpu_seconds();
        let mut command = self.command(&["run", "--until-caught-up", "--timeout", "3600s"]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {}", process::name(&command)))?;
        let pid = child.id();
        // Looked at beside the wait, which so ends to the moment. What is gone cannot be looked at: the last look before
        // the end counts.
        let watch = Watch::start(LOOK_INTERVAL, Run::default(), move |run: &mut Run| {
            run.look(pid);
        });
        let status = child.wait().context("cannot wait for the host")?;
        let seconds = begun.elapsed().as_secs_f64();
        let looked = watch.stop()?;
        if !status.success() {
            bail!("the host failed ({status})");
        }
        Ok(Run {
            seconds,
            cpu_seconds: ended_cpu_seconds() - before,
            ..looked
        })
    }

    /// Waits until another process of this host has projected everything.
    pub fn wait(&self) -> Result<()> {
        let mut command = self.command(&["wait", "--until-caught-up", "--timeout", WAIT_LIMIT]);
        process::run(command.args(&self.projections).stdout(Stdio::null()))
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

    /// Processor time and memory so far.
    pub fn usage(&self) -> Run {
        let mut run = Run::default();
        run.look(self.0.id());
        run
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
        let status = read("status").unwrap_or_default();
        self.memory = memory(&status, "VmRSS:").unwrap_or(self.memory);
        self.memory_peak = memory(&status, "VmHWM:").unwrap_or(self.memory_peak);
        let stat = read("stat").unwrap_or_default();
        self.cpu_seconds = cpu_seconds(&stat, Of::Itself).unwrap_or(self.cpu_seconds);
    }
}

/// Processor time of our own children that have ended.
fn ended_cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    cpu_seconds(&stat, Of::Children).unwrap_or(0.0)
}

/// What a process holds of memory, from `/proc/PID/status`.
fn memory(status: &str, what: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with(what))?;
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
            memory("VmPeak:\t 9 kB\nVmHWM:\t    100 kB\n", "VmHWM:"),
            Some(102_400)
        );
        assert_eq!(memory("no such line", "VmHWM:"), None);
        let stat = "7 (a b) c) S 1 7 7 0 -1 4194304 100 0 0 0 150 50 30 20 20 0 4 0";
        assert_eq!(cpu_seconds(stat, Of::Itself), Some(2.0));
        assert_eq!(cpu_seconds(stat, Of::Children), Some(0.5));
        assert_eq!(cpu_seconds("", Of::Itself), None);
    }
}
