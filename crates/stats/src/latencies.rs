//! A distribution of latencies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tier0_units::Nanos;

/// How many requests took how long: counts by latency in nanoseconds, which is the upper end of a bucket and at most 1 %
/// above what was measured. Buckets of all recorders are the same, so distributions can be added and subtracted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u64, u64)>", into = "Vec<(u64, u64)>")]
pub struct Latencies(BTreeMap<u64, u64>);

impl Latencies {
    /// How many there are.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Latencies) {
        for (latency, count) in &other.0 {
            *self.0.entry(*latency).or_default() += count;
        }
    }

    /// Those that came since `earlier`, which is an older state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Latencies) -> Latencies {
        let before = |latency| earlier.0.get(latency).copied().unwrap_or(0);
        let counts = self.0.iter().map(|(latency, count)| (*latency, count.saturating_sub(before(latency))));
        Latencies(counts.filter(|(_, count)| *count > 0).collect())
    }

    /// The latency that a share of the requests (0 to 1) did not exceed; none where there were no requests.
    pub fn quantile(&self, share: f64) -> Option<Nanos> {
        let rank = (share.clamp(0.0, 1.0) * self.count() as f64).ceil().max(1.0) as u64;
        let mut seen = 0;
        let reaches = |(latency, count): (&u64, &u64)| {
            seen += count;
            (seen >= rank).then_some(Nanos(*latency))
        };
        self.0.iter().find_map(reaches)
    }

    /// The longest; none where there were no requests.
    pub fn max(&self) -> Option<Nanos> {
        self.0.keys().next_back().map(|latency| Nanos(*latency))
    }
}

impl From<Vec<(u64, u64)>> for Latencies {
    fn from(counts: Vec<(u64, u64)>) -> Latencies {
        let mut latencies = Latencies::default();
        for (latency, count) in counts {
            *latencies.0.entry(latency).or_default() += count;
        }
        latencies
    }
}

impl From<Latencies> for Vec<(u64, u64)> {
    fn from(latencies: Latencies) -> Vec<(u64, u64)> {
        latencies.0.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_count_from_the_shortest() {
        let latencies = Latencies::from(vec![(10, 50), (20, 49), (1000, 1)]);
        let of = |share| latencies.quantile(share).map(|latency| latency.0);
        assert_eq!(
            [of(0.0), of(0.5), of(0.51), of(0.99), of(0.991), of(1.0)],
            [10, 10, 20, 20, 1000, 1000].map(Some)
        );
        assert_eq!((latencies.max(), latencies.count()), (Some(Nanos(1000)), 100));
        assert_eq!((Latencies::default().quantile(0.5), Latencies::default().max()), (None, None));
    }

    #[test]
    fn what_came_since_is_what_was_added() {
        let earlier = Latencies::from(vec![(10, 5), (20, 1)]);
        let added = Latencies::from(vec![(20, 2), (30, 4)]);
        let mut later = earlier.clone();
        later.merge(&added);
        assert_eq!(later.since(&earlier), added);
        assert_eq!(later.since(&later), Latencies::default());
    }
}
