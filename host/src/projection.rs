//! The loop of a projection: read → guest → write, three stages joined by short bounded channels.
//!
//! Promises: batches commit in order, each with its checkpoint; whatever stands behind a failed or fenced
//! commit is thrown away; a poison event is found by splitting its batch and stops its own projection only.
//! Must never: start a batch when the lease is over, or blame an event for the database's state.

mod admission;
mod choice;
pub mod commit;
pub mod failure;
pub mod isolate;
mod letters;
pub mod lookups;
mod member;
pub mod pace;
pub mod parked;
pub mod pending;
pub mod progress;
pub mod redrive;
pub mod roster;
pub mod runner;
pub mod session;
pub mod settings;
pub mod supervisor;
pub mod verdict;
pub mod work;
