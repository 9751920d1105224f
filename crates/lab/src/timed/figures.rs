//! What came of a replay, with units in the names.

use serde::Serialize;
use tier0_units::Nanos;
use tier0_workload::stats::Tally;

use super::play::Played;
use super::{Pace, Placed, TimedPlan};
use crate::path::{Usage, UsageRow};
use crate::work::Work;

/// Requests that take longer than this are counted, milliseconds: beyond it, databases on disks count as slow.
pub const WAIT_MS: u64 = 20;

/// When requests were issued.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PaceFigures {
    /// At the trace's times, so many times as fast.
    Speed(f64),
    /// So many outstanding at any time.
    Closed(u32),
}

/// The figures of a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedReport {
    /// When requests were issued.
    pub pace: PaceFigures,
    /// Requests outstanding at the array at most.
    pub outstanding_max: u32,
    /// From the first request to the last answer, seconds.
    pub duration_s: f64,
    /// From the first request to the last as the trace times them, at this speed, seconds; nothing in a closed loop.
    pub trace_s: Option<f64>,
    /// The longest time that a request waited in the host because as many as allowed were outstanding, seconds.
    pub behind_max_s: f64,
    /// From the time of the last request to the last answer, seconds; nothing in a closed loop.
    pub behind_at_end_s: Option<f64>,
    /// Reads and writes that were answered.
    pub requests: u64,
    /// These per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_s: f64,
    /// Reads and writes that took longer than [`WAIT_MS`], as a share of all.
    pub over_20_ms_share: f64,
    /// Reads; nothing where there were none.
    pub read: Option<KindFigures>,
    /// Writes.
    pub write: Option<KindFigures>,
    /// Discards that were passed on.
    pub discards: u64,
    /// Discards that were left out, because the trace neither reads nor writes what they discard.
    pub discards_left_out: u64,
    /// Flushes that were passed on.
    pub flushes: u64,
    /// Requests without data, which were left out.
    pub empty_left_out: u64,
    /// What was empty when the replay began.
    pub empty_at_start: Vec<&'static str>,
    /// Where traced volumes lay.
    pub placed: Vec<Placed>,
    /// The part of the time in which drives had a command, by their model.
    pub drives_busy: Vec<UsageRow>,
    /// What the array did.
    pub work: Work,
    /// How long an interval is, seconds; the last may have ended sooner.
    pub interval_s: f64,
    /// What was answered, by the time of the answer.
    pub intervals: Vec<IntervalFigures>,
}

/// Requests of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KindFigures {
    /// Answered requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Their mean latency.
    pub latency_ms_mean: f64,
    /// The median.
    pub latency_ms_p50: f64,
    /// What 95 % did not exceed.
    pub latency_ms_p95: f64,
    /// What 99 % did not exceed.
    pub latency_ms_p99: f64,
    /// The greatest.
    pub latency_ms_max: f64,
    /// Those that took longer than [`WAIT_MS`], as a share.
    pub over_20_ms_share: f64,
}

/// What was answered in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct IntervalFigures {
    /// Where it begins, seconds since the first request.
    pub start_s: f64,
    /// How long it is, seconds.
    pub length_s: f64,
    /// Answered requests per second.
    pub iops: f64,
    /// 10^6 bytes per second.
    pub mb_s: f64,
    /// Reads.
    pub read: Option<KindFigures>,
    /// Writes.
    pub write: Option<KindFigures>,
}

impl KindFigures {
    fn of(tally: &Tally) -> Option<KindFigures> {
        let ms = |time: Nanos| time.as_millis_f64();
        let at = |share: f64| ms(tally.latency_at(share));
        (tally.ios() > 0).then(|| KindFigures {
            requests: tally.ios(),
            bytes: tally.bytes().0,
            latency_ms_mean: tally.latency_ns_mean() / 1e6,
            latency_ms_p50: at(0.5),
            latency_ms_p95: at(0.95),
            latency_ms_p99: at(0.99),
            latency_ms_max: ms(tally.latency_max()),
            over_20_ms_share: waited(tally) as f64 / tally.ios() as f64,
        })
    }
}

/// Requests that took longer than [`WAIT_MS`], by the histogram's steps of 0.1 %.
fn waited(tally: &Tally) -> u64 {
    let limit = Nanos::from_millis(WAIT_MS);
    tally.steps().filter(|(latency, _)| *latency > limit).map(|(_, ios)| ios).sum()
}

/// How many per second; none where no time passes.
fn per_s(count: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { count / seconds } else { 0.0 }
}

impl TimedReport {
    pub(super) fn of(
        plan: &TimedPlan,
        played: Played,
        usage: &Usage,
        work: Work,
        empty_at_start: Vec<&'static str>,
    ) -> TimedReport {
        let all = played.course.all();
        let (duration_s, interval_s) = (played.took.as_secs_f64(), played.course.length().as_secs_f64());
        let (requests, bytes) = (all.read.ios() + all.write.ios(), all.read.bytes().0 + all.write.bytes().0);
        let interval = |(number, row): (usize, &tier0_workload::stats::KindTally)| {
            let start_s = number as f64 * interval_s;
            let length_s = interval_s.min(duration_s - start_s);
            let bytes = row.read.bytes().0 + row.write.bytes().0;
            IntervalFigures {
                start_s,
                length_s,
                iops: per_s((row.read.ios() + row.write.ios()) as f64, length_s),
                mb_s: per_s(bytes as f64 / 1e6, length_s),
                read: KindFigures::of(&row.read),
                write: KindFigures::of(&row.write),
            }
        };
        let (pace, outstanding_max) = match plan.pace {
            Pace::Speed(speed) => (PaceFigures::Speed(speed), plan.outstanding_max),
            Pace::Closed(outstanding) => (PaceFigures::Closed(outstanding), outstanding),
        };
        let is_drives = |row: &&UsageRow| row.resource.ends_with("drives");
        TimedReport {
            pace,
            outstanding_max,
            duration_s,
            trace_s: played.last_due.map(Nanos::as_secs_f64),
            behind_max_s: played.behind.as_secs_f64(),
            behind_at_end_s: played.last_due.map(|due| played.took.saturating_sub(due).as_secs_f64()),
            requests,
            iops: per_s(requests as f64, duration_s),
            mb_s: per_s(bytes as f64 / 1e6, duration_s),
            over_20_ms_share: (waited(&all.read) + waited(&all.write)) as f64 / (requests as f64).max(1.0),
            read: KindFigures::of(&all.read),
            write: KindFigures::of(&all.write),
            discards: played.discards,
            discards_left_out: played.discards_left_out,
            flushes: played.flushes,
            empty_left_out: played.empty,
            empty_at_start,
            placed: played.placed,
            drives_busy: usage.rows.iter().filter(is_drives).cloned().collect(),
            work,
            interval_s,
            intervals: played.course.rows().iter().enumerate().map(interval).collect(),
        }
    }
}
