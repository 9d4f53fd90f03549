//! The advisory-lock toolkit: every need of the kind "many replicas, one of them does it".
//!
//! Promises: a lock lives in a transaction or on a connection that its guard owns; every unlock checks the
//! boolean that the server returns; every wait has a bound. Must never: hand a connection with a lock on it
//! to a pool, take the same lock twice on one session, or read the environment.

pub mod key;
pub mod probe;
