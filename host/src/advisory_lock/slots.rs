//! At most N at once, over all hosts: N locks under one class, each held by a session of its own.
//!
//! Promises: one session holds at most one slot, since the server gives the same slot to the same session
//! again and again; a process never asks for a slot that it holds already; after N was lowered, those that
//! still run under higher slots are counted too. Must never: share the space of single keys.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::error::Error;
use super::key::Key;
use super::session::{Attempt, Leases, Session, SessionLock};
use crate::database::session::{Database, bounded};

/// Pause between two rounds of tries, give or take a fifth.
const RETRY_INTERVAL: Duration = Duration::from_millis(250);

/// Most slots of one name: each costs an entry in the server's lock table.
pub const SLOTS_MAX: u32 = 1_024;

/// The slots of one name, and which of them this process holds. Clones share the bookkeeping.
#[derive(Debug, Clone)]
pub struct Slots {
    namespace: String,
    name: String,
    limit: u32,
    ours: Arc<Mutex<BTreeSet<i32>>>,
}

/// A held slot.
#[derive(Debug)]
pub struct Slot {
    lock: SessionLock,
    number: i32,
    /// Gives the number free in this process, however the slot ends.
    _claim: Claim,
}

#[derive(Debug)]
struct Claim {
    number: i32,
    ours: Arc<Mutex<BTreeSet<i32>>>,
}

impl Slots {
    /// At most `limit` holders of this name.
    ///
    /// # Errors
    /// [`Error::Usage`] when the limit is zero or above [`SLOTS_MAX`].
    pub fn new(
        namespace: impl Into<String>,
        name: impl Into<String>,
        limit: u32,
    ) -> Result<Self, Error> {
        if limit == 0 || limit > SLOTS_MAX {
            return Err(Error::Usage(format!(
                "the number of slots must be from 1 to {SLOTS_MAX}, not {limit}"
            )));
        }
        Ok(Self {
            namespace: namespace.into(),
            name: name.into(),
            limit,
            ours: Arc::default(),
        })
    }

    /// Takes a free slot; tries for at most `wait`.
    ///
    /// # Errors
    /// [`Error::Held`] when all are taken, also by holders above the limit.
    pub async fn acquire(
        &self,
        database: &Database,
        wait: Duration,
        leases: Leases,
    ) -> Result<Slot, Error> {
        let started = Instant::now();
        let mut session = Session::open(database, leases).await?;
        loop {
            let running;
            (session, running) = match self.round(session).await? {
                Round::Won(slot) => return Ok(slot),
                Round::Full(session, running) => (session, running),
            };
            let left = wait.saturating_sub(started.elapsed());
            if left.is_zero() {
                let over = running.saturating_sub(self.limit);
                let note = match over {
                    0 => String::new(),
                    over => format!(", {over} above the limit"),
                };
                return Err(Error::Held {
                    key: format!("{} ({} slots)", self.name, self.limit),
                    holder: format!("{running} others{note}"),
                    waited: wait,
                });
            }
            let pause = RETRY_INTERVAL.mul_f64(rand::random_range(0.8..1.2));
            tokio::time::sleep(pause.min(left)).await;
        }
    }

    /// One try of each slot, from a random one on, so that many processes do not crowd at the first.
    async fn round(&self, mut session: Session) -> Result<Round, Error> {
        let limit = i32::try_from(self.limit).unwrap_or(i32::MAX);
        let first = rand::random_range(0..limit);
        for step in 0..limit {
            let number = (first + step) % limit;
            let Some(claim) = self.claim(number) else {
                continue;
            };
            let key = Key::slot(&self.namespace, &self.name, number);
            session = match session.try_lock(key).await? {
                Attempt::Denied(session) => session,
                Attempt::Won(mut lock) => {
                    let (running, in_order) = self.running(&mut lock).await?;
                    if in_order {
                        return Ok(Round::Won(Slot {
                            lock,
                            number,
                            _claim: claim,
                        }));
                    }
                    // Higher slots of an older, larger limit still run.
                    return Ok(Round::Full(lock.unlock().await?, running - 1));
                }
            };
        }
        let (connection, database, bound) = session.parts();
        let call = self.count(connection);
        let (running, _) = bounded(database.name, bound, call).await?;
        Ok(Round::Full(session, running))
    }

    /// How many slots are held, this one too, and whether it may stay. Beside slots above the limit it may
    /// not when that makes too many; two that come at the same moment may both step back then.
    async fn running(&self, lock: &mut SessionLock) -> Result<(u32, bool), Error> {
        let (connection, database, bound) = lock.parts();
        let (running, held) = bounded(database.name, bound, self.count(connection)).await?;
        let limit = i32::try_from(self.limit).unwrap_or(i32::MAX);
        let above = held.iter().any(|slot| *slot >= limit);
        Ok((running, !above || running <= self.limit))
    }

    async fn count(
        &self,
        connection: &mut sqlx::PgConnection,
    ) -> Result<(u32, Vec<i32>), sqlx::Error> {
        let class = Key::slot(&self.namespace, &self.name, 0).tag().classid;
        let held: Vec<i32> = sqlx::query_scalar(include_str!("slots/held.sql"))
            .bind(class)
            .fetch_all(connection)
            .await?;
        Ok((u32::try_from(held.len()).unwrap_or(u32::MAX), held))
    }

    fn claim(&self, number: i32) -> Option<Claim> {
        let mut ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        ours.insert(number).then(|| Claim {
            number,
            ours: Arc::clone(&self.ours),
        })
    }
}

impl Slot {
    /// Which one.
    #[must_use]
    pub const fn number(&self) -> i32 {
        self.number
    }

    /// The lock behind it.
    pub const fn lock(&mut self) -> &mut SessionLock {
        &mut self.lock
    }

    /// Gives the slot back.
    ///
    /// # Errors
    /// As for [`SessionLock::release`].
    pub async fn release(self) -> Result<(), Error> {
        self.lock.release().await
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner);
        ours.remove(&self.number);
    }
}

enum Round {
    Won(Slot),
    Full(Session, u32),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_asked_for_once_in_a_process_until_it_is_given_back() {
        let slots = Slots::new("", "import", 2).expect("two is fine");
        let claim = slots.claim(0).expect("nobody has it");
        assert!(slots.clone().claim(0).is_none(), "clones share the book");
        assert!(slots.claim(1).is_some());
        drop(claim);
        assert!(slots.claim(0).is_some());
    }

    #[test]
    fn the_number_of_slots_is_bounded() {
        for refused in [0, SLOTS_MAX + 1] {
            assert!(matches!(
                Slots::new("", "import", refused),
                Err(Error::Usage(_))
            ));
        }
    }
}
