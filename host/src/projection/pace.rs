//! How many events the next batch may have: more while batches are quick, fewer when they are slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The first batch of a projection, and the fewest to shrink to.
const EVENTS_START: usize = 500;
const EVENTS_MIN: usize = 50;

/// A batch that took less may grow, one that took more shrinks.
const QUICK: Duration = Duration::from_millis(150);
const SLOW: Duration = Duration::from_millis(1_500);

/// Shared between the stages of one projection.
#[derive(Debug, Clone)]
pub struct Pace {
    events: Arc<AtomicUsize>,
    events_max: usize,
}

impl Pace {
    /// Begins small.
    #[must_use]
    pub fn new(events_max: usize) -> Self {
        let events_max = events_max.max(1);
        Self {
            events: Arc::new(AtomicUsize::new(EVENTS_START.min(events_max))),
            events_max,
        }
    }

    /// Events of the next batch.
    #[must_use]
    pub fn events(&self) -> usize {
        self.events.load(Ordering::Relaxed)
    }

    /// A batch of so many events took this long in its slowest stage.
    pub fn took(&self, events: usize, time: Duration) {
        let now = self.events();
        if time > SLOW {
            self.events.store(
                (now / 2).max(EVENTS_MIN.min(self.events_max)),
                Ordering::Relaxed,
            );
        } else if time < QUICK && events >= now {
            self.events
                .store((now * 2).min(self.events_max), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_quick_batches_grow_and_slow_ones_shrink_within_the_bounds() {
        let pace = Pace::new(1_500);
        pace.took(499, Duration::ZERO);
        assert_eq!(pace.events(), 500, "a batch that was not full says nothing");
        pace.took(500, Duration::ZERO);
        pace.took(1_000, Duration::ZERO);
        assert_eq!(pace.events(), 1_500);
        for _ in 0..10 {
            pace.took(1, Duration::from_secs(2));
        }
        assert_eq!(pace.events(), 50);
        assert_eq!(Pace::new(7).events(), 7);
    }
}
