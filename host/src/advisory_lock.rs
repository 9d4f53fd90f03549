//! The advisory-lock toolkit: every need of the kind "many replicas, one of them does it".
//!
//! | need | take |
//! |---|---|
//! | the work is one transaction | [`transaction`]: the lock ends with it, nothing can leak |
//! | the work outlives a transaction | [`session`]: a guard that owns its connection |
//! | at most N at once, over all hosts | [`slots`] |
//! | once for each point in time, as cron does | [`cron`]: a row written under the lock |
//! | who holds what | [`inspect`] |
//!
//! Promises: a lock lives in a transaction or on a connection that its guard owns; every unlock checks the
//! boolean that the server returns; every wait has a bound. Must never: hand a connection with a lock on it
//! to a pool, take the same lock twice on one session, or read the environment. The traps that this avoids
//! stand in `docs/locks.md`.

pub mod cron;
pub mod error;
pub mod inspect;
pub mod key;
pub mod probe;
pub mod registry;
pub mod session;
pub mod slots;
pub mod transaction;

pub use error::Error;
pub use key::Key;

/// The examples of the page, compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/locks.md")]
pub struct Page;
