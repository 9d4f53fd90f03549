//! What a running projection shows of itself to the supervisor, metrics and HTTP.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::event_store::Mark;
use crate::event_store::event::Position;
use crate::telemetry::repeats::Repeats;

/// The states that people see. The words are part of the public contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Its tables are prepared and its checkpoint is read.
    Starting,
    /// Behind the head.
    CatchingUp,
    /// At the head.
    Live,
    /// At a gap that a writer still holds open.
    Held,
    /// A database or a plugin fails for the moment.
    Retrying,
    /// Stopped at a failure until somebody acts.
    Stopped,
    /// Paused by somebody.
    Paused,
    /// No replica has a plugin file for it.
    NoPlugin,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Starting,
        Self::CatchingUp,
        Self::Live,
        Self::Held,
        Self::Retrying,
        Self::Stopped,
        Self::Paused,
        Self::NoPlugin,
    ];

    /// The state of a word, if this host knows it.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// The word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::CatchingUp => "catching-up",
            Self::Live => "live",
            Self::Held => "held",
            Self::Retrying => "retrying",
            Self::Stopped => "stopped",
            Self::Paused => "paused",
            Self::NoPlugin => "no-plugin",
        }
    }
}

/// What the runner itself knows; the rest follows from the store's mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Reading its checkpoint.
    Starting = 0,
    /// Projecting.
    Running = 1,
    /// Waiting after a transient failure.
    Retrying = 2,
    /// Stopped at a failure.
    Stopped = 3,
    /// Paused.
    Paused = 4,
    /// Without a plugin.
    NoPlugin = 5,
}

/// A gap younger than this is everyday concurrency, not a state.
const HELD_AFTER: Duration = Duration::from_secs(1);

/// A live projection may be this many events behind before it counts as catching up again.
const LIVE_LAG_MAX: i64 = 10_000;

/// Log lines of one kind a minute.
const LINES_MAX: u64 = 10;

/// Shared by the runner (writes) and everybody else (reads).
#[derive(Debug, Clone)]
pub struct Progress(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    position: AtomicI64,
    phase: AtomicU8,
    live: AtomicU8,
    last_error: Mutex<Option<(Instant, String)>>,
    refused: Mutex<Option<Refusal>>,
    busy: [Mutex<Option<Instant>>; 2],
    letters: Mutex<Letters>,
    letters_changed: AtomicBool,
    repeats: Repeats,
}

/// Why the tables of a projection cannot be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// In words.
    pub message: String,
    /// Whether trying again changes nothing until a person acts.
    pub lasts: bool,
}

impl Refusal {
    /// The state of the projection meanwhile.
    #[must_use]
    pub const fn state(&self) -> State {
        if self.lasts {
            State::Stopped
        } else {
            State::Retrying
        }
    }
}

/// Dead letters that nobody has resolved, and streams that wait behind some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Letters {
    /// Letters.
    pub open: i64,
    /// Streams.
    pub parked_streams: i64,
}

/// A stage that works on one batch at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Station {
    /// The guest, with checks and fold.
    Guest = 0,
    /// The transaction.
    Commit = 1,
}

/// A stage that is busy with one batch for longer than this hangs.
const BUSY_MAX: Duration = Duration::from_secs(45);

/// Marks a stage as busy until it is dropped.
#[derive(Debug)]
pub struct Busy(Progress, Station);

impl Drop for Busy {
    fn drop(&mut self) {
        *lock(&self.0.0.busy[self.1 as usize]) = None;
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self(Arc::new(Inner {
            position: AtomicI64::new(0),
            phase: AtomicU8::new(Phase::Starting as u8),
            live: AtomicU8::new(0),
            last_error: Mutex::new(None),
            refused: Mutex::new(None),
            busy: [Mutex::new(None), Mutex::new(None)],
            letters: Mutex::default(),
            letters_changed: AtomicBool::new(true),
            repeats: Repeats::new(LINES_MAX),
        }))
    }
}

impl Progress {
    /// The checkpoint, as last committed.
    #[must_use]
    pub fn position(&self) -> Position {
        Position(self.0.position.load(Ordering::Relaxed))
    }

    /// A checkpoint was read or committed.
    pub fn reached(&self, position: Position) {
        self.0.position.store(position.0, Ordering::Relaxed);
    }

    /// The runner's phase changed.
    pub fn enter(&self, phase: Phase) {
        self.0.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// Its tables cannot be made; none when they can again. Says whether that is new.
    pub fn refuse(&self, why: Option<Refusal>) -> bool {
        let mut refused = lock(&self.0.refused);
        let changed = *refused != why;
        *refused = why;
        changed
    }

    /// Why its tables cannot be made.
    #[must_use]
    pub fn refused(&self) -> Option<Refusal> {
        lock(&self.0.refused).clone()
    }

    /// A stage begins with a batch.
    #[must_use]
    pub fn busy(&self, station: Station) -> Busy {
        *lock(&self.0.busy[station as usize]) = Some(Instant::now());
        Busy(self.clone(), station)
    }

    /// Whether no stage hangs.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.0
            .busy
            .iter()
            .all(|busy| lock(busy).is_none_or(|since| since.elapsed() < BUSY_MAX))
    }

    /// Dead letters were written or resolved.
    pub fn letters_changed(&self) {
        self.0.letters_changed.store(true, Ordering::Relaxed);
    }

    /// Whether they were since this was asked last.
    #[must_use]
    pub fn letters_to_count(&self) -> bool {
        self.0.letters_changed.swap(false, Ordering::Relaxed)
    }

    /// They were counted.
    pub fn set_letters(&self, letters: Letters) {
        *lock(&self.0.letters) = letters;
    }

    /// How many there are, as counted last.
    #[must_use]
    pub fn letters(&self) -> Letters {
        *lock(&self.0.letters)
    }

    /// Which log lines are written and which are only counted.
    #[must_use]
    pub fn repeats(&self) -> &Repeats {
        &self.0.repeats
    }

    /// Tells the log what was held back; with `all`, also in minutes that are not over.
    pub fn tell_repeats(&self, projection: &str, all: bool) {
        for held in self.0.repeats.take(all) {
            tracing::warn!(projection, lines = held.lines, "{held}");
        }
    }

    /// The last transient failure, for people.
    pub fn failed(&self, message: String) {
        *lock(&self.0.last_error) = Some((Instant::now(), message));
    }

    /// The last transient failure and when it was.
    #[must_use]
    pub fn last_error(&self) -> Option<(Instant, String)> {
        lock(&self.0.last_error).clone()
    }

    /// The state that people see, given the store's mark.
    #[must_use]
    pub fn state(&self, mark: &Mark) -> State {
        if let Some(refusal) = self.refused() {
            return refusal.state();
        }
        match self.0.phase.load(Ordering::Relaxed) {
            1 => {}
            2 => return State::Retrying,
            3 => return State::Stopped,
            4 => return State::Paused,
            5 => return State::NoPlugin,
            _ => return State::Starting,
        }
        let position = self.position();
        let held = mark
            .held
            .as_ref()
            .is_some_and(|held| held.age() >= HELD_AFTER);
        if held && position >= mark.settled_upto {
            return State::Held;
        }
        let lag = mark.head.0 - position.0;
        let live = lag <= 0
            || (mark.settled_upto <= position)
            || (self.0.live.load(Ordering::Relaxed) == 1 && lag < LIVE_LAG_MAX);
        self.0.live.store(u8::from(live), Ordering::Relaxed);
        if live { State::Live } else { State::CatchingUp }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
