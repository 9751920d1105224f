//! The result of a run, as `--json` prints it and the lab reads it.

use serde::{Deserialize, Serialize};

use super::{IntervalRow, SteadyState, Summary};
use crate::spec::LoadSpec;

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The limit on time.
    Time,
    /// The limit on answered requests.
    Ios,
    /// The limit on bytes.
    Bytes,
    /// The means were known as precisely as asked.
    Precision,
    /// The caller, for instance by Ctrl-C.
    Stopped,
    /// The target answered ten million requests without any simulated time passing: it has no drive that
    /// takes time.
    Standstill,
    /// An open loop fell so far behind that its waiting requests no longer fitted into memory.
    Overload,
    /// Too many requests failed.
    Errors,
    /// Data was not what it must be.
    Mismatch,
}

/// Requests that failed. They count in no other figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorReport {
    /// How many reads failed, the warm-up included.
    pub reads: u64,
    /// How many writes failed, the warm-up included.
    pub writes: u64,
    /// The first failure in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// Its name.
    pub name: String,
    /// All its requests.
    pub all: Summary,
    /// Its reads, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Summary>,
    /// Its writes, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Summary>,
}

/// Half the width of the 95 % confidence interval of a mean latency, in percent of it. Absent where the run
/// was too short to tell (see [`super::BatchMeans`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PrecisionReport {
    /// Of the reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_percent: Option<f64>,
    /// Of the writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_percent: Option<f64>,
}

/// How the wait for a steady state went (see [`super::SteadyCriterion`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyReport {
    /// Whether it was reached before the measurement began.
    pub reached: bool,
    /// Seconds waited for it, after the warm-up.
    pub waited_s: f64,
    /// The last verdict, where a window was ever full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<SteadyState>,
}

/// How the open loops of a load kept up with their rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateReport {
    /// The rate that was asked for, of all open loops together.
    pub asked_iops: f64,
    /// Their requests that were answered in a second of the measurement.
    pub answered_iops: f64,
    /// Their requests that waited or were under way when the measurement ended.
    pub waiting: u64,
    /// Whether the target fell behind: more waited at the end than at the beginning, by more than the queue of a target that
    /// keeps up grows and shrinks.
    pub is_behind: bool,
}

/// A queue that grows by so few requests may shrink again,
const WAITING_RISE_MIN: f64 = 32.0;
/// and so may one that grows by less than this share of what was asked for.
const BEHIND_SHARE: f64 = 0.02;

impl RateReport {
    /// What `answered` requests of `seconds` come to, with so many waiting at the beginning and at the end.
    pub(crate) fn new(
        asked_iops: f64,
        answered: u64,
        seconds: f64,
        [before, waiting]: [u64; 2],
    ) -> RateReport {
        let answered_iops = if seconds > 0.0 { answered as f64 / seconds } else { 0.0 };
        let rise = waiting.saturating_sub(before) as f64;
        let is_behind = rise > WAITING_RISE_MIN && rise > asked_iops * seconds * BEHIND_SHARE;
        RateReport { asked_iops, answered_iops, waiting, is_behind }
    }
}

/// What verification saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Sectors read and compared.
    pub sectors_checked: u64,
    /// Blocks whose expected version was known from this run, of those compared by the final sweep.
    pub blocks_swept: u64,
    /// Sectors that were wrong.
    pub sectors_wrong: u64,
    /// The first wrong one in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<String>,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// What was asked for.
    pub load: LoadSpec,
    /// The size of the target in bytes.
    pub target_bytes: u64,
    /// Seconds before the measurement, waiting for a steady state included.
    pub warm_up_s: f64,
    /// Measured seconds.
    pub measured_s: f64,
    /// What ended the measurement.
    pub ended_by: EndedBy,
    /// All requests.
    pub all: Summary,
    /// The reads, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Summary>,
    /// The writes, where there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Summary>,
    /// Each stream.
    pub streams: Vec<StreamReport>,
    /// Requests on their way, or waiting to be sent, when the measurement ended; they count in no other figure.
    pub unanswered: u64,
    /// How its open loops kept up with their rate; nothing of a load without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<RateReport>,
    /// Requests that failed.
    pub errors: ErrorReport,
    /// How precisely the mean latencies are known.
    pub precision: PrecisionReport,
    /// The wait for a steady state, where one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadyReport>,
    /// Seconds at the beginning of the measurement that MSER-5 would leave out; more than a tenth of the
    /// measurement says that the warm-up was too short. Absent for fewer than 20 intervals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transient_s: Option<f64>,
    /// What verification saw, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify: Option<VerifyReport>,
    /// The run, interval by interval.
    pub intervals: Vec<IntervalRow>,
}

impl LoadReport {
    /// Whether the run did what was asked: it ended by one of its limits, and nothing failed or was wrong.
    pub fn is_clean(&self) -> bool {
        let ended =
            matches!(self.ended_by, EndedBy::Time | EndedBy::Ios | EndedBy::Bytes | EndedBy::Precision);
        let verified = self.verify.as_ref().is_none_or(|verify| verify.sectors_wrong == 0);
        ended && verified && self.errors.reads == 0 && self.errors.writes == 0
    }
}
