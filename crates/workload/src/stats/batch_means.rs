//! How precisely a run knows its mean, while it runs: batch means.

/// The most batches; when there are so many, neighbours are joined and every batch covers twice as many values.
const BATCHES_MAX: usize = 64;
/// The fewest batches from which a deviation is estimated. Between joins there are 32 to 63.
const BATCHES_MIN: usize = 32;
/// The values of a batch at first.
const BATCH_START: u64 = 16;

/// A confidence interval of the mean of correlated values in constant memory.
///
/// Successive response times are correlated, so their plain deviation promises too much. Means of long
/// batches are nearly independent (Law and Kelton, "Simulation Modeling and Analysis", §9.5.3). The batches
/// double as the run grows; as long as their lag-1 correlation is significant, they are too short, and no
/// precision is claimed.
#[derive(Clone, Debug, Default)]
pub struct BatchMeans {
    batches: Vec<f64>,
    batch_length: u64,
    sum: f64,
    count: u64,
}

impl BatchMeans {
    /// Nothing yet.
    pub fn new() -> BatchMeans {
        BatchMeans { batches: Vec::with_capacity(BATCHES_MAX), batch_length: BATCH_START, sum: 0.0, count: 0 }
    }

    /// Takes the next value.
    #[inline]
    pub fn push(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
        if self.count == self.batch_length {
            self.close();
        }
    }

    fn close(&mut self) {
        self.batches.push(self.sum / self.count as f64);
        (self.sum, self.count) = (0.0, 0);
        if self.batches.len() == BATCHES_MAX {
            self.batches = self.batches.chunks_exact(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
            self.batch_length *= 2;
        }
    }

    /// Half the width of the 95 % confidence interval of the mean, in percent of the mean; nothing while
    /// there are too few batches, or while they are correlated.
    pub fn half_width_percent(&self) -> Option<f64> {
        if self.batches.len() < BATCHES_MIN {
            return None;
        }
        let n = self.batches.len() as f64;
        let mean = self.batches.iter().sum::<f64>() / n;
        let squares: f64 = self.batches.iter().map(|batch| (batch - mean).powi(2)).sum();
        if squares == 0.0 {
            return Some(0.0);
        }
        let products: f64 = self.batches.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
        // Of independent batches the correlation is normal with deviation 1 / sqrt(n); 1.96 of them is the
        // 97.5th percentile.
        if products / squares > 1.96 / n.sqrt() {
            return None;
        }
        let half_width = student_975(n - 1.0) * (squares / (n - 1.0) / n).sqrt();
        Some(100.0 * half_width / mean)
    }
}

/// The 97.5th percentile of Student's t, to 0.1 % for 31 or more degrees of freedom: t(31) = 2.040, t(62) =
/// 1.999.
fn student_975(degrees: f64) -> f64 {
    1.96 + 2.4 / degrees
}

#[cfg(test)]
mod tests {
    use tier0_world::Random;

    use super::*;

    /// Values around 100 with the given lag-1 correlation.
    fn correlated(correlation: f64, count: usize, seed: u64) -> impl Iterator<Item = f64> {
        let mut random = Random::new(seed, 0);
        let mut state = 0.0;
        (0..count).map(move |_| {
            let noise: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            state = correlation * state + noise;
            100.0 + state
        })
    }

    #[test]
    fn the_interval_covers_the_truth_as_often_as_it_says() {
        for correlation in [0.0, 0.9] {
            let (mut covered, mut runs) = (0, 0);
            for seed in 0..1000 {
                let (mut batches, mut sum) = (BatchMeans::new(), 0.0);
                for value in correlated(correlation, 20_000, seed) {
                    batches.push(value);
                    sum += value;
                }
                let Some(half_width) = batches.half_width_percent() else { continue };
                runs += 1;
                covered += u32::from((sum / 20_000.0 - 100.0).abs() <= half_width);
            }
            // 95 % within five standard deviations of a binomial: 0.95 - 5 * sqrt(0.95 * 0.05 / 900) = 0.914.
            let share = f64::from(covered) / f64::from(runs);
            assert!(runs > 900 && share > 0.914 && share < 0.986, "{share} of {runs} at {correlation}");
        }
    }

    #[test]
    fn says_nothing_too_early_or_of_a_drift() {
        let mut batches = BatchMeans::new();
        (0..32 * 16 - 1).for_each(|_| batches.push(1.0));
        assert_eq!(batches.half_width_percent(), None, "31 batches are too few");
        batches.push(1.0);
        assert_eq!(batches.half_width_percent(), Some(0.0), "a constant is known exactly");
        let mut drift = BatchMeans::new();
        (0..100_000).for_each(|n| drift.push(f64::from(n)));
        assert_eq!(drift.half_width_percent(), None, "a drifting mean has no precision");
    }
}
