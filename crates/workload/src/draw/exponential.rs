//! Exponentially distributed times: the gaps of a Poisson process, and think times.

use std::f64::consts::LN_2;

use tier0_units::Nanos;
use tier0_world::Random;

use super::power::log2;

/// Exponentially distributed times of one mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exponential {
    /// The mean in nanoseconds times -ln 2.
    minus_mean_ln_2: f64,
}

impl Exponential {
    /// Times with this mean.
    pub fn with_mean(mean: Nanos) -> Exponential {
        Exponential { minus_mean_ln_2: mean.0 as f64 * -LN_2 }
    }

    /// The gaps between events that come `rate` times per second.
    pub fn with_rate(rate: f64) -> Exponential {
        Exponential { minus_mean_ln_2: 1e9 / rate * -LN_2 }
    }

    /// A time in nanoseconds, not rounded, so that sums of many do not drift.
    #[inline]
    pub fn draw_ns(self, random: &mut Random) -> f64 {
        // The inverse of the distribution function. 1 - unit lies in (0, 1], so the logarithm is finite, at
        // least ln 2^-53 = -36.7.
        self.minus_mean_ln_2 * log2(1.0 - random.unit())
    }

    /// A time.
    #[inline]
    pub fn draw(self, random: &mut Random) -> Nanos {
        Nanos((self.draw_ns(random) + 0.5) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_the_mean_and_the_tail_of_its_law() {
        let law = Exponential::with_mean(Nanos::from_millis(10));
        let mut random = Random::new(4, 0);
        let draws: Vec<f64> = (0..200_000).map(|_| law.draw(&mut random).as_millis_f64()).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        // The standard error of the mean is 10 / sqrt(200,000) = 0.022.
        assert!((mean - 10.0).abs() < 0.11, "{mean}");
        let beyond = draws.iter().filter(|&&t| t > 30.0).count() as f64 / draws.len() as f64;
        // P(t > 3 means) = e^-3 = 0.0498, standard error 0.0005.
        assert!((beyond - 0.0498).abs() < 0.0025, "{beyond}");
        assert_eq!(Exponential::with_rate(100.0), law);
    }
}
