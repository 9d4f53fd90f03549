//! How many events the next batch may have: more while batches are quick, fewer when they are slow or the guest is near
//! the limit of its memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The first batch of a projection, and the fewest to shrink to.
const EVENTS_START: usize = 1_000;
const EVENTS_MIN: usize = 50;

/// A batch that took less may grow, one that took more shrinks.
const QUICK: Duration = Duration::from_millis(400);
const SLOW: Duration = Duration::from_millis(2_000);

/// Hundredths of its memory that the guest may be expected to need. Beyond, larger batches gain nothing that could be
/// measured, and every projection that catches up holds several of them.
const MEMORY_SHARE_MAX: u64 = 12;

/// Shared between the stages of one projection. Batches double until one fails, and grow slowly from half of that on, as
/// the congestion window of TCP does (RFC 5681).
#[derive(Debug, Clone)]
pub struct Pace {
    events: Arc<AtomicUsize>,
    /// From here on they grow slowly.
    slow_from: Arc<AtomicUsize>,
    events_max: usize,
}

impl Pace {
    /// Begins small.
    #[must_use]
    pub fn new(events_max: usize) -> Self {
        let events_max = events_max.max(1);
        Self {
            events: Arc::new(AtomicUsize::new(EVENTS_START.min(events_max))),
            slow_from: Arc::new(AtomicUsize::new(usize::MAX)),
            events_max,
        }
    }

    /// Events of the next batch.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events.load(Ordering::Relaxed)
    }

    /// A batch of so many events failed, and none of them is to blame: perhaps all of them are too many.
    pub fn failed(&self, events: usize) {
        let fewer = (self.events().min(events) / 2).max(self.events_min());
        self.events.store(fewer, Ordering::Relaxed);
        self.slow_from.store(fewer, Ordering::Relaxed);
    }

    /// A batch of so many events took this long in its slowest stage, and the guest so much of its memory.
    pub fn took(&self, events: usize, time: Duration, memory: Share) {
        let now = self.events();
        let full = events >= now;
        let wanted = if time > SLOW {
            now / 2
        } else if time < QUICK && full {
            let slow_from = self.slow_from.load(Ordering::Relaxed);
            let slowly = now.saturating_add(now / 8);
            now.saturating_mul(2).min(slow_from.max(slowly))
        } else {
            now
        };
        // What the guest needs grows with the batch, as far as is known.
        let fitting = if memory.used == 0 || !full {
            wanted
        } else {
            let allowed = u128::from(memory.max) * u128::from(MEMORY_SHARE_MAX) / 100;
            let fitting = events as u128 * allowed / u128::from(memory.used);
            wanted.min(usize::try_from(fitting).unwrap_or(usize::MAX))
        };
        self.events.store(
            fitting.clamp(self.events_min(), self.events_max),
            Ordering::Relaxed,
        );
    }

    fn events_min(&self) -> usize {
        EVENTS_MIN.min(self.events_max)
    }
}

/// How much of something was used.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    /// So much.
    pub used: u64,
    /// Of so much.
    pub max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const LITTLE: Share = Share { used: 1, max: 100 };

    #[test]
    fn full_quick_batches_grow_and_slow_ones_shrink_within_the_bounds() {
        let pace = Pace::new(1_500);
        pace.took(999, Duration::ZERO, LITTLE);
        assert_eq!(
            pace.events(),
            1_000,
            "a batch that was not full says nothing"
        );
        pace.took(1_000, Duration::ZERO, LITTLE);
        assert_eq!(pace.events(), 1_500);
        for _ in 0..10 {
            pace.took(1, Duration::from_secs(3), LITTLE);
        }
        assert_eq!(pace.events(), 50);
        assert_eq!(Pace::new(7).events(), 7);
    }

    #[test]
    fn batches_that_may_be_too_large_become_smaller() {
        let pace = Pace::new(10_000);
        pace.failed(1_000);
        assert_eq!(pace.events(), 500);
        pace.failed(300);
        assert_eq!(pace.events(), 150);
        pace.failed(2);
        assert_eq!(pace.events(), 50);
        let mut sizes = Vec::new();
        for _ in 0..3 {
            pace.took(pace.events(), Duration::ZERO, LITTLE);
            sizes.push(pace.events());
        }
        assert_eq!(sizes, [56, 63, 70], "slowly, from where it failed before");
        let small = Pace::new(7);
        small.failed(7);
        assert_eq!(small.events(), 7);
    }

    #[test]
    fn a_batch_does_not_grow_beyond_the_memory_of_the_guest() {
        let pace = Pace::new(10_000);
        let used = |used| Share { used, max: 100 };
        pace.took(1_000, Duration::ZERO, used(10));
        assert_eq!(pace.events(), 1_200);
        pace.took(1_200, Duration::ZERO, used(20));
        assert_eq!(pace.events(), 720);
        pace.took(10, Duration::ZERO, used(90));
        assert_eq!(pace.events(), 720, "a batch that was not full says nothing");
    }
}
