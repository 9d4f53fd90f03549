//! Plugin files: folder, digest, encoding, compiled cache, and what a plugin says of itself.
//!
//! Promises: a bad file in the folder never stops a good one. Must never: run code that this host did not
//! compile itself.

pub mod manifest;
