//! Everything a run counts, and the limits that end it by counting.

use tier0_units::Nanos;

use crate::draw::IoKind;
use crate::spec::{Arrival, LoadSpec, RunLimits};
use crate::stats::{
    BatchMeans, EndedBy, ErrorReport, IntervalRow, KindTally, LoadReport, PrecisionReport, RateReport,
    Series, SteadyReport, StreamReport, Summary, VerifyReport, mser5_truncation,
};

/// How often the precision is looked at, in answered requests: its 64 batches cost less than one draw then.
const PRECISION_EVERY_IOS: u64 = 1024;
/// Answers in one and the same instant of simulated time that end the run.
const STANDSTILL_IOS: u32 = 10_000_000;

/// Sums over all requests since the run began, the warm-up included.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sums {
    pub(super) ios: u64,
    pub(super) bytes: u64,
    pub(super) latency_ns: u128,
}

impl Sums {
    /// What was added since `earlier`.
    pub(super) fn since(self, earlier: Sums) -> Sums {
        Sums {
            ios: self.ios - earlier.ios,
            bytes: self.bytes - earlier.bytes,
            latency_ns: self.latency_ns - earlier.latency_ns,
        }
    }

    pub(super) fn latency_mean(self) -> Option<Nanos> {
        self.latency_ns.checked_div(u128::from(self.ios)).map(|ns| Nanos(ns as u64))
    }
}

/// The measured part of a run.
struct Measured {
    began: Nanos,
    streams: Vec<KindTally>,
    series: Series,
    read_precision: BatchMeans,
    write_precision: BatchMeans,
    ios: u64,
    bytes: u64,
}

/// All counts of a run.
pub(super) struct Meter {
    limits: RunLimits,
    interval: Nanos,
    stream_count: usize,
    pub(super) read: Sums,
    pub(super) write: Sums,
    pub(super) errors: ErrorReport,
    pub(super) verify: VerifyReport,
    measured: Option<Measured>,
    last_answer: Nanos,
    answers_at_once: u32,
}

impl Meter {
    pub(super) fn new(load: &LoadSpec) -> Meter {
        Meter {
            limits: load.limits,
            interval: load.interval,
            stream_count: load.streams.len(),
            read: Sums::default(),
            write: Sums::default(),
            errors: ErrorReport::default(),
            verify: VerifyReport::default(),
            measured: None,
            last_answer: Nanos::ZERO,
            answers_at_once: 0,
        }
    }

    /// From now on answers count in the result.
    pub(super) fn begin_measurement(&mut self, now: Nanos) {
        self.measured = Some(Measured {
            began: now,
            streams: vec![KindTally::default(); self.stream_count],
            series: Series::new(now, self.interval),
            read_precision: BatchMeans::new(),
            write_precision: BatchMeans::new(),
            ios: 0,
            bytes: 0,
        });
    }

    /// Counts an answer; returns the limit that it reached.
    #[inline]
    pub(super) fn record(
        &mut self,
        stream: usize,
        kind: IoKind,
        bytes: u64,
        latency: Nanos,
        now: Nanos,
    ) -> Option<EndedBy> {
        let sums = match kind {
            IoKind::Read => &mut self.read,
            IoKind::Write => &mut self.write,
        };
        sums.ios += 1;
        sums.bytes += bytes;
        sums.latency_ns += u128::from(latency.0);
        self.answers_at_once = if now == self.last_answer { self.answers_at_once + 1 } else { 0 };
        self.last_answer = now;
        if self.answers_at_once == STANDSTILL_IOS {
            return Some(EndedBy::Standstill);
        }
        let measured = self.measured.as_mut()?;
        measured.streams[stream].kind_mut(kind).record(bytes, latency);
        measured.series.record(kind, bytes, latency, now);
        match kind {
            IoKind::Read => measured.read_precision.push(latency.0 as f64),
            IoKind::Write => measured.write_precision.push(latency.0 as f64),
        }
        measured.ios += 1;
        measured.bytes += bytes;
        self.limit_reached()
    }

    #[inline]
    fn limit_reached(&self) -> Option<EndedBy> {
        let measured = self.measured.as_ref()?;
        if self.limits.ios.is_some_and(|ios| measured.ios >= ios) {
            return Some(EndedBy::Ios);
        }
        if self.limits.bytes.is_some_and(|bytes| measured.bytes >= bytes.0) {
            return Some(EndedBy::Bytes);
        }
        let percent = self.limits.precision_percent?;
        let precise = measured.ios.is_multiple_of(PRECISION_EVERY_IOS) && measured.is_precise(percent);
        precise.then_some(EndedBy::Precision)
    }

    /// Counts a failure; returns the limit that it reached.
    pub(super) fn fail(&mut self, kind: IoKind, reason: impl FnOnce() -> String) -> Option<EndedBy> {
        match kind {
            IoKind::Read => self.errors.reads += 1,
            IoKind::Write => self.errors.writes += 1,
        }
        self.errors.first.get_or_insert_with(reason);
        (self.errors.reads + self.errors.writes > self.limits.errors_max).then_some(EndedBy::Errors)
    }

    /// How much of the measurement is done by its counts, 0 to 1.
    pub(super) fn share_counted(&self) -> f64 {
        let Some(measured) = &self.measured else { return 0.0 };
        let ios = self.limits.ios.map_or(0.0, |ios| measured.ios as f64 / ios as f64);
        let bytes = self.limits.bytes.map_or(0.0, |bytes| measured.bytes as f64 / bytes.0 as f64);
        ios.max(bytes)
    }

    /// The report of a run that began at `started` and was ended at `ended`.
    pub(super) fn report(self, end: RunEnd) -> LoadReport {
        let RunEnd { load, target_bytes, started, ended, ended_by, unanswered, unserved, steady } = end;
        let verify = load.verify.is_some().then_some(self.verify);
        let measured = self.measured.unwrap_or_else(|| {
            // The run ended in its warm-up: there is a report, of nothing.
            let mut empty = Meter::new(&load);
            empty.begin_measurement(ended);
            empty.measured.expect("the measurement has just begun")
        });
        let time = ended.saturating_sub(measured.began);
        let mut total = KindTally::default();
        measured.streams.iter().for_each(|tally| total.merge(tally));
        let names = load.streams.iter().map(|stream| stream.name.clone());
        let streams = names.zip(&measured.streams).map(|(name, tally)| StreamReport {
            name,
            all: Summary::of(&tally.both(), time),
            read: Summary::of_some(&tally.read, time),
            write: Summary::of_some(&tally.write, time),
        });
        let streams: Vec<StreamReport> = streams.collect();
        let rate = rate_report(&load, &streams, time, unserved);
        let precision = measured.precision();
        let intervals = measured.series.finish(ended);
        LoadReport {
            target_bytes,
            warm_up_s: measured.began.saturating_sub(started).as_secs_f64(),
            measured_s: time.as_secs_f64(),
            ended_by,
            all: Summary::of(&total.both(), time),
            read: Summary::of_some(&total.read, time),
            write: Summary::of_some(&total.write, time),
            streams,
            unanswered,
            rate,
            errors: self.errors,
            precision,
            steady,
            transient_s: transient_s(&intervals, load.interval),
            verify,
            intervals,
            load,
        }
    }
}

/// How the open loops kept up; nothing where there are none.
fn rate_report(
    load: &LoadSpec,
    streams: &[StreamReport],
    time: Nanos,
    unserved: [u64; 2],
) -> Option<RateReport> {
    let open = load.streams.iter().zip(streams).filter_map(|(spec, report)| match spec.arrival {
        Arrival::OpenLoop(open) => Some((open.rate_iops, report.all.ios)),
        Arrival::ClosedLoop(_) => None,
    });
    let open: Vec<(f64, u64)> = open.collect();
    let asked_iops: f64 = open.iter().map(|(rate, _)| rate).sum();
    let answered: u64 = open.iter().map(|(_, ios)| ios).sum();
    (!open.is_empty()).then(|| RateReport::new(asked_iops, answered, time.as_secs_f64(), unserved))
}

/// What the report needs to know beside the counts.
pub(super) struct RunEnd {
    pub(super) load: LoadSpec,
    pub(super) target_bytes: u64,
    pub(super) started: Nanos,
    pub(super) ended: Nanos,
    pub(super) ended_by: EndedBy,
    pub(super) unanswered: u64,
    /// Of open loops, at the beginning of the measurement and at its end.
    pub(super) unserved: [u64; 2],
    pub(super) steady: Option<SteadyReport>,
}

impl Measured {
    /// Each kind that was asked for at all is known to `percent`.
    fn is_precise(&self, percent: f64) -> bool {
        let precise = |kind: IoKind, batches: &BatchMeans| {
            let asked = self.streams.iter().any(|tally| match kind {
                IoKind::Read => tally.read.ios() > 0,
                IoKind::Write => tally.write.ios() > 0,
            });
            !asked || batches.half_width_percent().is_some_and(|half_width| half_width <= percent)
        };
        precise(IoKind::Read, &self.read_precision) && precise(IoKind::Write, &self.write_precision)
    }

    fn precision(&self) -> PrecisionReport {
        PrecisionReport {
            read_percent: self.read_precision.half_width_percent(),
            write_percent: self.write_precision.half_width_percent(),
        }
    }
}

/// Where MSER-5 sees the end of the transient in the mean latencies of the intervals.
fn transient_s(intervals: &[IntervalRow], interval: Nanos) -> Option<f64> {
    let means: Option<Vec<f64>> = intervals.iter().map(IntervalRow::latency_ns_mean).collect();
    let truncation = mser5_truncation(&means?)?;
    Some(interval.as_secs_f64() * truncation as f64)
}
