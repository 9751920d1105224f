//! When a run ends.

use serde::{Deserialize, Serialize};
use tier0_units::{ByteCount, Nanos};

use super::SpecError;

/// The most rows of a report's series: more than three days of seconds.
pub const INTERVALS_MAX: u64 = 300_000;

/// What ends the measured part of a run: the first limit reached. Requests answered in the warm-up do not
/// count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunLimits {
    /// Measured time.
    #[serde(default, with = "super::duration::option", skip_serializing_if = "Option::is_none")]
    pub time: Option<Nanos>,
    /// Answered requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ios: Option<u64>,
    /// Transferred bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteCount>,
    /// The mean latency of reads and of writes is known to within this many percent, with 95 % confidence (by
    /// batch means). Ends a run early; one of the other limits must bound it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision_percent: Option<f64>,
    /// How many requests may fail before the run ends; none where absent.
    #[serde(default)]
    pub errors_max: u64,
}

impl RunLimits {
    const NONE: RunLimits =
        RunLimits { time: None, ios: None, bytes: None, precision_percent: None, errors_max: 0 };

    /// Ends after `time`.
    pub fn time(time: Nanos) -> RunLimits {
        RunLimits { time: Some(time), ..RunLimits::NONE }
    }

    /// Ends after `ios` answered requests.
    pub fn ios(ios: u64) -> RunLimits {
        RunLimits { ios: Some(ios), ..RunLimits::NONE }
    }

    /// Ends after `bytes` were moved.
    pub fn bytes(bytes: ByteCount) -> RunLimits {
        RunLimits { bytes: Some(bytes), ..RunLimits::NONE }
    }

    pub(super) fn validate(&self, interval: Nanos) -> Result<(), SpecError> {
        if self.time.is_none() && self.ios.is_none() && self.bytes.is_none() {
            return Err(SpecError::NoLimit);
        }
        let time = self.time.map(|time| time.0);
        for (field, value) in [("time", time), ("ios", self.ios), ("bytes", self.bytes.map(|bytes| bytes.0))]
        {
            if value == Some(0) {
                return Err(SpecError::ZeroLimit(field));
            }
        }
        if let Some(percent) = self.precision_percent.filter(|percent| !(*percent > 0.0 && *percent <= 100.0))
        {
            let allowed = "more than 0, at most 100";
            return Err(SpecError::Field { field: "precision_percent", value: percent.to_string(), allowed });
        }
        let intervals = time.unwrap_or(interval.0).checked_div(interval.0).unwrap_or(0);
        if (interval.0 > 0) && intervals <= INTERVALS_MAX {
            return Ok(());
        }
        Err(SpecError::Intervals { intervals, max: INTERVALS_MAX })
    }
}

impl Default for RunLimits {
    /// One minute.
    fn default() -> RunLimits {
        RunLimits::time(Nanos::from_secs(60))
    }
}
