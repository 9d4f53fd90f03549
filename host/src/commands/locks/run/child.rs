//! The command as a process: started through its supervisor, told, ended.

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::pin::Pin;
use std::process::ExitStatus;
use std::task::Poll;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{self, SignalKind, signal};

use super::FORWARDED;
use crate::error::{Exit, Failure};

/// Pause between two looks whether a group is gone.
const GROUP_POLL: Duration = Duration::from_millis(20);

/// The supervisor, and below it the command.
pub(super) struct Running {
    child: Child,
    pid: Option<Pid>,
    /// The command has a process group of its own, led by the supervisor.
    own_group: bool,
}

impl Running {
    /// Starts the command. Must run on the main thread: the kernel ties the death signal to the thread that
    /// forked.
    pub(super) fn start(command: &[OsString], grace: Duration) -> Result<Self, Failure> {
        let pid = std::process::id().to_string();
        let grace = grace.as_millis().to_string();
        let mut arguments = ["locks", "supervise", "--parent", &pid, "--grace", &grace]
            .map(OsString::from)
            .to_vec();
        if !has_own_group() {
            arguments.push("--shared-group".into());
        }
        arguments.push("--".into());
        arguments.extend_from_slice(command);
        Self::spawn(arguments)
    }

    /// Starts this program once more. Must run on the main thread, too.
    pub(super) fn spawn(arguments: Vec<OsString>) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Exit::Failed, format!("cannot start the command: {error}"))
        };
        let own_group = has_own_group();
        let program = std::env::current_exe().map_err(failed)?;
        let mut process = Command::new(program);
        process.args(arguments);
        if own_group {
            process.process_group(0);
        }
        let child = process.spawn().map_err(failed)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        Ok(Self {
            pid: pid.and_then(Pid::from_raw),
            child,
            own_group,
        })
    }

    pub(super) async fn wait(&mut self) -> Result<ExitStatus, Failure> {
        let status = self.child.wait().await;
        status.map_err(|error| {
            Failure::new(
                Exit::Failed,
                format!("cannot wait for the command: {error}"),
            )
        })
    }

    /// Passes a signal on. On a terminal Ctrl-C reaches the command by itself.
    pub(super) fn tell(&self, signal: Signal) {
        let Some(pid) = self.pid else { return };
        // A process that is gone needs no signal.
        let _gone = match self.own_group {
            true => kill_process_group(pid, signal),
            false if signal == Signal::INT || signal == Signal::QUIT => Ok(()),
            false => kill_process(pid, signal),
        };
    }

    /// SIGTERM, then SIGKILL.
    pub(super) async fn end(&mut self, grace: Duration) -> Result<ExitStatus, Failure> {
        self.tell(Signal::TERM);
        let in_time = match tokio::time::timeout(grace, self.wait()).await {
            Ok(status) => Some(status?),
            Err(_) => None,
        };
        if let Some(status) = in_time {
            self.end_group(Duration::ZERO).await;
            return Ok(status);
        }
        self.tell(Signal::KILL);
        self.wait().await
    }

    /// Ends what the command left behind in its group: it must not run on without the lock.
    pub(super) async fn end_group(&self, grace: Duration) {
        let (true, Some(group)) = (self.own_group, self.pid) else {
            return;
        };
        if test_kill_process_group(group).is_err() {
            return;
        }
        let _gone = kill_process_group(group, Signal::TERM);
        let gone = async {
            while test_kill_process_group(group).is_ok() {
                tokio::time::sleep(GROUP_POLL).await;
            }
        };
        if tokio::time::timeout(grace, gone).await.is_err() {
            let _gone = kill_process_group(group, Signal::KILL);
        }
    }
}

/// A command in a group of its own could not read from the terminal.
fn has_own_group() -> bool {
    !std::io::stdin().is_terminal()
}

/// Signals that came for the command.
pub(super) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
        let mut signals = Vec::with_capacity(FORWARDED.len());
        for kind in FORWARDED {
            let listening = signal(SignalKind::from_raw(kind.as_raw()));
            let listening = listening.map_err(|error| {
                Failure::new(Exit::Failed, format!("cannot listen for signals: {error}"))
            })?;
            signals.push((kind, listening));
        }
        Ok(Self(signals))
    }

    /// The next signal.
    pub(super) async fn next(&mut self) -> Signal {
        std::future::poll_fn(|context| {
            for (kind, listening) in &mut self.0 {
                if let Poll::Ready(Some(())) = Pin::new(listening).poll_recv(context) {
                    return Poll::Ready(*kind);
                }
            }
            Poll::Pending
        })
        .await
    }
}
