//! Loading in a process of its own: parsing, encoding, compiling, linking and the first `describe` of a file.
//!
//! The process is this same program with a hidden command ([`serve()`]), so its code is as trusted as the host's; what it
//! reads is not. Promises: whatever a file does to the libraries that read it ends that process and is told as a
//! refusal of that file; it has bounded memory, time and stack, no environment, and goes when the host goes. Must never:
//! hand over more than one answer, or be waited for without end.
//!
//! ```text
//! host ── a line of JSON (Request), the file's bytes ──▶ standard input of the process
//!      ◀── a line of JSON (Reply), compiled code ── its standard output
//! ```

use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::error::{Error, Relayed};
use super::file::sha256;
use crate::guest::logging::tidy;
use crate::guest::{Engine, EngineOptions, Limits};

mod serve;

pub use serve::serve;

/// The hidden command that serves.
pub const COMMAND: &str = "load-plugin";
/// Memory that loading one file may take, beside what its own limits allow the plugin.
pub const MEMORY_MAX_BYTES: u64 = 2 << 30;
/// How long loading one file may take, and how much time of one processor.
pub const TIMEOUT: Duration = Duration::from_secs(120);
/// Compiled code that is taken back.
pub const CODE_BYTES_MAX: usize = 1 << 30;

/// An answer beside the code is a line of text.
const LINE_BYTES_MAX: usize = 1 << 20;
/// What a process that fails says of it.
const COMPLAINT_BYTES_MAX: u64 = 16 << 10;
const COMPLAINT_SHOWN_BYTES_MAX: usize = 300;

/// What is to be loaded.
#[derive(Debug, Serialize, Deserialize)]
struct Request {
    engine: EngineOptions,
    config_json: String,
    limits: Limits,
    bytes: usize,
}

/// What came of it; compiled code follows.
#[derive(Debug, Serialize, Deserialize)]
enum Reply {
    Compiled {
        bytes: usize,
        sha256: String,
        /// Why `describe` failed in a way that would take as long again.
        described: Option<Relayed>,
    },
    Refused(Relayed),
}

/// A file that was loaded.
#[derive(Debug)]
pub(super) struct Loaded {
    /// Native code, for an engine of the same settings.
    pub code: Vec<u8>,
    /// Why the plugin cannot say what it is, if that is known already.
    pub described: Option<Relayed>,
}

/// This very program, to be named in [`super::Options`]. On Linux it is found also when an upgrade has replaced its
/// file.
#[must_use]
pub fn this_program() -> Option<PathBuf> {
    let own = Path::new("/proc/self/exe");
    if own.exists() {
        return Some(own.to_owned());
    }
    std::env::current_exe().ok()
}

/// Loads a file in a process of its own. Blocks.
///
/// # Errors
/// What is wrong with the file, or what became of the process.
pub(super) fn load(
    program: &Path,
    engine: &Engine,
    config_json: &str,
    limits: &Limits,
    bytes: &[u8],
) -> Result<Loaded, Error> {
    let request = Request {
        engine: engine.options().clone(),
        config_json: config_json.to_owned(),
        limits: limits.clone(),
        bytes: bytes.len(),
    };
    let mut line = serde_json::to_vec(&request).map_err(|error| Error::Bug(error.to_string()))?;
    line.push(b'\n');
    let mut command = Command::new(program);
    command.arg(COMMAND);
    let process = Process::start(command).map_err(Error::Process)?;
    process.ask(&line, bytes, TIMEOUT)
}

/// A process that does not outlive this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only when it has ended and was waited for.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

impl Process {
    fn start(mut command: Command) -> io::Result<Self> {
        command
            // No secret of the host's environment is near the file, and nothing there changes how it is loaded.
            .env_clear()
            .current_dir("/")
            // A terminal's Ctrl-C is for the host, which ends it.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map(Self)
    }

    fn ask(mut self, line: &[u8], bytes: &[u8], timeout: Duration) -> Result<Loaded, Error> {
        let (stdin, stdout, stderr) = self.pipes()?;
        thread::scope(|scope| {
            let (send, answer) = mpsc::channel();
            let thread = |name: &str| thread::Builder::new().name(name.to_owned());
            thread("plugin-ask")
                .spawn_scoped(scope, move || write(stdin, line, bytes))
                .map_err(Error::Process)?;
            let complaint = thread("plugin-complain")
                .spawn_scoped(scope, move || complaint(stderr))
                .map_err(Error::Process)?;
            thread("plugin-answer")
                .spawn_scoped(scope, move || drop(send.send(read(stdout))))
                .map_err(Error::Process)?;
            let answer = answer.recv_timeout(timeout);
            // It has ended, or will not by itself. Its pipes end with it, and so do the threads.
            drop(self.0.kill());
            let status = self.0.wait().map_err(Error::Process)?;
            let complaint = complaint.join().unwrap_or_default();
            match answer {
                Err(_) => Err(Error::Slow { max: timeout }),
                Ok(Ok(Answer::Whole(loaded))) => Ok(loaded),
                Ok(Ok(Answer::Refused(relayed))) => Err(Error::Relayed(relayed)),
                Ok(Err(error)) => Err(ended(status, &complaint, &error)),
            }
        })
    }

    fn pipes(&mut self) -> Result<(ChildStdin, ChildStdout, ChildStderr), Error> {
        let child = &mut self.0;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => Ok((stdin, stdout, stderr)),
            _ => Err(Error::Process(io::Error::other("it has no pipes"))),
        }
    }
}

enum Answer {
    Whole(Loaded),
    Refused(Relayed),
}

/// A process that does not read to the end says itself why.
fn write(mut stdin: ChildStdin, line: &[u8], bytes: &[u8]) {
    drop(stdin.write_all(line).and_then(|()| stdin.write_all(bytes)));
}

fn complaint(stderr: ChildStderr) -> String {
    let mut text = Vec::new();
    // What cannot be read is not needed; the rest is read, so that nobody waits for room in the pipe.
    let mut stderr = stderr;
    drop(
        stderr
            .by_ref()
            .take(COMPLAINT_BYTES_MAX)
            .read_to_end(&mut text),
    );
    drop(io::copy(&mut stderr, &mut io::sink()));
    String::from_utf8_lossy(&text).into_owned()
}

fn read(stdout: ChildStdout) -> io::Result<Answer> {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    stdout
        .by_ref()
        .take(LINE_BYTES_MAX as u64)
        .read_until(b'\n', &mut line)?;
    let (bytes, digest, described) = match serde_json::from_slice(&line)? {
        Reply::Refused(relayed) => return Ok(Answer::Refused(relayed)),
        Reply::Compiled {
            bytes,
            sha256,
            described,
        } => (bytes, sha256, described),
    };
    if bytes > CODE_BYTES_MAX {
        return Err(io::Error::other(format!(
            "its compiled code has more than {CODE_BYTES_MAX} bytes"
        )));
    }
    let mut code = vec![0; bytes];
    stdout.read_exact(&mut code)?;
    if sha256(&code) != digest {
        return Err(io::Error::other("its answer is damaged"));
    }
    Ok(Answer::Whole(Loaded { code, described }))
}

/// Why a process has no answer.
fn ended(status: ExitStatus, complaint: &str, error: &io::Error) -> Error {
    // Rust's own words when there is no memory; a process that was stopped by the limit of its processor time has
    // a signal of its own.
    if complaint.contains("memory allocation of") {
        return Error::Starved {
            max: MEMORY_MAX_BYTES,
        };
    }
    if status.signal() == Some(rustix::process::Signal::XCPU.as_raw()) {
        return Error::Slow { max: TIMEOUT };
    }
    let how = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (None, Some(0)) => format!("gave no answer ({error})"),
        (None, code) => format!("ended with exit code {}", code.unwrap_or(-1)),
    };
    let said: Vec<&str> = complaint
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Error::Crashed {
        how,
        said: match said.is_empty() {
            true => "nothing".to_owned(),
            false => tidy(&said.join("; "), COMPLAINT_SHOWN_BYTES_MAX),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a process that does this instead.
    fn check(script: &str, timeout: Duration, code: u16, part: &str) {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let process = Process::start(command).expect("a shell");
        // More than a pipe takes in, so that whoever does not read leaves the writer waiting.
        let bytes = vec![0; 1 << 20];
        let error = process.ask(b"{}\n", &bytes, timeout).expect_err(script);
        assert_eq!(error.code().0, code, "{script}: {error}");
        assert!(error.to_string().contains(part), "{script}: {error}");
        assert!(!error.is_incomplete());
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_process_that_does_not_answer_is_ended_and_told() {
        check(
            "exec sleep 600",
            Duration::from_millis(50),
            521,
            "more than",
        );
        check(
            "cat >/dev/null; exec sleep 600",
            Duration::from_millis(50),
            521,
            "",
        );
        check("exec sleep 600 >&-", LONG, 520, "");
        check(
            "echo 'has overflowed its stack' >&2; kill -ABRT $$",
            LONG,
            520,
            "was ended by signal 6, and said: has overflowed its stack",
        );
        check("kill -SEGV $$", LONG, 520, "signal 11, and said: nothing");
        check("kill -XCPU $$", LONG, 521, "more than");
        check(
            "echo 'memory allocation of 9 bytes failed' >&2; kill -ABRT $$",
            LONG,
            522,
            "2048 MiB",
        );
    }

    #[test]
    fn an_answer_that_is_none_is_not_believed() {
        check("exec true", LONG, 520, "");
        check("exec yes", LONG, 520, "");
        check(
            "exec 3>&1; exec yes >&2",
            Duration::from_millis(50),
            521,
            "",
        );
        check(
            "echo '{\"Compiled\":{\"bytes\":9,\"sha256\":\"\"}}'; echo abc",
            LONG,
            520,
            "",
        );
        check(
            "echo '{\"Compiled\":{\"bytes\":3,\"sha256\":\"\"}}'; echo abc",
            LONG,
            520,
            "",
        );
        check(
            "echo '{\"Compiled\":{\"bytes\":99999999999,\"sha256\":\"\"}}'",
            LONG,
            520,
            "",
        );
    }
}
