//! One fault a test, on processes of the real program and a real PostgreSQL: what breaks, for how long, and that rows,
//! checkpoints, sessions and locks are right afterwards.
//!
//! `docs/reliability.md` says which test covers which fault. What a machine does not allow (namespaces, mounts) is
//! skipped with a line that the harness does not hide.

mod blocked;
mod clock;
mod closes;
mod commits;
mod cuts;
mod denied;
mod failover;
#[path = "../guest/fixture.rs"]
#[allow(dead_code, reason = "the tests of guests use more of it")]
mod fixture;
mod namespaces;
mod notify;
mod outages;
mod partitions;
mod plugins;
mod pooler;
#[path = "../replica/support.rs"]
mod programs;
mod resources;
mod restores;
mod scope;
mod service;
mod signals;
mod sources;
mod support;
