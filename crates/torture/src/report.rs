//! What a run found.

use serde::Serialize;

/// The whole run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What was done, in order.
    pub campaigns: Vec<Campaign>,
    /// What was left out, and why.
    pub skipped: Vec<String>,
}

/// One array under one load.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Campaign {
    /// Load, array and fault: `blocks raid5 x4 durable`.
    pub name: String,
    /// `SIGKILL`s.
    pub kills: u32,
    /// Those of them while the server started.
    pub kills_while_starting: u32,
    /// Milliseconds from each start after a kill until the server listened.
    pub recovery_ms: Vec<f64>,
    /// Requests that changed something and were acknowledged: writes, zeroings and discards, or commits.
    pub acknowledged: u64,
    /// Reads under load whose data was right.
    pub reads_judged: u64,
    /// Whole volumes or whole databases that were checked after a restart.
    pub checks: u64,
    /// Checks of another program: fio's verification, `pg_amcheck`.
    pub second_opinions: u64,
    /// Reads that the flash cache has answered from each start until everything was checked: warm ones, for the most part.
    pub reads_from_flash: u64,
    /// What went wrong: acknowledged data lost, wrong data, a hang, a start that failed. The campaign ended with it.
    pub failure: Option<String>,
}

impl Report {
    /// Whether nothing was lost and nothing failed.
    pub fn is_clean(&self) -> bool {
        self.campaigns.iter().all(|campaign| campaign.failure.is_none())
    }

    /// `SIGKILL`s of all campaigns.
    pub fn kills(&self) -> u32 {
        self.campaigns.iter().map(|campaign| campaign.kills).sum()
    }
}

/// The distribution of some times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distribution {
    /// How many.
    pub count: usize,
    /// Half are at most this.
    pub p50: f64,
    /// 95 of 100 are at most this.
    pub p95: f64,
    /// The longest.
    pub max: f64,
}

impl Distribution {
    /// Of `times`; nothing where there are none. Nearest-rank percentiles.
    pub fn of(times: impl IntoIterator<Item = f64>) -> Option<Distribution> {
        let mut times: Vec<f64> = times.into_iter().collect();
        times.sort_by(f64::total_cmp);
        let rank = |percent: usize| times.get((times.len() * percent).div_ceil(100).max(1) - 1).copied();
        Some(Distribution { count: times.len(), p50: rank(50)?, p95: rank(95)?, max: *times.last()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_nearest_rank() {
        assert_eq!(Distribution::of([]), None);
        let one = Distribution::of([3.0]).expect("there is one");
        assert_eq!((one.count, one.p50, one.p95, one.max), (1, 3.0, 3.0, 3.0));
        let many = Distribution::of((1..=100).rev().map(f64::from)).expect("there are many");
        assert_eq!((many.count, many.p50, many.p95, many.max), (100, 50.0, 95.0, 100.0));
    }
}
