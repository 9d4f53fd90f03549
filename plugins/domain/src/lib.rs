//! What the shipped projections share: who an event is about. Tenants and identifiers come in an old and a new
//! shape; this crate reads both, so that the projections know only the new one.
//!
//! It holds no table and no rule of any single projection.

mod identity;
mod payload;

pub use identity::Identity;

/// For the macros of this crate only; no part of its interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::identity::{identity, identity_or_old};
    pub use projector_sdk::{Failure, Uuid};
    pub use serde_json::value::RawValue;
}
