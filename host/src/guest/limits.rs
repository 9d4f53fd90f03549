//! What one call of a plugin may use. Every bound has a name and a default.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Bounds of one call; `[plugins.limits]` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of linear memory, summed over all memories of the instance.
    pub memory_max: u64,
    /// Time that the guest itself may run; time spent in the host, or waiting for a processor, is not counted.
    pub call_timeout: Duration,
    /// Instructions, roughly. Deterministic: the same call always ends at the same one.
    pub fuel_max: u64,
    /// Writes that one batch may return.
    pub writes_per_batch_max: usize,
    /// Bytes that one call, either way between guest and host, may hand to the host.
    pub output_bytes_max: usize,
    /// Calls of `read-model.get` in one batch.
    pub lookup_calls_max: usize,
    /// Keys that one such call may ask for.
    pub lookup_keys_max: usize,
    /// Log lines of one call that are passed on; the others are counted.
    pub log_lines_max: usize,
    /// Bytes of one log line or error text that are kept.
    pub log_line_bytes_max: usize,
    /// Elements of all tables of the instance.
    pub table_elements_max: usize,
    /// Linear memories of one instance.
    pub memories_max: usize,
    /// Tables of one instance.
    pub tables_max: usize,
    /// Core instances within one component instance.
    pub instances_max: usize,
    /// Handles to resources that the guest may hold.
    pub handles_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_max: 64 << 20,
            call_timeout: Duration::from_secs(5),
            fuel_max: 4_000_000_000,
            writes_per_batch_max: 100_000,
            output_bytes_max: 64 << 20,
            lookup_calls_max: 10_000,
            lookup_keys_max: 100_000,
            log_lines_max: 100,
            log_line_bytes_max: 4096,
            table_elements_max: 200_000,
            memories_max: 64,
            tables_max: 256,
            instances_max: 1_000,
            handles_max: 1_000,
        }
    }
}
