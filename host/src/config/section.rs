//! The sections of the file, one module each, in the order of the data's way through the host.
//!
//! Promises: a section's `Default` is what an empty file means; its doc comments are the reference manual and
//! the JSON schema.

pub mod event_store;
pub mod host;
pub mod http;
pub mod leader;
pub mod locks;
pub mod plugins;
pub mod projection;
pub mod read_model;
