//! Every interval and bound of the election, with its default.

use std::time::Duration;

use crate::leadership::Error;

/// Times of the election. Those with a name in `[leader]` come from the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How often a follower tries, give or take a fifth.
    pub retry_interval: Duration,
    /// How often a leader proves that its session lives.
    pub heartbeat_interval: Duration,
    /// A leader that heard nothing for this long stops by itself.
    pub local_lease: Duration,
    /// The server ends a silent lock session after this long.
    pub server_lease: Duration,
    /// How often a heartbeat also looks into `pg_locks`.
    pub deep_interval: Duration,
    /// How often a leader looks whether its term still stands.
    pub check_interval: Duration,
    /// A leader without a progress tick for this long resigns.
    pub stall_limit: Duration,
    /// How long running work may take to end.
    pub drain_timeout: Duration,
    /// Longest opening of a session, with its checks.
    pub open_limit: Duration,
    /// Longest unlocking.
    pub release_limit: Duration,
    /// A lock that was won is given back when no term could be claimed for this long.
    pub claim_limit: Duration,
    /// Wait between two claims.
    pub claim_retry: Duration,
    /// A replica that resigned competes again after this long.
    pub cooldown: Duration,
    /// Wait after a refusal.
    pub refusal_retry: Duration,
    /// First wait after an error; doubled up to `backoff_max`.
    pub backoff_initial: Duration,
    /// Longest wait after an error.
    pub backoff_max: Duration,
    /// Spread of tries after a hand-over.
    pub hint_delay_max: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let ms = Duration::from_millis;
        Self {
            retry_interval: ms(250),
            heartbeat_interval: ms(1_000),
            local_lease: ms(4_000),
            server_lease: ms(6_000),
            deep_interval: ms(15_000),
            check_interval: ms(15_000),
            stall_limit: ms(60_000),
            drain_timeout: ms(20_000),
            open_limit: ms(10_000),
            release_limit: ms(4_000),
            claim_limit: ms(12_000),
            claim_retry: ms(200),
            cooldown: ms(5_000),
            refusal_retry: ms(5_000),
            backoff_initial: ms(50),
            backoff_max: ms(1_000),
            hint_delay_max: ms(3),
        }
    }
}

impl Timing {
    /// Checks `heartbeat_interval × 3 ≤ local_lease ≤ server_lease − 1s`, and that nothing is zero.
    ///
    /// # Errors
    /// A sentence that names the options and their values.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Options(text));
        if self.retry_interval.is_zero() || self.heartbeat_interval.is_zero() {
            return refuse(
                "[leader] retry_interval and heartbeat_interval must be above zero".to_owned(),
            );
        }
        if self.heartbeat_interval * 3 > self.local_lease {
            return refuse(format!(
                "[leader] local_lease ({:?}) must be at least three times heartbeat_interval ({:?}), so that one \
                 slow answer is no loss",
                self.local_lease, self.heartbeat_interval
            ));
        }
        if self.local_lease + Duration::from_secs(1) > self.server_lease {
            return refuse(format!(
                "[leader] server_lease ({:?}) must be at least one second longer than local_lease ({:?}), so that \
                 a leader stops before its lock is freed",
                self.server_lease, self.local_lease
            ));
        }
        if self.retry_interval >= self.server_lease {
            return refuse(format!(
                "[leader] retry_interval ({:?}) must be shorter than server_lease ({:?}), or the server ends a \
                 standby's session between two tries",
                self.retry_interval, self.server_lease
            ));
        }
        Ok(())
    }
}
