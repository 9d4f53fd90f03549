//! Where log lines go: standard error, as text for people or as JSON for collectors.
//!
//! Promises: an event is one line, whatever its texts hold. Must never: write to standard output, which belongs to the
//! answers of commands.

use std::io::{self, Write};

use thiserror::Error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::{SubscriberInitExt as _, TryInitError};

use super::escape::escaped;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Text,
    /// For people who look at them all the time: without date and module.
    Short,
    /// For collectors.
    Json,
}

/// Why logging could not start.
#[derive(Debug, Error)]
pub enum Error {
    /// The filter is malformed.
    #[error("the log filter is malformed: {0}")]
    Filter(#[from] ParseError),
    /// Somebody else set a subscriber before.
    #[error("logging was started twice: {0}")]
    Twice(#[from] TryInitError),
}

/// Starts logging for the whole process; called once, by `commands`.
///
/// # Errors
/// When the filter is malformed or logging runs already.
pub fn init(format: Format, filter: &str, colors: bool) -> Result<(), Error> {
    let filter = EnvFilter::try_new(filter)?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr);
    let one_line = move || OneLine {
        to: io::stderr(),
        colors,
    };
    match format {
        Format::Text => lines
            .with_writer(one_line)
            .with_ansi(false)
            .finish()
            .try_init()?,
        Format::Short => lines
            .with_writer(one_line)
            .with_ansi(false)
            .with_target(false)
            .with_timer(tracing_subscriber::fmt::time::uptime())
            .finish()
            .try_init()?,
        Format::Json => lines
            .json()
            .flatten_event(true)
            .with_current_span(true)
            .with_span_list(false)
            .finish()
            .try_init()?,
    }
    Ok(())
}

/// Writes each event, which comes whole, as one line. The formatter does not colour: in some places it passes escape
/// characters on that stand in what it gets, and nobody could tell them from its own.
struct OneLine<W> {
    to: W,
    colors: bool,
}

impl<W: Write> Write for OneLine<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let (text, end) = match text.strip_suffix('\n') {
            Some(text) => (text, "\n"),
            None => (&*text, ""),
        };
        let line = escaped(text);
        let coloured = self.colors.then(|| coloured(&line)).flatten();
        let line = format!("{}{end}", coloured.as_deref().unwrap_or(&line));
        self.to.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A line with its time dimmed and its level coloured, if it begins with these two.
fn coloured(line: &str) -> Option<String> {
    const LEVELS: [(&str, u8); 5] = [
        ("ERROR", 31),
        ("WARN", 33),
        ("INFO", 32),
        ("DEBUG", 34),
        ("TRACE", 35),
    ];
    let (time, rest) = line.trim_start().split_once(' ')?;
    let rest = rest.trim_start();
    LEVELS.into_iter().find_map(|(level, colour)| {
        let rest = rest.strip_prefix(level)?;
        Some(format!(
            "\u{1b}[2m{time}\u{1b}[0m \u{1b}[{colour}m{level:>5}\u{1b}[0m{rest}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::telemetry::escape::steers;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(colors: bool, text: &str) -> String {
        let shared = Shared::default();
        let to = shared.clone();
        let lines = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || OneLine {
                to: to.clone(),
                colors,
            })
            .finish();
        tracing::subscriber::with_default(lines, || {
            tracing::info!(file = %text, quoted = text, debug = ?text, "message: {text}");
        });
        let bytes = shared.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn an_event_is_one_line_and_steers_no_terminal() {
        let text = "x\n2026-01-01T00:00:00Z  INFO leading term=99\r\u{1b}[2J\u{9b}31m\u{202e}";
        let plain = logged(false, text);
        assert_eq!(plain.matches('\n').count(), 1, "{plain:?}");
        assert!(plain.ends_with('\n'));
        assert!(!plain.trim_end().contains(steers), "{plain:?}");
        let coloured = logged(true, text);
        assert_eq!(coloured.matches('\n').count(), 1, "{coloured:?}");
        assert!(
            coloured.contains("\u{1b}[32m INFO\u{1b}[0m"),
            "{coloured:?}"
        );
        // Time and level, and nothing of what the event holds.
        assert_eq!(coloured.matches('\u{1b}').count(), 4, "{coloured:?}");
        assert!(!coloured.contains('\u{9b}'), "{coloured:?}");
    }
}
