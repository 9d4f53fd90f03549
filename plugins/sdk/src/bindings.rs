//! Generated from the contract in `plugins/wit`: `describe`, the log, and the section of the component that says what
//! it imports and exports. What crosses the boundary with every event is written by hand in `contract`.
#![allow(
    missing_docs,
    unsafe_code,
    clippy::all,
    reason = "generated from plugins/wit, which documents every item"
)]

wit_bindgen::generate!({
    path: "../wit",
    world: "projection",
    skip: ["project", "get", "get-json"],
});
