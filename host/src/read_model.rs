//! Rows and checkpoints in the read-model database.
//!
//! Owns: the tables of each generation and the views in front of them, turning returned writes into
//! set-based SQL, and the checkpoint that moves in the same transaction.
//!
//! Promises: rows do not depend on how events were cut into batches; a batch's first statement is the
//! compare-and-set of its checkpoint, and when that changes no row, nothing else happens. Must never: let a
//! name or a value of a plugin reach SQL unchecked.

pub mod abandon;
pub mod bind;
pub mod check;
pub mod checkpoint;
pub mod components;
pub mod control;
pub mod datum;
pub mod dead_letter;
pub mod fold;
pub mod folders;
pub mod lookup;
pub mod schema;
pub mod write;
