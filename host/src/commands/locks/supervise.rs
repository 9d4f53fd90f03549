//! The small process between the keeper of `locks run` and its command: it outlives a killed keeper long enough to end
//! the command, and the command does not outlive it.
//!
//! The kernel sends it SIGTERM when its parent dies (`PR_SET_PDEATHSIG`, set in this very process, so no unsafe
//! code between fork and exec is needed). It leads the process group of the command, unless the command
//! needs the terminal. Must never: outlive its command.

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, kill_process, kill_process_group};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::error::{Exit, Failure};

/// Arguments of `locks supervise`, written by `locks run`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Pid of `locks run`
    #[arg(long)]
    parent: i32,
    /// Milliseconds between SIGTERM and SIGKILL
    #[arg(long)]
    grace: u64,
    /// The command shares the process group of the terminal
    #[arg(long)]
    shared_group: bool,
    /// Become the command, and die with the parent
    #[arg(long)]
    tied: bool,
    /// The command
    #[arg(last = true, required = true, num_args = 1..)]
    command: Vec<OsString>,
}

/// Runs the command and passes its exit code on.
///
/// # Errors
/// [`Exit::Child`] with the code, unless it is 0.
pub async fn run(args: Args) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new(Exit::Failed, error.to_string());
    let on_death = if args.tied {
        Signal::KILL
    } else {
        Signal::TERM
    };
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(on_death))
        .map_err(|error| failed(error.into()))?;
    let parent = Pid::from_raw(args.parent);
    // The parent may have died before the line above.
    if getppid() != parent {
        return Err(Failure::new(Exit::TryAgain, "locks run is gone"));
    }
    if args.tied {
        return Err(become_the(&args.command));
    }
    // Whatever ends others must not end this process before its command.
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut others = Vec::new();
    for kind in super::run::FORWARDED {
        others.push(signal(SignalKind::from_raw(kind.as_raw())).map_err(failed)?);
    }
    let mut child = spawn(&args).map_err(failed)?;
    loop {
        tokio::select! {
            status = child.wait() => return passed_on(status.map_err(failed)?),
            _ = terminate.recv() => {
                if getppid() != parent {
                    end(&mut child, &args).await;
                } else if args.shared_group {
                    tell(&child, Signal::TERM);
                }
            }
        }
    }
}

/// Starts this program once more, which then becomes the command: so the kernel ends the command with this process,
/// whoever kills it (the wish survives `exec`), and no unsafe code is needed between fork and exec.
fn spawn(args: &Args) -> std::io::Result<Child> {
    let mut process = Command::new(std::env::current_exe()?);
    process
        .args(["locks", "supervise", "--tied", "--grace", "0", "--parent"])
        .arg(std::process::id().to_string())
        .arg("--")
        .args(&args.command);
    process.spawn()
}

/// Returns only when the program cannot be run.
fn become_the(command: &[OsString]) -> Failure {
    use std::os::unix::process::CommandExt as _;
    let Some((program, arguments)) = command.split_first() else {
        return Failure::new(Exit::Usage, "no command");
    };
    let error = std::process::Command::new(program).args(arguments).exec();
    // As shells have it.
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => 127,
        _ => 126,
    };
    let program = program.to_string_lossy();
    Failure::new(Exit::Child(code), format!("cannot run {program}: {error}"))
}

/// The keeper was killed, and the lock went with it.
async fn end(child: &mut Child, args: &Args) {
    let group = rustix::process::getpgrp();
    let send = |child: &Child, signal| {
        if args.shared_group {
            tell(child, signal);
        } else {
            // This process gets it too, and waits for it calmly; SIGKILL ends both.
            let _gone = kill_process_group(group, signal);
        }
    };
    send(child, Signal::TERM);
    let grace = Duration::from_millis(args.grace);
    let _over = tokio::time::timeout(grace, child.wait()).await;
    send(child, Signal::KILL);
}

fn tell(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        let _gone = kill_process(pid, signal);
    }
}

/// An exit code, or 128 and the signal.
fn passed_on(status: ExitStatus) -> Result<(), Failure> {
    match super::run::code_of(status) {
        0 => Ok(()),
        code => Err(Failure::new(Exit::Child(code), "")),
    }
}
