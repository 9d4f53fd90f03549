//! Metrics and logs.
//!
//! Promises: one registry, passed by hand; names and meanings stand in `docs/reference/metrics.md`. Must
//! never: hold up a commit.

pub mod escape;
pub mod logging;
pub mod metrics;
pub mod repeats;
