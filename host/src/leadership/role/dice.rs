//! Jitter from a seed, so that a simulated run can be repeated.

use std::time::Duration;

/// SplitMix64: small, fast, good enough to spread retries.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// 80 % to 120 % of the time.
    pub fn around(&mut self, time: Duration) -> Duration {
        time.mul_f64(0.8 + 0.4 * self.fraction())
    }

    /// Zero up to the time.
    pub fn below(&mut self, time: Duration) -> Duration {
        time.mul_f64(self.fraction())
    }

    /// In `0..1`.
    #[expect(
        clippy::cast_precision_loss,
        reason = "53 bits fit a double exactly, which is why the rest is shifted out"
    )]
    pub fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
