//! Ranks by Zipf's law.

use tier0_world::Random;

use super::power::{exp2, log2};

/// Ranks 0 to n - 1, the rank k with probability in proportion to 1 / (k + 1)^theta.
///
/// Rejection-inversion: Hörmann and Derflinger, "Rejection-inversion to generate variates from monotone
/// discrete distributions", ACM TOMACS 6(3), 1996, algorithm RI. No table: any number of ranks takes the same
/// few bytes, and about one draw in ten is rejected at worst.
#[derive(Clone, Debug, PartialEq)]
pub struct Zipf {
    ranks: u64,
    theta: f64,
    /// 1 - theta, zero where theta is so close to 1 that the harmonic form is the more exact one.
    power: f64,
    /// 1 / power.
    root: f64,
    /// The hat's integral at its left end, where the first rank's own bar begins.
    left: f64,
    /// The hat's integral at its right end, half a step after the last rank.
    right: f64,
    /// Candidates that lie at most this far left of their rank need no test.
    squeeze: f64,
}

/// Below this |1 - theta| the power form loses more digits than taking theta for 1 does.
const HARMONIC_WITHIN: f64 = 1e-6;

impl Zipf {
    /// The law over `ranks` ranks (1 to 2^53) with exponent `theta` above 0.
    pub fn new(ranks: u64, theta: f64) -> Zipf {
        assert!((1..=1 << 53).contains(&ranks), "a zipf law has 1 to 2^53 ranks, not {ranks}");
        assert!(theta > 0.0, "the exponent of a zipf law is above 0, not {theta}");
        let power = if (1.0 - theta).abs() < HARMONIC_WITHIN { 0.0 } else { 1.0 - theta };
        let mut zipf = Zipf { ranks, theta, power, root: 1.0 / power, left: 0.0, right: 0.0, squeeze: 0.0 };
        zipf.left = zipf.integral(1.5) - 1.0;
        zipf.right = zipf.integral(ranks as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// How many ranks there are.
    pub(super) fn ranks(&self) -> u64 {
        self.ranks
    }

    /// The integral of x^-theta, up to a constant: ln x for theta 1, else (x^(1 - theta) - 1) / (1 - theta).
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        if self.power == 0.0 { log } else { libm::expm1(self.power * log) / self.power }
    }

    /// The inverse of [`Zipf::integral`].
    #[inline]
    fn inverse(&self, y: f64) -> f64 {
        if self.power == 0.0 {
            return exp2(y * std::f64::consts::LOG2_E);
        }
        // For theta > 1, rounding may carry the right end's argument to 0 or beyond.
        exp2(log2((self.power * y + 1.0).max(f64::MIN_POSITIVE)) * self.root)
    }

    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.theta * libm::log(x))
    }

    /// A rank.
    #[inline]
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let y = self.right + random.unit() * (self.left - self.right);
            let x = self.inverse(y);
            // Rounding may carry x outside; the cast saturates. (Signed numbers convert in one instruction.)
            let rank = ((x + 0.5) as i64).clamp(1, self.ranks as i64);
            let near = rank as f64 - x <= self.squeeze;
            if near || y >= self.integral(rank as f64 + 0.5) - self.density(rank as f64) {
                return rank as u64 - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chi-squared of the first ranks and the rest against the law, summed exactly.
    fn chi_squared(ranks: u64, theta: f64, draws: u64) -> (f64, usize) {
        let zipf = Zipf::new(ranks, theta);
        let mut random = Random::new(5, ranks);
        let heads = ranks.min(20) as usize;
        let mut counts = vec![0u64; heads + 1];
        for _ in 0..draws {
            let rank = zipf.draw(&mut random);
            assert!(rank < ranks);
            counts[heads.min(rank as usize)] += 1;
        }
        let weight = |k: u64| ((k + 1) as f64).powf(-theta);
        let total: f64 = (0..ranks).map(weight).sum();
        let mut expected: Vec<f64> = (0..heads as u64).map(|k| weight(k) / total * draws as f64).collect();
        expected.push(draws as f64 - expected.iter().sum::<f64>());
        let cells = counts.iter().zip(&expected).filter(|(_, e)| **e > 5.0);
        cells.fold((0.0, 0), |(sum, n), (&c, e)| (sum + (c as f64 - e).powi(2) / e, n + 1))
    }

    #[test]
    fn follows_the_law() {
        for theta in [0.2, 0.5, 0.8, 0.99, 1.0, 1.000_000_001, 1.2, 2.0, 5.0] {
            for ranks in [1, 2, 3, 100, 100_000] {
                let (chi_squared, cells) = chi_squared(ranks, theta, 200_000);
                // The 99.99th percentile of chi-squared with 20 degrees of freedom is 52.4; fewer have less.
                assert!(chi_squared < 52.4, "theta {theta}, {ranks} ranks: {chi_squared} over {cells} cells");
            }
        }
    }

    #[test]
    fn huge_spaces_stay_in_range() {
        for theta in [0.01, 0.99, 1.0, 3.0, 10.0] {
            let zipf = Zipf::new(1 << 53, theta);
            let mut random = Random::new(6, 0);
            assert!((0..10_000).all(|_| zipf.draw(&mut random) < 1 << 53), "theta {theta}");
        }
    }
}
