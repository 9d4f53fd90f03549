//! What the sample draws beside plain numbers. The numbers are the test kit's, the same on every machine and with
//! every version of every library.

use std::ops::{Deref, DerefMut};

use jiff::SignedDuration;
use projector_testkit::random::Random as Numbers;

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Random(Numbers);

impl Deref for Random {
    type Target = Numbers;

    fn deref(&self) -> &Numbers {
        &self.0
    }
}

impl DerefMut for Random {
    fn deref_mut(&mut self) -> &mut Numbers {
        &mut self.0
    }
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self(Numbers::new(seed))
    }

    /// A number between two, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True this often in a thousand.
    pub fn in_a_thousand(&mut self, often: u64) -> bool {
        self.below(1_000) < often
    }

    /// One of several, early ones more often.
    pub fn pick_early<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let bound = self.below(of.len() as u64) + 1;
        &of[self.below(bound) as usize]
    }

    /// A time span between two numbers of minutes, to the microsecond.
    pub fn minutes(&mut self, low: u64, high: u64) -> SignedDuration {
        SignedDuration::from_micros(self.between(low * 60_000_000, high * 60_000_000) as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        let mut random = Random::new(1_234_567);
        // The values of the algorithm's reference implementation.
        assert_eq!(
            [random.number(), random.number()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn bounds_hold() {
        let mut random = Random::new(2);
        assert_eq!(random.below(0), 0);
        assert!(
            (0..1_000)
                .map(|_| random.between(3, 5))
                .all(|number| (3..=5).contains(&number))
        );
        let hits = (0..10_000).filter(|_| random.in_a_thousand(250)).count();
        assert!((2_300..2_700).contains(&hits), "{hits}");
    }
}
