//! Seeded random numbers with eight bytes of state, so that each operation can have its own.

/// `SplitMix64` (Steele, Lea and Flood, OOPSLA 2014): passes `BigCrush`, and is fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random(u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[must_use]
fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Random {
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Numbers for one part of a run, which depend only on the seed and the part.
    #[must_use]
    pub fn of(seed: u64, connection: u64, number: u64) -> Self {
        let connection = mixed(connection.wrapping_add(1).wrapping_mul(GOLDEN) ^ mixed(seed));
        Self(mixed(connection ^ number.wrapping_mul(GOLDEN).rotate_left(32)))
    }

    /// Separate numbers for a part of an operation, independent of the order in which parts draw.
    #[must_use]
    pub fn apart(&self, part: u64) -> Self {
        Self(mixed(self.0 ^ (part + 1).wrapping_mul(GOLDEN)))
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mixed(self.0)
    }

    /// Uniform in `[0, 1)`, with 53 bits.
    pub fn unit(&mut self) -> f64 {
        #[allow(clippy::cast_precision_loss)] // 53 bits fit
        let bits = (self.next_u64() >> 11) as f64;
        bits * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in `[0, bound)`; 0 if the bound is 0. By multiplication (Lemire 2019), without
    /// rejection: the bias is below 2⁻⁶⁴ × bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers_of_splitmix64() {
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(random.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn operations_of_different_connections_differ() {
        let first: Vec<u64> = (0..100).map(|number| Random::of(7, 0, number).next_u64()).collect();
        let second: Vec<u64> = (0..100).map(|number| Random::of(7, 1, number).next_u64()).collect();
        assert!(first.iter().all(|number| !second.contains(number)));
    }

    #[test]
    fn draws_are_even() {
        let mut random = Random::new(3);
        let mut counts = [0_u32; 10];
        for _ in 0..100_000 {
            counts[random.below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_600..10_400).contains(&count)), "{counts:?}");
        let mean = (0..100_000).map(|_| random.exponential()).sum::<f64>() / 100_000.0;
        assert!((0.99..1.01).contains(&mean), "{mean}");
    }
}
