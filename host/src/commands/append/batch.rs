//! Lines gathered into batches that fit one statement.

use tokio::io::AsyncBufRead;

use super::line;
use super::lines::{Fault, Lines};

/// A batch ends early at this many bytes of lines, so that memory stays bounded; one line always passes.
pub const BATCH_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Checked lines that go into one transaction.
#[derive(Debug)]
pub(super) struct Batch {
    json: String,
    line_numbers: Vec<u64>,
}

/// A source of batches.
#[derive(Debug)]
pub(super) struct Batches<R> {
    lines: Lines<R>,
    events_max: usize,
}

impl Batch {
    /// The lines as one JSON array.
    pub(super) fn as_json(&self) -> &str {
        &self.json
    }

    /// The line of the event that the server counts as `at`, from 1.
    pub(super) fn line_of(&self, at: usize) -> Option<u64> {
        self.line_numbers.get(at.checked_sub(1)?).copied()
    }

    pub(super) fn first_line(&self) -> u64 {
        self.line_numbers.first().copied().unwrap_or_default()
    }

    pub(super) fn last_line(&self) -> u64 {
        self.line_numbers.last().copied().unwrap_or_default()
    }
}

impl<R: AsyncBufRead + Unpin> Batches<R> {
    pub(super) fn new(input: R, events_max: usize) -> Self {
        Self {
            lines: Lines::new(input),
            events_max,
        }
    }

    /// The next batch, every line of it checked; none at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Batch>, Fault> {
        let mut batch = Batch {
            json: "[".to_owned(),
            line_numbers: Vec::new(),
        };
        while batch.line_numbers.len() < self.events_max && batch.json.len() < BATCH_BYTES_MAX {
            let Some((number, text)) = self.lines.next().await? else {
                break;
            };
            line::check(text).map_err(|text| Fault { line: number, text })?;
            if !batch.line_numbers.is_empty() {
                batch.json.push(',');
            }
            batch.json.push_str(text);
            batch.line_numbers.push(number);
        }
        batch.json.push(']');
        Ok((!batch.line_numbers.is_empty()).then_some(batch))
    }
}
