//! The election on a real PostgreSQL: several replicas in one process, each with its own lock session.

#[path = "leadership/election.rs"]
mod election;
#[path = "leadership/faults.rs"]
mod faults;
#[path = "leadership/handover.rs"]
mod handover;
#[path = "leadership/network.rs"]
mod network;
#[path = "leadership/pooler.rs"]
mod pooler;
#[path = "leadership/session.rs"]
mod session;
#[path = "leadership/support.rs"]
mod support;
#[path = "leadership/term.rs"]
mod term;
