//! Ctrl-C and SIGTERM as a flag, so that a long command can clear up before it ends.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use anyhow::{Context, Result};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    flag,
};

/// Whether somebody asked us to end.
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on the first signal sets the flag; a second one ends the process at once, as it would have before.
    pub fn listen() -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order counts: the second handler sees the flag as it was before this signal.
            flag::register_conditional_shutdown(signal, 130, Arc::clone(&asked))
                .context("cannot listen for signals")?;
            flag::register(signal, Arc::clone(&asked)).context("cannot listen for signals")?;
        }
        Ok(Self { asked })
    }

    /// For those who look by themselves.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// Whether a signal has come.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}
