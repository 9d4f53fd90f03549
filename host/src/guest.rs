//! One sandboxed call of a plugin: engine, limits, host functions, bindings for each contract version.
//!
//! Promises: a trap, a hang or too much memory ends that call only; after any error the instance and all
//! its output are thrown away. Must never: know anything of SQL.

pub mod bindings;
