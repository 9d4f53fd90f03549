//! The process that people see, and the one that keeps the lock for it.
//!
//! A killed process frees its lock at once, while the command still runs. So the lock belongs to a child, which the
//! kernel tells of the death (`PR_SET_PDEATHSIG`) and which ends the command before it gives the lock back.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;

use rustix::process::{Pid, Signal, getppid};

use super::child::{Running, Signals};
use super::code_of;
use crate::error::{Code, Exit, Failure};

/// Starts the keeper with the same arguments, passes signals on, and ends as it ends.
pub(super) async fn run() -> Result<(), Failure> {
    let mut signals = Signals::listen()?;
    let mut running = Running::spawn(with_keeper(std::env::args_os().skip(1)))?;
    loop {
        tokio::select! {
            status = running.wait() => {
                let status = status?;
                return match (status.signal(), code_of(status)) {
                    (Some(_), _) => Err(Failure::coded(
                        Exit::TryAgain,
                        Code(407),
                        "the process that kept the lock was killed; the command is ended",
                    )),
                    (None, 0) => Ok(()),
                    // It has said why.
                    (None, code) => Err(Failure::new(Exit::Child(code), "")),
                };
            }
            signal = signals.next() => running.tell(signal),
        }
    }
}

/// Makes sure that this process hears of the death of the one that people see.
pub(super) fn follow(parent: i32) -> Result<Pid, Failure> {
    let gone = || Failure::new(Exit::TryAgain, "locks run is gone");
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| Failure::new(Exit::Failed, error.to_string()))?;
    // It may have died before the line above.
    let parent = Pid::from_raw(parent).ok_or_else(gone)?;
    if getppid() == Some(parent) {
        Ok(parent)
    } else {
        Err(gone())
    }
}

/// The same arguments for the keeper. The command follows the first `--`.
fn with_keeper(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut own: Vec<OsString> = arguments.collect();
    let command = own.iter().position(|one| one == "--");
    let place = command.unwrap_or(own.len());
    own.insert(place, format!("--keeper-of={}", std::process::id()).into());
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keeper_s_argument_stands_before_the_command() {
        let given = ["locks", "run", "a", "--", "sh", "--", "x"].map(OsString::from);
        let found = with_keeper(given.into_iter());
        assert_eq!(found[..3], ["locks", "run", "a"]);
        assert!(found[3].to_string_lossy().starts_with("--keeper-of="));
        assert_eq!(found[4..], ["--", "sh", "--", "x"]);
    }
}
