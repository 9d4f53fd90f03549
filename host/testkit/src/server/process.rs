//! The server's main process: start it, wait until it takes connections, stop it.
//!
//! Readiness and pid are read from `postmaster.pid`, which is what `pg_ctl --wait` reads: exact, and with no client.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt,
    process::{Child, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::{folder::Folder, options::ServerOptions};
use crate::{
    error::{Error, Result},
    installation::Installation,
    tool,
};

const START_TIMEOUT: Duration = Duration::from_secs(90);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The line of `postmaster.pid` that tells the state.
const STATUS_LINE: usize = 7;

/// How a server is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Waits for clients to leave by themselves.
    Smart,
    /// Cuts clients off, rolls back, writes a checkpoint.
    Fast,
    /// As in a crash: cuts clients off at once; the next start recovers from the log.
    Immediate,
}

/// A running server process. Dropping it stops it at once.
#[derive(Debug)]
pub(super) struct Postmaster {
    child: Child,
}

impl Postmaster {
    /// Starts the process and returns once it takes connections.
    pub(super) fn start(
        folder: &Folder,
        installation: &Installation,
        options: &ServerOptions,
        port: u16,
    ) -> Result<Self> {
        let doing = || format!("write {}", folder.log().display());
        let log = File::options()
            .create(true)
            .append(true)
            .open(folder.log())
            .map_err(Error::io(doing()))?;
        let errors = log.try_clone().map_err(Error::io(doing()))?;
        let mut command = folder.command(&installation.program("postgres")?);
        command
            .arg("-D")
            .arg(folder.data())
            .arg("-p")
            .arg(port.to_string())
            .arg("-k")
            .arg(folder.path());
        for setting in options.arguments() {
            command.arg("-c").arg(setting);
        }
        tool::clean_environment(&mut command)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .process_group(0);
        let child = command.spawn().map_err(Error::io("start postgres"))?;
        let mut postmaster = Self { child };
        postmaster.wait_until_ready(folder)?;
        Ok(postmaster)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to stop and waits for its end; on a time-out it runs on.
    pub(super) fn stop(&mut self, mode: Mode, folder: &Folder) -> Result<()> {
        self.signal(match mode {
            Mode::Smart => Signal::TERM,
            Mode::Fast => Signal::INT,
            Mode::Immediate => Signal::QUIT,
        });
        match self.wait_for_end(STOP_TIMEOUT) {
            Some(_) => Ok(()),
            None => Err(Error::TooSlow {
                what: "stop",
                limit: STOP_TIMEOUT,
                log: folder.log_tail(),
            }),
        }
    }

    fn wait_until_ready(&mut self, folder: &Folder) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < START_TIMEOUT {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(Error::EndedEarly {
                    status: status.to_string(),
                    log: folder.log_tail(),
                });
            }
            let state =
                fs::read_to_string(folder.data().join("postmaster.pid")).unwrap_or_default();
            if is_ready(&state, self.pid()) {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Err(Error::TooSlow {
            what: "start",
            limit: START_TIMEOUT,
            log: folder.log_tail(),
        })
    }

    fn signal(&self, signal: Signal) {
        // It may have ended by itself; then waiting for its end succeeds at once.
        let _ = kill_process(Pid::from_child(&self.child), signal);
    }

    fn wait_for_end(&mut self, limit: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            if begin.elapsed() >= limit {
                return None;
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Postmaster {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::QUIT);
            if self.wait_for_end(Duration::from_secs(10)).is_none() {
                self.signal(Signal::KILL);
                self.wait_for_end(Duration::from_secs(10));
            }
        }
    }
}

/// Whether the file speaks of this process and says that it takes connections.
fn is_ready(state: &str, pid: u32) -> bool {
    let lines: Vec<&str> = state.lines().collect();
    lines.first().and_then(|line| line.trim().parse().ok()) == Some(pid)
        && lines
            .get(STATUS_LINE)
            .is_some_and(|line| line.trim() == "ready")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readiness_needs_our_own_pid_and_the_right_word() {
        let state =
            |pid, word: &str| format!("{pid}\n/data\n1\n5432\n/socket\n127.0.0.1\n1 2\n{word}\n");
        assert!(is_ready(&state(42, "ready   "), 42));
        assert!(!is_ready(&state(42, "starting"), 42));
        assert!(
            !is_ready(&state(42, "standby "), 42),
            "not yet open for reading"
        );
        assert!(
            !is_ready(&state(41, "ready   "), 42),
            "left by an earlier process"
        );
        assert!(!is_ready("42\n/data\n", 42));
        assert!(!is_ready("", 42));
    }
}
