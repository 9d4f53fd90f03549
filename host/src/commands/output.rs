//! How commands answer: tables for people, JSON for programs, questions before harm.
//!
//! Promises: what others wrote steers no terminal, in tables, notes and errors; only answers go to standard output; a closed pipe ends the command as done. Must never: ask
//! when nobody can answer, or colour what is not a terminal.

pub mod plain;

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};

use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

use crate::config::Environment;
use crate::error::{Exit, Failure};
use crate::telemetry::escape::escaped;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs; the shape is stable
    Json,
}

/// `-o json`, for commands that answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::Args)]
pub struct FormatArg {
    /// The form of the answer
    #[arg(
        short = 'o',
        long = "output",
        value_enum,
        default_value_t,
        value_name = "FORMAT"
    )]
    pub format: Format,
}

impl FormatArg {
    /// Whether JSON is wanted.
    #[must_use]
    pub fn is_json(self) -> bool {
        self.format == Format::Json
    }
}

/// Where answers go.
#[derive(Debug, Clone)]
pub struct Output {
    stdout_is_terminal: bool,
    stderr_is_terminal: bool,
    stdin_is_terminal: bool,
    no_color: bool,
}

impl Output {
    /// Standard output and error of this process.
    #[must_use]
    pub fn new(environment: &Environment) -> Self {
        let dumb = environment
            .get_os("TERM")
            .is_some_and(|term| term == "dumb");
        Self {
            stdout_is_terminal: io::stdout().is_terminal(),
            stderr_is_terminal: io::stderr().is_terminal(),
            stdin_is_terminal: io::stdin().is_terminal(),
            no_color: dumb || environment.get_os("NO_COLOR").is_some(),
        }
    }

    /// Whether standard output is a terminal: progress and repainting make sense only there.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.stdout_is_terminal
    }

    /// Whether answers may be coloured.
    #[must_use]
    pub fn colors(&self) -> bool {
        self.stdout_is_terminal && !self.no_color
    }

    /// Whether messages and logs may be coloured.
    #[must_use]
    pub fn colors_on_stderr(&self) -> bool {
        self.stderr_is_terminal && !self.no_color
    }

    /// Prints text as it is, with a line end if it has none.
    ///
    /// # Errors
    /// When standard output cannot be written; a closed pipe is [`Exit::Done`].
    pub fn text(&self, text: &str) -> Result<(), Failure> {
        let end = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let mut stdout = io::stdout().lock();
        let written = write!(stdout, "{text}{end}").and_then(|()| stdout.flush());
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::new(Exit::Done, ""),
            _ => Failure::new(
                Exit::Failed,
                format!("cannot write to standard output: {error}"),
            ),
        })
    }

    /// Prints one JSON value: indented on a terminal, a line elsewhere.
    ///
    /// # Errors
    /// As for [`Self::text`].
    pub fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = if self.stdout_is_terminal {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        let text =
            text.map_err(|error| Failure::new(Exit::Bug, format!("cannot form JSON: {error}")))?;
        self.text(&text)
    }

    /// Prints a table; columns are only squeezed on a terminal. Cells may hold what others wrote, so what could forge a
    /// line or steer a terminal is escaped in them.
    ///
    /// # Errors
    /// As for [`Self::text`].
    pub fn table<R>(&self, header: &[&str], rows: R) -> Result<(), Failure>
    where
        R: IntoIterator<Item = Vec<String>>,
    {
        let mut table = Table::new();
        let rows = rows.into_iter().map(|row| {
            row.iter()
                .map(|cell| plain::line(cell))
                .collect::<Vec<String>>()
        });
        table
            .load_style(presets::NOTHING)
            .set_header(header.iter().map(|name| name.to_uppercase()))
            .add_rows(rows.into_iter().map(|row: Vec<String>| {
                row.into_iter()
                    .map(|cell| escaped(&cell).into_owned())
                    .collect::<Vec<_>>()
            }))
            .set_content_arrangement(match self.stdout_is_terminal {
                true => ContentArrangement::Dynamic,
                false => ContentArrangement::Disabled,
            });
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let lines: Vec<String> = table
            .to_string()
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect();
        self.text(&lines.join("\n"))
    }

    /// Says something to the person: not part of the answer.
    pub fn note(&self, text: &str) {
        Self::say(&plain::lines(text));
    }

    fn say(text: &str) {
        // Nobody is left to be told when standard error is closed.
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Prints why a command failed, in the form `error[PH0101]: …`.
    pub fn failure(&self, failure: &Failure) {
        if failure.message.is_empty() {
            return;
        }
        let head = match failure.code {
            Some(code) => format!("error[{code}]"),
            None => "error".to_owned(),
        };
        let head = match self.colors_on_stderr() {
            true => format!("\u{1b}[1;31m{head}\u{1b}[0m"),
            false => head,
        };
        Self::say(&format!("{head}: {}", plain::lines(&failure.message)));
        if let Some(code) = failure.code {
            self.note(&format!("\nmore about it: projector-host explain {code}"));
        }
    }

    /// Asks before something that cannot be taken back; `yes` is the flag `-y`.
    ///
    /// # Errors
    /// [`Exit::Usage`] when standard input is no terminal and `-y` was not given; [`Exit::Failed`] when the
    /// answer is no.
    pub fn confirm(&self, question: &str, yes: bool) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        if !self.stdin_is_terminal {
            return Err(Failure::new(
                Exit::Usage,
                format!("{question} Nobody can answer here: add `-y` to go ahead"),
            ));
        }
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer);
        match (read, answer.trim().to_ascii_lowercase().as_str()) {
            (Ok(_), "y" | "yes") => Ok(()),
            _ => Err(Failure::new(Exit::Failed, "nothing was changed")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_terminal_a_question_fails_and_names_the_flag() {
        let out = Output {
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            stdin_is_terminal: false,
            no_color: true,
        };
        let failure = out
            .confirm("Drop everything?", false)
            .expect_err("nobody can answer");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.message.contains("`-y`"), "{failure}");
        assert!(out.confirm("Drop everything?", true).is_ok());
    }
}
