//! Plugin files: folder, digest, encoding, compiled cache, and what a plugin says of itself.
//!
//! Promises: a bad file in the folder never stops a good one. Must never: run code that this host did not
//! compile itself.
//!
//! ```text
//! registry ── the folder and the configured files → plugins, and refused files with the reason
//!   ├ watch ── which files have changed, and stand still again
//!   ├ file ── bytes, digest, what kind of file it is, core module → component
//!   │   └ scan ── bounds on what a file may hold, before anything recurses into it
//!   ├ apart ── loading in a process of its own, which a file may crash, hang or starve
//!   ├ cache ── compiled code, kept between starts
//!   └ manifest ── what the plugin says of itself, checked
//! ```

pub mod apart;
pub mod cache;
pub mod error;
pub mod file;
pub mod manifest;
pub mod registry;
pub mod scan;
pub mod watch;

pub use error::Error;
pub use registry::{
    Change, Declared, Folder, Loaded, Loader, Options, Plugin, Refused, Shelf, load_all,
};
