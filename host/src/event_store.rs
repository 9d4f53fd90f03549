//! Ordered, gap-safe reading of the event store, and appending to it.
//!
//! One service (`tail`) proves how far the store is settled and publishes that as a [`Mark`]; any number of
//! projections read below the mark through a [`Feed`], each at its own pace and with its own filter. Near the
//! head the rows that the service read anyway are kept, so that N projections cost one read.
//!
//! Promises: a position at or below the mark never gets another event; events are delivered in position
//! order, each once for a given cursor; NOTIFY is only a hint, polling never stops. Must never: skip a gap by
//! the clock, hold up writers, or write to a store.

pub mod anchor;
pub mod error;
pub mod event;
pub mod feed;
mod gap;
pub mod inspect;
pub mod layout;
pub mod mark;
pub mod preflight;
mod ring;
mod rows;
mod tail;

use std::time::Duration;

use crate::database::identifier::Identifier;
use crate::database::session::Database;

pub use crate::database::listener::ListenerState;
pub use anchor::Anchor;
pub use error::Error;
pub use feed::Feed;
pub use mark::{Held, Mark, SourceState, Writer};
pub use preflight::StoreIdentity;
pub use tail::Service;

/// How the store is read.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it is.
    pub database: Database,
    /// The schema of its tables.
    pub schema: Identifier,
    /// How often it is looked at without a notification.
    pub poll_interval: Duration,
    /// Whether notifications are listened to.
    pub notify: bool,
    /// Which transactions may still fill a gap.
    pub gap_proof: GapProof,
}

/// Which transactions may still fill a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GapProof {
    /// Those that have written to the events table: its numbers are drawn by the INSERT itself.
    Writers,
    /// Every open transaction of the database: numbers are drawn by a statement of their own.
    AllTransactions,
}

/// Bounds of one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchLimits {
    /// Events.
    pub events_max: usize,
    /// Bytes of payload; one event always passes.
    pub bytes_max: usize,
}
