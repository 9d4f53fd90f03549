//! Numbers that look random and are the same on every machine and with every version of every library: SplitMix64.

use jiff::SignedDuration;

/// A stream of numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The stream of this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound; 0 if the bound is 0. The slight favour for small numbers does not matter here.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next().checked_rem(bound).unwrap_or(0)
    }

    /// A number between two, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// True this often in a thousand.
    pub fn in_a_thousand(&mut self, often: u64) -> bool {
        self.below(1_000) < often
    }

    /// One of several.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        let index = self.below(of.len() as u64) as usize;
        &of[index]
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

    /// A UUID of the random kind, lower-case.
    pub fn uuid(&mut self) -> String {
        let high = (self.next() & 0xFFFF_FFFF_FFFF_0FFF) | 0x4000;
        let low = (self.next() & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000;
        let (a, b, c) = (high >> 32, (high >> 16) & 0xFFFF, high & 0xFFFF);
        format!(
            "{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}",
            low >> 48,
            low & 0xFFFF_FFFF_FFFF
        )
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
            [random.next(), random.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }

    #[test]
    fn a_uuid_has_its_shape_its_version_and_its_variant() {
        let mut random = Random::new(1);
        for _ in 0..100 {
            let uuid = random.uuid();
            let lengths: Vec<usize> = uuid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{uuid}");
            assert_eq!(&uuid[14..15], "4", "{uuid}");
            assert!("89ab".contains(&uuid[19..20]), "{uuid}");
        }
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
