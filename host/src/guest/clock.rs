//! How long the guest itself has run in one call: wall-clock time without the time spent in the host.

use std::time::{Duration, Instant};

use super::engine::TICK;

/// The stopwatch of one call.
#[derive(Debug)]
pub(super) struct CallClock {
    started: Instant,
    in_host: Duration,
    timeout: Duration,
}

impl CallClock {
    /// Starts now.
    pub(super) fn start(timeout: Duration) -> Self {
        Self {
            started: Instant::now(),
            in_host: Duration::ZERO,
            timeout,
        }
    }

    /// Runs host work that the guest waits for.
    pub(super) fn host<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let began = Instant::now();
        let result = work();
        self.in_host += began.elapsed();
        result
    }

    /// Ticks until the guest's time is over; none when it is.
    pub(super) fn ticks_left(&self) -> Option<u64> {
        let ran = self.started.elapsed().saturating_sub(self.in_host);
        let left = self
            .timeout
            .checked_sub(ran)
            .filter(|left| !left.is_zero())?;
        let ticks = left.as_nanos().div_ceil(TICK.as_nanos());
        // One more, since the tick that runs now is a partial one.
        Some(
            u64::try_from(ticks)
                .unwrap_or(u64::MAX / 4)
                .saturating_add(1),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_the_host_is_not_the_guests() {
        let mut clock = CallClock::start(Duration::from_secs(60));
        let began = Instant::now();
        clock.host(|| while began.elapsed() < Duration::from_millis(20) {});
        assert!(clock.in_host >= Duration::from_millis(20));
        let mut over = CallClock::start(Duration::ZERO);
        assert_eq!(over.ticks_left(), None);
        over.timeout = Duration::from_millis(5_000);
        assert!(
            over.ticks_left()
                .is_some_and(|ticks| (400..=501).contains(&ticks))
        );
    }
}
