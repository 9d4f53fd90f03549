//! Waits between tries: doubling, with jitter, without end.

use std::time::Duration;

use backon::BackoffBuilder as _;

/// How long to wait after each failed try, from `min` up to `max`. Never ends.
pub fn waits(min: Duration, max: Duration) -> impl Iterator<Item = Duration> + Send {
    backon::ExponentialBuilder::default()
        .with_min_delay(min)
        .with_max_delay(max)
        .with_jitter()
        .without_max_times()
        .build()
        .chain(std::iter::repeat(max))
}
