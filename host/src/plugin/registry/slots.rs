//! How many processes load files at the same time: as many as there are processors, whoever asks.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

/// Places for processes.
#[derive(Debug)]
pub(super) struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Slot<'a>(&'a Slots);

impl Default for Slots {
    fn default() -> Self {
        Self {
            free: Mutex::new(thread::available_parallelism().map_or(1, usize::from)),
            freed: Condvar::new(),
        }
    }
}

impl Slots {
    /// Waits for a place. Each process has a bound on its time, so this ends.
    pub(super) fn take(&self) -> Slot<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self
            .freed
            .wait_while(free, |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Slot(self)
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        let slots = self.0;
        *slots.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        slots.freed.notify_one();
    }
}
