//! Runs one of PostgreSQL's programs to its end and keeps what it said.
//!
//! The user's own `PG…` variables are taken away first: they would send a client to another server.

use std::{
    env,
    io::Write,
    process::{Command, Output, Stdio},
};

use crate::error::{Error, Result};

/// Takes away what would redirect or translate PostgreSQL's programs.
pub(crate) fn clean_environment(command: &mut Command) -> &mut Command {
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("PG") {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C").env("PGCONNECT_TIMEOUT", "30")
}

/// Runs it with an empty standard input; gives its standard output without the last line break.
pub(crate) fn run(program: &str, command: &mut Command) -> Result<String> {
    let output = clean_environment(command).stdin(Stdio::null()).output();
    finish(
        program,
        output.map_err(Error::io(format!("run {program}")))?,
    )
}

/// Runs it with this standard input.
pub(crate) fn run_with_input(program: &str, command: &mut Command, input: &str) -> Result<String> {
    let mut child = clean_environment(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io(format!("run {program}")))?;
    // Written from a thread of its own: with a long input and a long answer both pipes could fill up.
    let pipe = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that ends early closes the pipe; its exit status tells the reason better.
            let _ = pipe.map(|mut pipe| pipe.write_all(input.as_bytes()));
        });
        child.wait_with_output()
    });
    finish(
        program,
        output.map_err(Error::io(format!("read the answer of {program}")))?,
    )
}

fn finish(program: &str, output: Output) -> Result<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    if output.status.success() {
        return Ok(text(&output.stdout));
    }
    let said = [text(&output.stderr), text(&output.stdout)]
        .into_iter()
        .find(|said| !said.is_empty());
    Err(Error::ToolFailed {
        program: program.into(),
        status: output.status.to_string(),
        output: said.unwrap_or_else(|| "it said nothing".into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_named_with_what_it_said() {
        let error = run(
            "the-shell",
            Command::new("sh").args(["-c", "echo out; echo why >&2; exit 3"]),
        );
        let error = error.expect_err("exit 3 is a failure").to_string();
        assert_eq!(error, "the-shell failed (exit status: 3): why");
    }

    #[test]
    fn a_long_input_and_a_long_answer_pass_together() {
        let input = "0123456789\n".repeat(100_000);
        let answer = run_with_input("cat", &mut Command::new("cat"), &input).expect("cat copies");
        assert_eq!(answer.len() + 1, input.len());
    }

    #[test]
    fn a_program_that_reads_nothing_is_no_failure() {
        let input = "x".repeat(1_000_000);
        assert_eq!(
            run_with_input("true", &mut Command::new("true"), &input).expect("true succeeds"),
            ""
        );
    }
}
