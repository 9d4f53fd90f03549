//! What a guest logs, passed on to `tracing` with the projection's name.
//!
//! Promises: a flood costs at most a bounded number of lines a call and a minute, and how many were dropped is
//! said exactly. Text is cut at a bound and has no control characters that could forge lines.

use std::sync::Arc;

use crate::telemetry::escape::steers;
use crate::telemetry::repeats::Repeats;

use super::bindings::Level;
use super::limits::Limits;

/// Lines of one plugin a minute, over all its calls.
const LINES_PER_MINUTE_MAX: u64 = 1_000;

/// What is counted when there are more.
const LINE: &str = "the plugin logs";
const FLOOD: &str = "the plugin logged more lines in one call than log_lines_max allows";

/// The log of one plugin.
#[derive(Debug)]
pub(super) struct PluginLog {
    projection: Arc<str>,
    repeats: Repeats,
}

impl PluginLog {
    pub(super) fn new(projection: &str) -> Self {
        Self {
            projection: projection.into(),
            repeats: Repeats::new(LINES_PER_MINUTE_MAX),
        }
    }

    pub(super) fn projection(&self) -> &str {
        &self.projection
    }

    /// Tells how many lines were held back.
    pub(super) fn tell(&self, all: bool) {
        for held in self.repeats.take(all) {
            tracing::warn!(target: "plugin", projection = &*self.projection, lines = held.lines, "{held}");
        }
    }
}

impl Drop for PluginLog {
    fn drop(&mut self) {
        self.tell(true);
    }
}

/// The log lines of one call.
#[derive(Debug)]
pub(super) struct CallLog {
    log: Arc<PluginLog>,
    lines: usize,
    lines_max: usize,
    line_bytes_max: usize,
    dropped: u64,
}

impl CallLog {
    pub(super) fn new(log: Arc<PluginLog>, limits: &Limits) -> Self {
        Self {
            log,
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
        if !self.log.repeats.admit(LINE) {
            return;
        }
        let message = tidy(message, self.line_bytes_max);
        let projection = &*self.log.projection;
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
        if dropped > 0 && self.log.repeats.admit(FLOOD) {
            tracing::warn!(
                target: "plugin",
                projection = &*self.log.projection,
                dropped,
                passed_on = self.lines,
                "{FLOOD}"
            );
        } else if dropped > 0 {
            self.log.repeats.hold(LINE, dropped);
        }
        dropped
    }
}

/// A text from a guest, cut at `bytes_max` and with everything escaped that could forge a line or steer a terminal.
#[must_use]
pub fn tidy(text: &str, bytes_max: usize) -> String {
    let mut tidied = String::with_capacity(text.len().min(bytes_max));
    for c in text.chars() {
        if tidied.len() + c.len_utf8() > bytes_max {
            tidied.push('…');
            break;
        }
        if steers(c) {
            tidied.extend(c.escape_default());
        } else {
            tidied.push(c);
        }
    }
    tidied
}

/// A text of the host with tidy parts, cut at `bytes_max`.
#[must_use]
pub fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() > bytes_max {
        text.truncate(text.floor_char_boundary(bytes_max));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_a_character_and_cannot_steer_a_terminal() {
        assert_eq!(tidy("two\n\tlines", 100), "two\\n\\tlines");
        assert_eq!(cut("two\nlines".into(), 5), "two\nl…");
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
        let plugin = Arc::new(PluginLog::new("order"));
        for _ in 0..1_010 {
            let mut log = CallLog::new(Arc::clone(&plugin), &limits);
            for _ in 0..10 {
                log.line(Level::Info, "x");
            }
            assert_eq!(log.finish(), 7);
            assert_eq!(log.finish(), 0);
        }
        let held = plugin.repeats.take(true);
        let held = |kind| {
            held.iter()
                .find(|held| held.kind == kind)
                .map(|held| held.lines)
        };
        // 3,030 lines were within the bound of their call, 1,000 of them within that of the minute; ten calls
        // could not say themselves that they dropped seven each.
        assert_eq!(held(LINE), Some(2_030 + 70));
        assert_eq!(held(FLOOD), Some(10));
    }
}
