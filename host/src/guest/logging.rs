//! What a guest logs, passed on to `tracing` with the projection's name.
//!
//! Promises: a flood costs at most a bounded number of lines a call, and how many were dropped is said
//! exactly. Text is cut at a bound and has no control characters that could forge lines.

use super::bindings::Level;
use super::limits::Limits;

/// The log lines of one call.
#[derive(Debug)]
pub(super) struct CallLog {
    projection: std::sync::Arc<str>,
    lines: usize,
    lines_max: usize,
    line_bytes_max: usize,
    dropped: u64,
}

impl CallLog {
    pub(super) fn new(projection: std::sync::Arc<str>, limits: &Limits) -> Self {
        Self {
            projection,
            lines: 0,
            lines_max: limits.log_lines_max,
            line_bytes_max: limits.log_line_bytes_max,
            dropped: 0,
        }
    }

    /// Passes a line on, or counts it.
    pub(super) fn line(&mut self, level: Level, message: &str) {
        if self.lines >= self.lines_max {
            self.dropped += 1;
            return;
        }
        self.lines += 1;
        let message = tidy(message, self.line_bytes_max);
        let projection = &*self.projection;
        match level {
            Level::Debug => tracing::debug!(target: "plugin", projection, "{message}"),
            Level::Info => tracing::info!(target: "plugin", projection, "{message}"),
            Level::Warn => tracing::warn!(target: "plugin", projection, "{message}"),
            Level::Error => tracing::error!(target: "plugin", projection, "{message}"),
        }
    }

    /// Ends the call: says how much was dropped, and returns it.
    pub(super) fn finish(&mut self) -> u64 {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            tracing::warn!(
                target: "plugin",
                projection = &*self.projection,
                dropped,
                passed_on = self.lines,
                "the plugin logged more lines in one call than log_lines_max allows"
            );
        }
        dropped
    }
}

/// A text from a guest, cut at `bytes_max` and with control characters other than newline and tab escaped.
#[must_use]
pub fn tidy(text: &str, bytes_max: usize) -> String {
    let mut tidied = String::with_capacity(text.len().min(bytes_max));
    for c in text.chars() {
        if tidied.len() + c.len_utf8() > bytes_max {
            tidied.push('…');
            break;
        }
        if c.is_control() && c != '\n' && c != '\t' {
            tidied.extend(c.escape_default());
        } else {
            tidied.push(c);
        }
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character_and_cannot_steer_a_terminal() {
        assert_eq!(tidy("plain\n\ttext", 100), "plain\n\ttext");
        assert_eq!(tidy("a\u{1b}[31mb\0", 100), "a\\u{1b}[31mb\\u{0}");
        assert_eq!(tidy("äöü", 4), "äö…");
        assert_eq!(tidy("äöü", 5), "äö…");
    }

    #[test]
    fn lines_over_the_bound_are_counted_exactly() {
        let limits = Limits {
            log_lines_max: 3,
            ..Limits::default()
        };
        let mut log = CallLog::new("order".into(), &limits);
        for _ in 0..10 {
            log.line(Level::Info, "x");
        }
        assert_eq!(log.finish(), 7);
        assert_eq!(log.finish(), 0);
    }
}
