//! Runs other programs: to the end, with a time limit, or for their answer.

use std::{
    env,
    ffi::OsString,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The cargo that runs us.
pub fn cargo() -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    forget_our_own_cargo(&mut command);
    command
}

/// Takes away what cargo has set for us. Some build scripts look at it, and would make cargo build their crates
/// again each time one changes between `cargo build` and `cargo xtask`.
pub fn forget_our_own_cargo(command: &mut Command) {
    const OURS: [&str; 5] = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_NAME",
        "CARGO_CRATE_NAME",
        "CARGO_PRIMARY_PACKAGE",
    ];
    for (name, _) in env::vars_os() {
        if OURS
            .iter()
            .any(|start| name.to_string_lossy().starts_with(start))
        {
            command.env_remove(name);
        }
    }
}

/// Runs it to the end with our own input and output.
pub fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot run {}", name(command)))?;
    check(command, status)
}

/// Runs it to the end and gives what it wrote to standard output.
pub fn capture(command: &mut Command) -> Result<Vec<u8>> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    let output = output.with_context(|| format!("cannot run {}", name(command)))?;
    check(command, output.status)?;
    Ok(output.stdout)
}

/// Runs it for its answer, a line or two of text, and keeps quiet about failures: `None` is one.
pub fn ask(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}

/// Runs it, with no input, in a process group of its own, which is killed as a whole when the limit is over.
pub fn run_bounded(command: &mut Command, limit: Duration) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run {}", name(command)))?;
    match wait_until(&mut child, limit)? {
        Some(status) => check(command, status),
        None => {
            // Its children may be what hangs; if the group has just ended by itself, there is nothing to kill.
            let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
            child
                .wait()
                .with_context(|| format!("cannot wait for {}", name(command)))?;
            bail!("{} took longer than {} s", name(command), limit.as_secs())
        }
    }
}

/// Waits for the end of a child, at most this long.
pub fn wait_until(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait().context("cannot wait for a program")? {
            return Ok(Some(status));
        }
        if begin.elapsed() >= limit {
            return Ok(None);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// The command line for people: program and arguments without the program's folder.
pub fn name(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let mut text = program
        .file_name()
        .unwrap_or(program.as_os_str())
        .to_string_lossy()
        .into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

fn check(command: &Command, status: ExitStatus) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    bail!("`{}` failed ({status})", name(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hanging_program_is_killed_with_its_children() {
        let begin = Instant::now();
        let folder = tempfile::tempdir().expect("a temporary folder");
        let script = "sleep 600 & echo $! > child; wait";
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder.path());
        let error = run_bounded(&mut command, Duration::from_millis(500))
            .expect_err("it sleeps for 10 minutes");
        assert!(error.to_string().contains("took longer"), "{error}");
        let child = std::fs::read_to_string(folder.path().join("child"))
            .expect("the shell wrote its child's pid");
        let alive = || {
            let state =
                std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z ")
        };
        while alive() {
            assert!(
                begin.elapsed() < Duration::from_secs(30),
                "the child {child} lives on"
            );
            thread::sleep(POLL_INTERVAL);
        }
    }

    #[test]
    fn a_failure_names_the_command_as_one_would_type_it() {
        let error =
            run(Command::new("sh").args(["-c", "exit 7"])).expect_err("exit 7 is a failure");
        assert_eq!(error.to_string(), "`sh -c exit 7` failed (exit status: 7)");
        let error = run(&mut Command::new("/no/such/program")).expect_err("there is none");
        assert_eq!(error.to_string(), "cannot run program");
    }
}
