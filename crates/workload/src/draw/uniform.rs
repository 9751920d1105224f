//! Whole numbers below a bound, and events of a given share, both without bias.

use tier0_world::Random;

/// A number below `bound` (at least 1), every one exactly equally likely.
///
/// Lemire, "Fast random integer generation in an interval", ACM TOMACS 29(1), 2019: multiply, keep the high
/// half, and reject the few products whose low half falls into the uneven remainder. The division is needed
/// only where the low half is below `bound`, once in 2^64 / bound draws.
#[inline]
pub fn below(random: &mut Random, bound: u64) -> u64 {
    debug_assert!(bound > 0, "there is no number below zero");
    let mut product = u128::from(random.bits()) * u128::from(bound);
    if (product as u64) < bound {
        let uneven = bound.wrapping_neg() % bound;
        while (product as u64) < uneven {
            product = u128::from(random.bits()) * u128::from(bound);
        }
    }
    (product >> 64) as u64
}

/// A share of all draws. Shares of 0 and 1 hold exactly and cost no draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Never.
    Never,
    /// Always.
    Always,
    /// When 64 random bits are below this threshold.
    Below(u64),
}

impl Share {
    /// `percent` of the draws, 0 to 100, exact to 2^-53.
    pub fn percent(percent: f64) -> Share {
        if percent <= 0.0 {
            Share::Never
        } else if percent >= 100.0 {
            Share::Always
        } else {
            // 2^64 as a real number; the product is below it since percent is below 100.
            Share::Below((percent / 100.0 * 18_446_744_073_709_551_616.0) as u64)
        }
    }

    /// The share, 0 to 1.
    pub(super) fn fraction(self) -> f64 {
        match self {
            Share::Never => 0.0,
            Share::Always => 1.0,
            Share::Below(threshold) => threshold as f64 / 18_446_744_073_709_551_616.0,
        }
    }

    /// Whether this draw falls into the share.
    #[inline]
    pub fn draw(self, random: &mut Random) -> bool {
        match self {
            Share::Never => false,
            Share::Always => true,
            Share::Below(threshold) => random.bits() < threshold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn below_is_even() {
        for bound in [1u64, 2, 3, 7, 10] {
            let mut random = Random::new(1, bound);
            let mut counts = vec![0u64; bound as usize];
            let draws = 100_000;
            (0..draws).for_each(|_| counts[below(&mut random, bound) as usize] += 1);
            let expected = draws as f64 / bound as f64;
            let chi_squared: f64 = counts.iter().map(|&c| (c as f64 - expected).powi(2) / expected).sum();
            // The 99.99th percentile of chi-squared with 9 degrees of freedom is 33.7; fewer degrees have less.
            assert!(chi_squared < 33.7, "bound {bound}: {chi_squared} of {counts:?}");
        }
    }

    #[test]
    fn below_reaches_both_ends_of_a_huge_bound() {
        // A bound of 3/4 of 2^64 rejects a quarter of the draws; without rejection, multiples of 4/3 would
        // clump.
        let bound = 3u64 << 62;
        let mut random = Random::new(2, 0);
        let mut thirds = [0u32; 3];
        for _ in 0..30_000 {
            let n = below(&mut random, bound);
            assert!(n < bound);
            thirds[(n >> 62) as usize] += 1;
        }
        // Five standard deviations of a binomial(30,000, 1/3) are 408.
        assert!(thirds.iter().all(|&c| c.abs_diff(10_000) < 408), "{thirds:?}");
    }

    #[test]
    fn shares_hold() {
        let mut random = Random::new(3, 0);
        let hits = (0..100_000).filter(|_| Share::percent(70.0).draw(&mut random)).count();
        // Five standard deviations of a binomial(100,000, 0.7) are 725.
        assert!(hits.abs_diff(70_000) < 725, "{hits}");
        assert_eq!((Share::percent(0.0), Share::percent(100.0)), (Share::Never, Share::Always));
    }
}
