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
    /// Where they stand, each with the number of the find, from 1; the first ones of a find that has many.
    pub found: Vec<(u64, Position)>,
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
    /// Positions that are kept of one find.
    const OF_ONE_FIND_MAX: usize = 20;

    /// Positions that are kept at all; beyond, each find keeps its first one, which whoever missed any of it missed.
    const ALL_MAX: usize = 1_000;

    /// Adds what was found at one time. False when all of that was known.
    pub(super) fn find(&mut self, positions: &[Position]) -> bool {
        let known = |position: &&Position| self.found.iter().any(|(_, found)| found == *position);
        let mut new: Vec<Position> = positions.iter().filter(|at| !known(at)).copied().collect();
        if new.is_empty() {
            return false;
        }
        new.sort_unstable();
        new.truncate(Self::OF_ONE_FIND_MAX);
        self.times += 1;
        self.found
            .extend(new.into_iter().map(|at| (self.times, at)));
        if self.found.len() > Self::ALL_MAX {
            self.found.dedup_by_key(|(time, _)| *time);
        }
        true
    }

    /// What a projection that has passed `after` will never read, of the finds after the first `known` ones.
    #[must_use]
    pub fn missed_by(&self, after: Position, known: u64) -> Vec<Position> {
        let missed = self
            .found
            .iter()
            .filter(|(time, at)| *time > known && *at <= after);
        missed.map(|(_, at)| *at).collect()
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
