//! What stopped an append, in words that name the file, the line, and what was written before.

use super::Summary;
use super::batch::Batch;
use super::lines::Fault;
use crate::database::error::{Error as DatabaseError, UNAVAILABLE};
use crate::database::identifier::Identifier;
use crate::database::migrate::{DENIED, READ_ONLY, UNMIGRATED};
use crate::error::{Code, Exit, Failure};

const BAD_LINE: Code = Code(321);
const CONFLICT: Code = Code(322);
const REFUSED: Code = Code(323);

/// Where in a source the append stands.
#[derive(Debug)]
pub(super) struct Place<'a> {
    name: &'a str,
    /// The last line that is written for sure.
    pub(super) written_upto: u64,
}

impl<'a> Place<'a> {
    pub(super) fn new(name: &'a str) -> Self {
        Self {
            name,
            written_upto: 0,
        }
    }

    /// A line that is no event.
    pub(super) fn fault(&self, fault: &Fault, summary: &Summary) -> Failure {
        let (name, line, text) = (self.name, fault.line, &fault.text);
        let written = self.written(summary);
        Failure::coded(
            Exit::Failed,
            BAD_LINE,
            format!("{name}:{line}: {text}; {written}"),
        )
    }

    /// A batch that the store did not take.
    pub(super) fn refused(
        &self,
        batch: &Batch,
        error: DatabaseError,
        schema: &Identifier,
        summary: &Summary,
    ) -> Failure {
        let written = self.written(summary);
        let lines = format!("{}:{}-{}", self.name, batch.first_line(), batch.last_line());
        if error.is_unavailable() {
            let unknown = "whether these lines were written is not known; lines with an \"id\" can be sent again";
            let text = format!("{lines}: {error}; {unknown}; before them, {written}");
            return Failure::coded(Exit::Unavailable, UNAVAILABLE, text);
        }
        let DatabaseError::Statement {
            sqlstate, message, ..
        } = &error
        else {
            return Failure::new(Exit::Bug, format!("{lines}: {error}; {written}"));
        };
        let (place, message) = match event_of(message) {
            Some((at, text)) => match batch.line_of(at) {
                Some(line) => (format!("{}:{line}", self.name), text),
                None => (lines, text),
            },
            None => (lines, message.as_str()),
        };
        match sqlstate.as_str() {
            "40001" => Failure::coded(
                Exit::Failed,
                CONFLICT,
                format!("{place}: {message}; {written}"),
            ),
            "3F000" | "42P01" | "42883" => Failure::coded(
                Exit::Config,
                UNMIGRATED,
                format!(
                    "the event store's schema `{schema}` is not migrated ({message}); run `projector-host migrate up`"
                ),
            ),
            "42501" => Failure::coded(
                Exit::Config,
                DENIED,
                format!(
                    "{message}; those who append need USAGE on the schema `{schema}`, INSERT and SELECT on its `events`, \
                     and EXECUTE on its functions; {written}"
                ),
            ),
            "25006" => Failure::coded(
                Exit::Config,
                READ_ONLY,
                format!("the event store is read-only: {message}; use the primary"),
            ),
            "55P03" | "57014" | "40P01" => Failure::coded(
                Exit::TryAgain,
                REFUSED,
                format!(
                    "{place}: another transaction appends to the same streams ({message}); {written}"
                ),
            ),
            _ => Failure::coded(
                Exit::Failed,
                REFUSED,
                format!(
                    "{place}: {error_text}; {written}",
                    error_text = with_state(message, sqlstate)
                ),
            ),
        }
    }

    fn written(&self, summary: &Summary) -> String {
        match self.written_upto {
            0 => "nothing was written".to_owned(),
            line => {
                let last = summary
                    .last_position
                    .map(|position| format!(" (last position {position})"));
                format!(
                    "the lines up to {line} are written{}, nothing after them",
                    last.unwrap_or_default()
                )
            }
        }
    }
}

fn with_state(message: &str, sqlstate: &str) -> String {
    format!("{message} (SQLSTATE {sqlstate})")
}

/// Splits `event 17: text`, as the store's function words it.
fn event_of(message: &str) -> Option<(usize, &str)> {
    let (number, text) = message.strip_prefix("event ")?.split_once(": ")?;
    Some((number.parse().ok()?, text))
}
