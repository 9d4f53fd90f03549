//! Lines of a source, each bounded in length and valid UTF-8.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// Longest line, in bytes.
pub const LINE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// What is wrong with a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// From 1.
    pub(super) line: u64,
    /// A sentence part that follows `file:line: `.
    pub(super) text: String,
}

/// Reads line after line.
#[derive(Debug)]
pub(super) struct Lines<R> {
    input: R,
    number: u64,
    buffer: Vec<u8>,
    bytes_max: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            number: 0,
            buffer: Vec::new(),
            bytes_max: LINE_BYTES_MAX,
        }
    }

    /// The next line that is not empty, with its number.
    pub(super) async fn next(&mut self) -> Result<Option<(u64, &str)>, Fault> {
        loop {
            self.number += 1;
            if !self.fill().await? {
                return Ok(None);
            }
            let bytes = self.buffer.as_slice();
            let bytes = match bytes.strip_prefix(b"\xEF\xBB\xBF") {
                Some(rest) if self.number == 1 => rest,
                _ => bytes,
            };
            if !bytes.trim_ascii().is_empty() {
                break;
            }
        }
        let number = self.number;
        let text = std::str::from_utf8(&self.buffer).map_err(|error| Fault {
            line: number,
            text: format!("byte {} is no valid UTF-8", error.valid_up_to() + 1),
        })?;
        let text = if number == 1 {
            text.trim_start_matches('\u{FEFF}')
        } else {
            text
        };
        Ok(Some((number, text.trim_matches([' ', '\t', '\r', '\n']))))
    }

    /// Reads up to the next line end into the buffer; false at the end of the source.
    async fn fill(&mut self) -> Result<bool, Fault> {
        self.buffer.clear();
        let mut seen = false;
        loop {
            let chunk = self.input.fill_buf().await.map_err(|error| Fault {
                line: self.number,
                text: format!("cannot be read: {error}"),
            })?;
            if chunk.is_empty() {
                return Ok(seen);
            }
            seen = true;
            let end = chunk.iter().position(|&byte| byte == b'\n');
            let taken = end.unwrap_or(chunk.len());
            if self.buffer.len() + taken > self.bytes_max {
                return Err(Fault {
                    line: self.number,
                    text: format!("is longer than {} MiB", self.bytes_max / (1024 * 1024)),
                });
            }
            self.buffer.extend_from_slice(&chunk[..taken]);
            self.input.consume(taken + usize::from(end.is_some()));
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8], bytes_max: usize) -> Result<Vec<(u64, String)>, Fault> {
        let mut lines = Lines::new(bytes);
        lines.bytes_max = bytes_max;
        let mut all = Vec::new();
        while let Some((number, text)) = lines.next().await? {
            all.push((number, text.to_owned()));
        }
        Ok(all)
    }

    #[tokio::test]
    async fn empty_lines_and_a_mark_are_skipped_and_numbers_stay_those_of_the_file() {
        let found = read(b"\xEF\xBB\xBF{}\r\n\n  \t\r\n[]\n\n1", 100).await;
        let expected = vec![
            (1, "{}".to_owned()),
            (4, "[]".to_owned()),
            (6, "1".to_owned()),
        ];
        assert_eq!(found, Ok(expected));
        assert_eq!(read(b"\xEF\xBB\xBF\n", 100).await, Ok(vec![]));
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_or_no_text_is_named() {
        assert_eq!(read(b"1234\n", 4).await.map(|lines| lines.len()), Ok(1));
        assert_eq!(
            read(b"1\n12345", 4).await.map_err(|fault| fault.line),
            Err(2)
        );
        assert_eq!(
            read(b"1\n2\nab\xFF\n", 100).await,
            Err(Fault {
                line: 3,
                text: "byte 3 is no valid UTF-8".to_owned()
            })
        );
    }
}
