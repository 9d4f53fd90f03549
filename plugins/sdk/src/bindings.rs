//! Generated from the contract in `plugins/wit`: the types that cross the boundary, the host's imports and the
//! macro that exports a guest. Nothing else in the crate knows how a component is made.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from plugins/wit, which documents every item"
)]

wit_bindgen::generate!({
    path: "../wit",
    world: "projection",
    pub_export_macro: true,
    export_macro_name: "export_component",
    default_bindings_module: "projector_sdk::__private::bindings",
    additional_derives: [PartialEq],
});
