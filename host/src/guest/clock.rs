//! How long the guest itself has run in one call: processor time of its thread without the host's part.
//!
//! A guest never waits for anything, so on an idle machine this is wall-clock time. On a busy one a plugin is
//! not blamed for time in which it did not run.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::engine::TICK;

/// The stopwatch of one call.
#[derive(Debug)]
pub(super) struct CallClock {
    started: Duration,
    in_host: Duration,
    paused: Option<Duration>,
    timeout: Duration,
}

impl CallClock {
    /// Starts now. The call has to stay on this thread.
    pub(super) fn start(timeout: Duration) -> Self {
        Self {
            started: processor_time(),
            in_host: Duration::ZERO,
            paused: None,
            timeout,
        }
    }

    /// Stands until it is resumed: the guest waits for its batch.
    pub(super) fn pause(&mut self) {
        self.paused = Some(processor_time());
    }

    /// Goes on.
    pub(super) fn resume(&mut self) {
        if let Some(paused) = self.paused.take() {
            self.in_host += processor_time().saturating_sub(paused);
        }
    }

    /// Runs host work that the guest waits for.
    pub(super) fn host<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let began = processor_time();
        let result = work();
        self.in_host += processor_time().saturating_sub(began);
        result
    }

    /// Ticks until the guest's time is over; none when it is.
    pub(super) fn ticks_left(&self) -> Option<u64> {
        let ran = processor_time()
            .saturating_sub(self.started)
            .saturating_sub(self.in_host);
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

/// Processor time that this thread has had.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_the_host_is_not_the_guests() {
        let mut clock = CallClock::start(Duration::from_secs(60));
        clock.host(|| {
            let began = processor_time();
            while processor_time() - began < Duration::from_millis(20) {}
        });
        assert!(clock.in_host >= Duration::from_millis(20));
        clock.pause();
        let began = processor_time();
        while processor_time() - began < Duration::from_millis(20) {}
        clock.resume();
        clock.resume();
        assert!(clock.in_host >= Duration::from_millis(40));
        assert!(clock.ticks_left().is_some_and(|ticks| ticks > 5_999));
        let mut over = CallClock::start(Duration::ZERO);
        assert_eq!(over.ticks_left(), None);
        over.timeout = Duration::from_millis(5_000);
        assert!(
            over.ticks_left()
                .is_some_and(|ticks| (400..=501).contains(&ticks))
        );
    }
}
