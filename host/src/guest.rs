//! One sandboxed call of a plugin: engine, limits, host functions, bindings for each contract version.
//!
//! Promises: a trap, a hang or too much memory ends that call only; after any error the instance and all
//! its output are thrown away. Must never: know anything of SQL.
//!
//! ```text
//! engine ── one per process: features, fuel, epoch ticker, linkers
//!   └ load ── Guest: a compiled component whose imports and exports were checked once
//!       └ call ── a fresh store and instance: describe(config), then project(batch)
//!           ├ memory ── pages that serve one instance after the other, wiped in between
//!           ├ lift, writes ── what it returned, read in one pass and packed
//!           ├ limiter, limits, clock ── what the call may use
//!           ├ state, lookups, logging ── what the guest may ask of the host
//!           ├ wasi ── the closed part of WASI, for languages that cannot do without
//!           ├ json ── the same contract as JSON text, for interpreted guests
//!           └ trap, error ── what went wrong, and whether it may be tried again
//! thread ── calls are synchronous and run on threads of their own, never on the async workers
//! ```

pub mod bindings;
pub mod call;
pub mod engine;
pub mod error;
pub mod json;
pub mod limits;
pub mod load;
pub mod logging;
pub mod lookups;
pub mod thread;
pub mod writes;

mod clock;
mod lift;
mod limiter;
mod memory;
mod state;
mod trap;
mod wasi;

pub use call::{Guest, Output};
pub use engine::{Engine, EngineOptions};
pub use error::{CallError, Category};
pub use limits::Limits;
pub use load::LoadError;
pub use lookups::{LookupFailure, Lookups, NoLookups};
