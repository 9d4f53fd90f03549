//! Numbers that look random and are the same on every machine: SplitMix64. A test that fails prints its seed.

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
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below the bound; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }

    /// True this often in a hundred.
    pub fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }

    /// One of several; there must be one.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// A UUID of the random kind, lower-case.
    pub fn uuid(&mut self) -> String {
        let high = (self.number() & 0xFFFF_FFFF_FFFF_0FFF) | 0x4000;
        let low = (self.number() & 0x3FFF_FFFF_FFFF_FFFF) | 0x8000_0000_0000_0000;
        let (a, b, c) = (high >> 32, (high >> 16) & 0xFFFF, high & 0xFFFF);
        let (d, e) = (low >> 48, low & 0xFFFF_FFFF_FFFF);
        format!("{a:08x}-{b:04x}-{c:04x}-{d:04x}-{e:012x}")
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
        assert_eq!(random.below(0), 0);
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
}
