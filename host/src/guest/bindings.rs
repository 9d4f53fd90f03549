//! Bindings for the two worlds of `projector:projection@0.1.0`, and the types that both share.
//!
//! Owns: nothing but generated code. A later contract version gets a module of its own beside these and
//! converts into these types, so that old plugins load for ever.
#![allow(
    missing_docs,
    reason = "generated from plugins/wit, which documents every item"
)]

/// A guest that takes and returns typed lists.
pub mod typed {
    wasmtime::component::bindgen!({
        path: "../plugins/wit",
        world: "projection",
        imports: { default: trappable },
    });
}

/// A guest that takes and returns one JSON text.
pub mod json {
    wasmtime::component::bindgen!({
        path: "../plugins/wit",
        world: "projection-json",
        with: {
            "projector:projection/types": super::typed::projector::projection::types,
            "projector:projection/read-model": super::typed::projector::projection::read_model,
            "projector:projection/log": super::typed::projector::projection::log,
        },
    });
}

pub use typed::exports::projector::projection::manifest::Description;
pub use typed::projector::projection::log::Level;
pub use typed::projector::projection::read_model::LookupError;
pub use typed::projector::projection::types::{
    Cell, Change, Event, Failure, Fault, RowKey, Value, Write,
};

/// The version of the contract that these bindings speak.
pub const CONTRACT_VERSION: &str = "0.1.0";
