//! Ordered, gap-safe reading of the event store, and appending to it.
//!
//! Promises: a position at or below the proven mark never gets another event; events are delivered in
//! position order, each once for a given cursor. Must never: skip a gap by the clock, or hold up writers.

pub mod event;
