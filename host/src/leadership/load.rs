//! How much this replica leads already, so that it lets others go first.
//!
//! With one election for each projection, a replica that holds locks, or tries others at this moment, looks first, waits
//! a moment and only then tries to take another that is free: one that holds fewer has it by then. The wait is bounded,
//! so a take-over never waits for a replica that is not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// More than the longest pause between two tries of a replica that does not hesitate.
const PER_LOCK: f64 = 1.25;

/// Beyond this many locks a replica waits no longer.
const LOCKS_COUNTED_MAX: u32 = 2;

/// Shared by the elections of one replica.
#[derive(Debug, Clone, Default)]
pub struct Load(Arc<AtomicU32>);

/// A lock that is held or tried; counts until this is dropped.
#[derive(Debug)]
pub(super) struct Share(Load);

impl Load {
    /// One lock more, and how long to let others go first before trying it.
    pub(super) fn add(&self, retry_interval: Duration) -> (Share, Duration) {
        let others = self.0.fetch_add(1, Ordering::SeqCst).min(LOCKS_COUNTED_MAX);
        let hesitation = retry_interval.mul_f64(PER_LOCK * f64::from(others));
        (Share(self.clone()), hesitation)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_hesitates_longer_the_more_it_holds_but_never_for_long() {
        let load = Load::default();
        let add = |ms| {
            let (share, hesitation) = load.add(Duration::from_millis(200));
            assert_eq!(hesitation, Duration::from_millis(ms));
            share
        };
        let (first, second) = (add(0), add(250));
        let third = add(500);
        add(500);
        drop((first, second));
        let fourth = add(250);
        drop((third, fourth));
        add(0);
    }
}
