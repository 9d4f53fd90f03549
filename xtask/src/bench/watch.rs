//! Looking at something again and again, beside what is measured.

use std::{
    sync::mpsc::{self, RecvTimeoutError},
    thread::{self, JoinHandle},
    time::Duration,
};

use anyhow::{Context as _, Result};

/// A thread that looks until it is stopped.
pub struct Watch<T> {
    end: mpsc::Sender<()>,
    watching: JoinHandle<T>,
}

impl<T: Send + 'static> Watch<T> {
    /// Looks at once, and then after each interval; what was seen goes from one look to the next.
    pub fn start(
        interval: Duration,
        mut seen: T,
        mut look: impl FnMut(&mut T) + Send + 'static,
    ) -> Self {
        let (end, ended) = mpsc::channel();
        let watching = thread::spawn(move || {
            look(&mut seen);
            while ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                look(&mut seen);
            }
            seen
        });
        Self { end, watching }
    }

    /// Ends it; returns what it saw.
    pub fn stop(self) -> Result<T> {
        drop(self.end);
        let seen = self.watching.join();
        seen.ok().context("what watched beside a measurement died")
    }
}
