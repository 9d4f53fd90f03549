//! Connections to the two databases: session settings, identifiers, migrations.
//!
//! Promises: every connection carries a telling `application_name` and the time-outs of its purpose; no
//! error prints a URL. Must never: hand out a connection that a timed-out call may still be using.

pub mod address;
pub mod backoff;
pub mod connections;
pub mod error;
pub mod identifier;
pub mod jsonb;
pub mod listener;
pub mod micros;
pub mod migrate;
pub mod session;
pub mod template;
