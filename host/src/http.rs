//! Probes, metrics and the API.
