//! An event as it stands in the store, and why one cannot pass.

use serde_json::Value;

/// A stored event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where it stands.
    pub position: i64,
    /// What happened.
    pub kind: String,
    /// Its payload.
    pub data: Value,
}

/// Why an event cannot pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Poison {
    /// Where it stands.
    pub position: i64,
    /// What is wrong with it.
    pub reason: String,
}
