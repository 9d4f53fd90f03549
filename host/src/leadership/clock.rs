//! The clock that leases are measured with: it never goes back and does not stop while the machine sleeps.
//!
//! Must never: be compared with another machine's clock, or with wall-clock time.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on the clock of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub Duration);

impl Moment {
    /// Time from `earlier` to here; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0.saturating_add(by))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(by))
    }
}

/// Tells the time for leases.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Moment;

    /// Wall-clock time, only to be shown to people.
    fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::now()
    }
}

/// The machine's clock: `CLOCK_BOOTTIME` on Linux, since `CLOCK_MONOTONIC` stands still during suspend and a
/// leader would wake up trusting a lease that is long over.
#[derive(Debug, Clone, Copy, Default)]
pub struct BootClock;

impl Clock for BootClock {
    fn now(&self) -> Moment {
        #[cfg(target_os = "linux")]
        let id = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        let id = rustix::time::ClockId::Monotonic;
        let time = rustix::time::clock_gettime(id);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
        Moment(Duration::new(seconds, nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_goes_forward() {
        let before = BootClock.now();
        let after = BootClock.now();
        assert!(after >= before);
        assert!(before > Moment(Duration::ZERO));
    }
}
