//! The ceilings of volumes, and how often they have held requests back.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What hosts may ask of a volume in a second, over all connections and cores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Ceilings {
    /// Requests: reads, writes, discards and writes of zeros; a request of more than 128 KiB counts as several. None without a
    /// ceiling.
    #[serde(default)]
    pub iops_max: Option<u32>,
    /// Megabytes (10^6 bytes) read and written. None without a ceiling.
    #[serde(default)]
    pub mbps_max: Option<u32>,
    /// The seconds of which a budget that is not used may be used later, without a limit of its own.
    #[serde(default)]
    pub burst_seconds: u32,
}

impl fmt::Display for Ceilings {
    /// As half a sentence: "5000 IOPS, 200 MB/s, burst 10 s".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let iops = self.iops_max.map(|most| format!("{most} IOPS"));
        let mbps = self.mbps_max.map(|most| format!("{most} MB/s"));
        let burst = (self.burst_seconds > 0).then(|| format!("burst {} s", self.burst_seconds));
        let parts: Vec<String> = [iops, mbps, burst].into_iter().flatten().collect();
        f.write_str(&parts.join(", "))
    }
}

/// What the ceilings of a volume have done since the array started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Throttling {
    /// The volume.
    pub volume: String,
    /// Its ceilings now; none where it has lost them since.
    #[serde(default)]
    pub ceilings: Option<Ceilings>,
    /// Requests that had to wait for their turn.
    pub requests: u64,
    /// How long they waited together, in nanoseconds.
    pub wait_ns: u64,
}

impl Throttling {
    /// What came since `earlier`, which is an older state of the same counters.
    #[must_use]
    pub fn since(&self, earlier: &Throttling) -> Throttling {
        Throttling {
            requests: self.requests.saturating_sub(earlier.requests),
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
            ..self.clone()
        }
    }

    /// How long a request waited in the mean, in milliseconds; none where none did.
    pub fn wait_ms_mean(&self) -> Option<f64> {
        (self.requests > 0).then(|| self.wait_ns as f64 / self.requests as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_are_told_as_far_as_there_are_some() {
        let told =
            |iops_max, mbps_max, burst_seconds| Ceilings { iops_max, mbps_max, burst_seconds }.to_string();
        assert_eq!(told(Some(5000), Some(200), 10), "5000 IOPS, 200 MB/s, burst 10 s");
        assert_eq!(told(None, Some(200), 0), "200 MB/s");
    }
}
