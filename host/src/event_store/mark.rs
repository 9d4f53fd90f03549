//! How far the store is settled, and what is waited for.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::event::{Anchor, Position};
use crate::database::listener::ListenerState;

/// What the reading service knows of the store; published at every change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// No event can appear at or below this position any more.
    pub settled_upto: Position,
    /// The last event at or below that position; none before the first session, or when there is none.
    pub anchor: Option<Anchor>,
    /// What came to stand at or below `settled_upto` all the same, though no projection read it there.
    pub late: Late,
    /// Highest position that was seen.
    pub head: Position,
    /// Whether the head was proven once since the service began.
    pub proven: bool,
    /// Positions near the head that were passed without an event since the service began: rolled back.
    pub skipped: u64,
    /// The gap that is waited for, if any.
    pub held: Option<Held>,
    /// Whether notifications are received.
    pub listener: ListenerState,
    /// Whether the store can be read.
    pub source: SourceState,
}

/// Events that came later than their place: below a position that was settled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Late {
    /// Where they stand, in order; the first ones when there are many.
    pub positions: Vec<Position>,
    /// How often such events were found.
    pub times: u64,
}

/// A gap that a writer may still fill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The first missing position.
    pub position: Position,
    /// Since when it is waited for.
    pub since: SystemTime,
    /// Who may still fill it.
    pub waiting_for: Vec<Writer>,
}

/// A transaction that may still fill a gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Writer {
    /// Its session; none for a prepared transaction.
    pub pid: Option<i32>,
    /// The session's name.
    pub application_name: String,
    /// Its user.
    pub user: String,
    /// Since when its transaction is open, in microseconds since 1970, if we may see it.
    pub since: Option<i64>,
}

/// Whether the store can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// It can.
    Ok,
    /// It cannot.
    Failing {
        /// Since when.
        since: SystemTime,
        /// Why.
        error: String,
    },
}

impl Mark {
    /// Nothing read yet; everything up to here is known to be settled.
    #[must_use]
    pub fn starting(settled_upto: Position) -> Self {
        Self {
            settled_upto,
            anchor: None,
            late: Late::default(),
            head: settled_upto,
            proven: false,
            skipped: 0,
            held: None,
            listener: ListenerState::PollingOnly,
            source: SourceState::Ok,
        }
    }

    /// Whether notifications are received.
    #[must_use]
    pub fn is_listening(&self) -> bool {
        self.listener == ListenerState::Listening
    }
}

impl Late {
    /// Positions that are kept.
    const POSITIONS_MAX: usize = 20;

    /// Adds what was found at one time.
    pub(super) fn found(&mut self, positions: &[Position]) {
        self.times += 1;
        self.positions.extend_from_slice(positions);
        self.positions.sort_unstable();
        self.positions.dedup();
        self.positions.truncate(Self::POSITIONS_MAX);
    }

    /// What a projection that has passed `after` will never read, if there is any.
    #[must_use]
    pub fn missed_by(&self, after: Position) -> Option<&[Position]> {
        let end = self.positions.partition_point(|late| *late <= after);
        (end > 0).then(|| &self.positions[..end])
    }
}

impl Held {
    /// How long it is waited for.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.since.elapsed().unwrap_or_default()
    }

    /// Since when, in microseconds since 1970.
    #[must_use]
    pub fn since_micros(&self) -> i64 {
        let since = self.since.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
    }

    /// The writers as JSON text, in the shape of `status -o json`.
    #[must_use]
    pub fn writers_json(&self) -> String {
        let time = |micros: i64| {
            jiff::Timestamp::from_microsecond(micros)
                .ok()
                .map(|time| time.to_string())
        };
        let writers = self.waiting_for.iter().map(|writer| {
            serde_json::json!({
                "pid": writer.pid,
                "application_name": writer.application_name,
                "user": writer.user,
                "since": writer.since.and_then(time),
            })
        });
        serde_json::Value::Array(writers.collect()).to_string()
    }
}
