//! The loop of a projection.
