//! How one projection runs: what the configuration says of it.

use std::time::Duration;

use crate::event_store::event::Position;

/// Settings of one projection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What happens to an event that cannot pass.
    pub on_error: OnError,
    /// How often and how fast a single event is tried again.
    pub retry: Retry,
    /// Where a new projection begins.
    pub start_from: StartFrom,
    /// Bounds of one batch.
    pub batch_events_max: usize,
    /// Bytes of one batch; one event always passes.
    pub batch_bytes_max: usize,
}

/// What happens to an event that cannot pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// The projection stops until somebody acts.
    Stop,
    /// It goes to the dead letters, and so does every later event of its stream.
    Park,
    /// It goes to the dead letters; everything else goes on.
    Skip,
}

/// How often and how fast something is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// Attempts at a single event.
    pub attempts_max: u32,
    /// First wait; doubles each time.
    pub initial: Duration,
    /// Longest wait.
    pub max: Duration,
}

/// Where a new projection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartFrom {
    /// At the first event.
    Beginning,
    /// After everything that is settled when it is registered.
    Now,
    /// After this position.
    After(Position),
}

impl Default for Retry {
    fn default() -> Self {
        Self {
            attempts_max: 10,
            initial: Duration::from_millis(100),
            max: Duration::from_secs(30),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            on_error: OnError::Stop,
            retry: Retry::default(),
            start_from: StartFrom::Beginning,
            batch_events_max: 10_000,
            batch_bytes_max: 8 << 20,
        }
    }
}
