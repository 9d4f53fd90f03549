//! Rows and checkpoints on a real PostgreSQL: all write kinds and column types, fences, names that are taken.

#[path = "read_model/checkpoints.rs"]
mod checkpoints;
#[path = "read_model/connections.rs"]
mod connections;
#[path = "read_model/plugins.rs"]
mod plugins;
#[path = "read_model/single.rs"]
mod single;
#[path = "read_model/support.rs"]
mod support;
#[path = "read_model/tables.rs"]
mod tables;
#[path = "read_model/values.rs"]
mod values;
#[path = "read_model/writes.rs"]
mod writes;
