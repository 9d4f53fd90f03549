//! Log lines that would be written again and again: the first ones of a minute pass, the others are counted
//! exactly and told in one line.
//!
//! Promises: no line is lost without being counted; what was counted is told when the minute is over, or when
//! the counter goes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is counted together.
const WINDOW: Duration = Duration::from_secs(60);

/// Counts lines by kind. The kind is the line's own text.
#[derive(Debug)]
pub struct Repeats {
    lines_max: u64,
    kinds: Mutex<HashMap<&'static str, Window>>,
}

#[derive(Debug)]
struct Window {
    since: Instant,
    passed: u64,
    held: u64,
}

impl Window {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            passed: 0,
            held: 0,
        }
    }
}

/// Lines that were held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Their text.
    pub kind: &'static str,
    /// How many.
    pub lines: u64,
    /// Over which time.
    pub time: Duration,
}

impl std::fmt::Display for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: … and {} more like it in {} s",
            self.kind,
            grouped(self.lines),
            self.time.as_secs()
        )
    }
}

impl Repeats {
    /// Lets so many lines of a kind pass in a minute.
    #[must_use]
    pub fn new(lines_max: u64) -> Self {
        Self {
            lines_max,
            kinds: Mutex::default(),
        }
    }

    /// Whether a line of this kind is to be written.
    #[must_use]
    pub fn admit(&self, kind: &'static str) -> bool {
        self.with(kind, |window| {
            let passes = window.passed < self.lines_max;
            if passes {
                window.passed += 1;
            } else {
                window.held += 1;
            }
            passes
        })
    }

    /// Counts lines of a kind that were held back elsewhere.
    pub fn hold(&self, kind: &'static str, lines: u64) {
        self.with(kind, |window| window.held += lines);
    }

    fn with<T>(&self, kind: &'static str, change: impl FnOnce(&mut Window) -> T) -> T {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        change(kinds.entry(kind).or_insert_with(Window::new))
    }

    /// What was held back in minutes that are over; with `all`, also in those that are not.
    #[must_use]
    pub fn take(&self, all: bool) -> Vec<Held> {
        self.over(Instant::now(), all)
    }

    fn over(&self, now: Instant, all: bool) -> Vec<Held> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut held = Vec::new();
        kinds.retain(|kind, window| {
            let time = now.saturating_duration_since(window.since);
            if time < WINDOW && !all {
                return true;
            }
            if window.held > 0 {
                held.push(Held {
                    kind,
                    lines: window.held,
                    time,
                });
            }
            false
        });
        held
    }
}

/// Thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lines_pass_and_the_others_are_counted_exactly() {
        let repeats = Repeats::new(3);
        let passed = (0..4_214).filter(|_| repeats.admit("it failed")).count();
        assert_eq!(passed, 3);
        assert!(repeats.admit("something else"));
        assert!(repeats.take(false).is_empty(), "the minute is not over");
        let held = repeats.over(Instant::now() + WINDOW, false);
        assert_eq!(held.len(), 1, "{held:?}");
        assert_eq!(
            held[0].to_string(),
            "it failed: … and 4,211 more like it in 60 s"
        );
        assert!(repeats.admit("it failed"), "a new minute");
        assert!(repeats.take(true).is_empty());
    }

    #[test]
    fn what_is_held_back_can_be_told_before_the_minute_is_over() {
        let repeats = Repeats::new(0);
        assert!(!repeats.admit("x"));
        repeats.hold("x", 41);
        assert_eq!(repeats.take(true)[0].lines, 42);
        assert!(repeats.take(true).is_empty(), "it is told once");
    }
}
