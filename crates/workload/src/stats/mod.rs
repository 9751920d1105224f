//! What a run measures, whether it is steady and precise, and how it is reported.
//!
//! A [`Tally`] takes one latency in a few nanoseconds and can be merged with those of other shards; a
//! [`Series`] keeps one row per interval; [`LoadReport`] is what remains, for JSON, for the table and for the
//! lab.

mod batch_means;
mod progress;
mod report;
mod series;
mod steady;
mod summary;
mod table;
mod tally;
mod transient;

pub use batch_means::BatchMeans;
pub use progress::{Phase, Progress};
pub use report::{
    EndedBy, ErrorReport, LoadReport, PrecisionReport, RateReport, SteadyReport, StreamReport, VerifyReport,
};
pub use series::{IntervalKind, IntervalRow, Series};
pub use steady::{SteadyCriterion, SteadyDetector, SteadyMetric, SteadyState};
pub use summary::{HistogramBucket, Summary};
pub use tally::{KindTally, Tally};
pub use transient::mser5_truncation;
