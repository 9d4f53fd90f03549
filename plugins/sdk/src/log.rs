//! Lines for the host's log. They carry the projection's name there; the host bounds how many a batch may write.

pub use crate::bindings::projector::projection::log::Level;

/// Writes a line at this level. Outside a component it goes to standard error.
pub fn log(level: Level, message: &str) {
    if cfg!(target_arch = "wasm32") {
        crate::bindings::projector::projection::log::log(level, message);
    } else {
        eprintln!("{level:?}: {message}");
    }
}

/// For the author while writing the plugin.
pub fn debug(message: &str) {
    log(Level::Debug, message);
}

/// A change of state.
pub fn info(message: &str) {
    log(Level::Info, message);
}

/// It went on though something was off.
pub fn warn(message: &str) {
    log(Level::Warn, message);
}

/// Needs a person.
pub fn error(message: &str) {
    log(Level::Error, message);
}
