//! Randomness of a world: streams of a permuted congruential generator, each named, all from one seed.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A stream of random numbers. Two streams of one seed and different names are independent.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// The stream `name` of `seed`.
    pub fn new(seed: u64, name: u64) -> Random {
        // PCG streams of neighbouring seeds are related; SplitMix64 (Steele et al. 2014) separates them first.
        let mixed = split_mix(seed ^ split_mix(name));
        Random(Pcg64Mcg::seed_from_u64(mixed))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `bound` (at least 1), without modulo bias worth the name: Lemire's multiply-shift, whose
    /// bias is at most bound / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "there is no number below zero");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A real number in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True once in `1 / probability` calls on average.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// An exponentially distributed real number with the given mean.
    #[inline]
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

fn split_mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_by_seed_and_differ_by_name() {
        let draw = |seed, name| Random::new(seed, name).bits();
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn below_is_even_and_exponential_has_its_mean() {
        let mut random = Random::new(7, 0);
        let mut counts = [0u32; 5];
        let mut sum = 0.0;
        for _ in 0..100_000 {
            counts[random.below(5) as usize] += 1;
            sum += random.exponential(3.0);
        }
        // Five standard deviations of a binomial(100,000, 1/5) are 632.
        assert!(counts.iter().all(|&c| c.abs_diff(20_000) < 632), "{counts:?}");
        // The standard error of the mean is 3/316.
        assert!((sum / 1e5 - 3.0).abs() < 0.05, "{}", sum / 1e5);
    }
}
