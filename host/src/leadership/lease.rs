//! The lease: until when a leader may trust that it still is one.
//!
//! Promises: `trusted_until` counts from the *send* time of the last heartbeat that came back, so it ends
//! before the server, whose idle timer starts later, frees the lock. Must never: be renewed after it was
//! revoked. The lease keeps two leaders from working at once in almost every case; the term in the batch
//! transaction makes the rest harmless.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::clock::{Clock, Moment};

/// Cheap to clone and to ask; all clones end together.
#[derive(Debug, Clone)]
pub struct Lease {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Nanoseconds on `clock`.
    trusted_until: AtomicU64,
    revoked: CancellationToken,
    clock: Arc<dyn Clock>,
}

impl Lease {
    /// Whether a batch may start now.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.shared.revoked.is_cancelled() && self.shared.clock.now() < self.trusted_until()
    }

    /// Time left; zero once it is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.shared.revoked.is_cancelled() {
            return Duration::ZERO;
        }
        self.trusted_until().since(self.shared.clock.now())
    }

    /// Resolves when the leadership ends for good. A lease that ran out resolves it too.
    pub async fn ended(&self) {
        self.shared.revoked.cancelled().await;
    }

    /// The same as [`Lease::ended`] for those who need a token.
    #[must_use]
    pub fn token(&self) -> CancellationToken {
        self.shared.revoked.clone()
    }

    /// A lease that its maker renews and revokes. Public so that projections can be tested without an election.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, trusted_until: Moment) -> (Self, Keeper) {
        let shared = Arc::new(Shared {
            trusted_until: AtomicU64::new(nanos(trusted_until)),
            revoked: CancellationToken::new(),
            clock,
        });
        (
            Self {
                shared: Arc::clone(&shared),
            },
            Keeper { shared },
        )
    }

    fn trusted_until(&self) -> Moment {
        Moment(Duration::from_nanos(
            self.shared.trusted_until.load(Ordering::Acquire),
        ))
    }
}

/// The one who may renew a lease. Dropping it revokes the lease, so a panic of the election ends the work too.
#[derive(Debug)]
pub struct Keeper {
    shared: Arc<Shared>,
}

impl Keeper {
    /// Moves the end forward; never back.
    pub fn renew(&self, trusted_until: Moment) {
        self.shared
            .trusted_until
            .fetch_max(nanos(trusted_until), Ordering::AcqRel);
    }

    /// Ends the lease for good.
    pub fn revoke(&self) {
        self.shared.revoked.cancel();
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.revoke();
    }
}

/// 584 years fit.
fn nanos(moment: Moment) -> u64 {
    u64::try_from(moment.0.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Debug)]
    struct Manual(Mutex<Moment>);

    impl Manual {
        fn set(&self, seconds: u64) {
            *self.0.lock().expect("no test panics while it holds this") =
                Moment(Duration::from_secs(seconds));
        }
    }

    impl Clock for Manual {
        fn now(&self) -> Moment {
            *self.0.lock().expect("no test panics while it holds this")
        }
    }

    fn at(seconds: u64) -> Moment {
        Moment(Duration::from_secs(seconds))
    }

    #[test]
    fn a_lease_is_valid_strictly_before_its_end_and_renewing_moves_the_end() {
        let clock = Arc::new(Manual(Mutex::new(at(10))));
        let (lease, keeper) = Lease::new(clock.clone(), at(14));
        assert!(lease.is_valid());
        assert_eq!(lease.remaining(), Duration::from_secs(4));
        clock.set(14);
        assert!(!lease.is_valid());
        keeper.renew(at(18));
        assert!(lease.is_valid());
        keeper.renew(at(12));
        assert!(lease.is_valid(), "an older reply never shortens it");
        clock.set(3_600);
        assert!(!lease.is_valid(), "a jump of the clock ends it");
    }

    #[test]
    fn a_revoked_lease_stays_over_and_a_lost_keeper_revokes() {
        let clock = Arc::new(Manual(Mutex::new(at(1))));
        let (lease, keeper) = Lease::new(clock.clone(), at(100));
        keeper.revoke();
        keeper.renew(at(200));
        assert!(!lease.is_valid());
        assert_eq!(lease.remaining(), Duration::ZERO);

        let (lease, keeper) = Lease::new(clock, at(100));
        drop(keeper);
        assert!(!lease.is_valid());
        assert!(lease.token().is_cancelled());
    }
}
