//! Private PostgreSQL servers for the tests and the demo, and whole sites to test: databases, replicas, the domain told
//! a second time.
//!
//! Drives PostgreSQL's own programs (`initdb`, `postgres`, `psql`, `pg_basebackup`), so a test meets a real
//! server with all its locks, crashes and versions. Synchronous on purpose: it serves tests of any runtime.
//!
//! What it promises:
//!
//! - A server listens on 127.0.0.1 and in its own temporary folder only.
//! - It ends, and its folder goes, with the [`Server`] value or with the process that holds it, however that
//!   process ends.
//! - It never touches a server or a folder that it did not create. Databases made by [`test_database`] have
//!   names of their own.
//!
//! ```no_run
//! # fn main() -> projector_testkit::Result<()> {
//! let database = projector_testkit::test_database()?;
//! assert_eq!(database.psql("select 1 + 1")?, "2");
//! # Ok(())
//! # }
//! ```

mod account;
mod database;
pub mod domain;
mod error;
pub mod guests;
pub mod history;
mod installation;
pub mod namespace;
mod place;
pub mod pooler;
pub mod proxy;
pub mod random;
mod server;
pub mod site;
pub mod skip;
mod tool;
pub mod torture;
mod url;

pub use database::{SERVER_VARIABLE, TestDatabase, test_database};
pub use error::{Error, Result};
pub use installation::{BIN_VARIABLE, Installation};
pub use place::repository;
pub use server::{Mode, Server, ServerOptions};
