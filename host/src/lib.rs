//! A host that runs event-sourcing projections as WebAssembly plugins on PostgreSQL.
//!
//! Data flows in one direction, and the modules stand in that order:
//!
//! ```text
//! config → event_store → leadership → plugin → guest → projection → read_model → telemetry → http
//!             │  polling + LISTEN      │ lock + term      │ sandboxed call     │ rows and checkpoint
//!             ▼                        ▼                  ▼                    ▼ in one transaction
//!        gap-safe batches        who may project     returned writes      generation tables + views
//! ```
//!
//! `app` is the one place that knows all components: it builds them, wires their handles, runs them and
//! drains them. `commands` holds the command line, a file for each command.

pub mod error;

pub mod advisory_lock;
pub mod config;
pub mod database;
pub mod event_store;
pub mod guest;
pub mod http;
pub mod leadership;
pub mod plugin;
pub mod projection;
pub mod read_model;
pub mod telemetry;

pub mod app;
pub mod commands;
