//! Metrics and logs.

pub mod logging;
