//! One open session of a writer or of somebody who is in the way.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use crate::tool;

/// `psql` that waits for the next statement. Dropping it ends the session; an open transaction rolls back.
#[derive(Debug)]
pub struct Session {
    child: Child,
    answers: BufReader<ChildStdout>,
}

const MARK: &str = "=done";

impl Session {
    pub(super) fn open(psql: &Path, url: &str) -> Self {
        let mut command = Command::new(psql);
        command
            .args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", url])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = tool::clean_environment(&mut command)
            .spawn()
            .expect("psql can be started");
        let answers = BufReader::new(child.stdout.take().expect("it is a pipe"));
        Self { child, answers }
    }

    /// Runs statements and gives their rows. After an error, or without a session, there are none.
    pub fn run(&mut self, sql: &str) -> String {
        let pipe = self.child.stdin.as_mut().expect("it is a pipe");
        if writeln!(pipe, "{sql};\n\\echo {MARK}")
            .and_then(|()| pipe.flush())
            .is_err()
        {
            return String::new();
        }
        let mut rows = String::new();
        let mut line = String::new();
        while self.answers.read_line(&mut line).unwrap_or_default() > 0 && line.trim_end() != MARK {
            rows += &line;
            line.clear();
        }
        rows.trim_end().to_owned()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
