//! The program's commands, run to their end.

use std::{
    fs,
    io::Read,
    path::Path,
    process::{Command, Stdio},
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{self, Receiver},
    },
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{LOOK_INTERVAL, Site};
use crate::{domain::PROJECTIONS, history::COUNTS};

/// Longest run of a command; most have a bound of their own.
const COMMAND_PATIENCE: Duration = Duration::from_secs(120);

/// A process that the command left behind may keep its pipes open; nobody waits for that.
const PIPE_PATIENCE: Duration = Duration::from_secs(5);

/// Reads a pipe to its end, on a thread.
fn collected(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receiver
}

fn rest(pipe: &Receiver<String>) -> String {
    let left_open = "(something keeps this open)".to_owned();
    pipe.recv_timeout(PIPE_PATIENCE).unwrap_or(left_open)
}

/// What a command answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its exit code; -1 for a signal.
    pub code: i32,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub error: String,
}

impl Site {
    /// The program with this site's configuration and environment.
    pub fn program(&self, arguments: &[&str]) -> Command {
        self.program_with(&self.config(), arguments)
    }

    /// The same with another configuration file.
    pub fn program_with(&self, config: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.programs.host);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("PROJECTOR_") {
                command.env_remove(name);
            }
        }
        command
            .arg("--config")
            .arg(config)
            .args(arguments)
            .env("ES_DATABASE_URL", &self.store)
            .env("DATABASE_URL", &self.model)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command of the program to its end.
    pub fn run(&self, arguments: &[&str]) -> Answer {
        self.answer(self.program(arguments))
    }

    /// Runs a command that was made of [`Site::program`] to its end, which must come.
    pub fn answer(&self, mut command: Command) -> Answer {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let out = collected(child.stdout.take());
        let error = collected(child.stderr.take());
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("the process is ours") {
                break status;
            }
            if begun.elapsed() > COMMAND_PATIENCE {
                let _ = child.kill();
                let _ = child.wait();
                self.fail(&format!("{command:?} did not end: {}", rest(&error)));
            }
            std::thread::sleep(LOOK_INTERVAL);
        };
        Answer {
            code: status.code().unwrap_or(-1),
            out: rest(&out),
            error: rest(&error),
        }
    }

    /// Runs it and wants success.
    pub fn runs(&self, arguments: &[&str]) -> String {
        let answer = self.run(arguments);
        if answer.code != 0 {
            self.fail(&format!("`{}` failed: {answer:?}", arguments.join(" ")));
        }
        answer.out
    }

    /// Makes the tables.
    pub fn migrate(&self) {
        self.runs(&["migrate", "up"]);
    }

    /// Appends lines of JSON with the program, in batches of this size.
    pub fn append(&self, lines: &str, batch: usize) {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let file = self
            .folder
            .path()
            .join(format!("{}.ndjson", NEXT.fetch_add(1, Ordering::Relaxed)));
        fs::write(&file, lines).expect("there is room");
        self.runs(&[
            "append",
            &file.to_string_lossy(),
            "--batch",
            &batch.to_string(),
        ]);
    }

    /// Waits for the head with the program.
    pub fn wait(&self) {
        let counts = self.programs.plugins.join(format!("{COUNTS}.wasm"));
        let counts = counts.is_file().then_some(COUNTS);
        let mut arguments = vec!["wait"];
        arguments.extend(PROJECTIONS.into_iter().chain(counts));
        arguments.extend(["--until-caught-up", "--timeout", "30s"]);
        self.runs(&arguments);
    }

    /// What `status -o json` says.
    pub fn status(&self) -> Value {
        let answer = self.runs(&["status", "-o", "json"]);
        serde_json::from_str(&answer)
            .unwrap_or_else(|error| self.fail(&format!("{error}: {answer}")))
    }

    /// What it says of one projection.
    pub fn status_of(&self, name: &str) -> Value {
        let status = self.status();
        let found = status["projections"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|one| one["name"] == name);
        found
            .cloned()
            .unwrap_or_else(|| self.fail(&format!("{name} is not in {status}")))
    }
}
