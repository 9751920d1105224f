//! The load until latencies and hit rates stay where they are: queues, write buffers of flash drives, and what the policies of
//! read caches make of what they hold.

use std::cell::Cell;
use std::rc::Rc;

use tier0_array::Volume;
use tier0_block::BlockTarget;
use tier0_units::{Nanos, PAGE_SECTORS, SECTOR_BYTES};
use tier0_workload::run::LoadRun;
use tier0_workload::stats::{Progress, SteadyCriterion, SteadyDetector};

use super::Look;
use super::modelled::CacheLookups;

/// How often the run is looked at.
const LOOK: Nanos = Nanos::from_millis(50);
/// Rounds that are compared.
const ROUNDS: u32 = 5;
/// A hit rate that moves by less within these rounds is where it stays, as a share of the lookups.
const HIT_RATE_MOVE_MAX: f64 = 0.01;
/// Likewise the level of a write cache, as a share of it, or less than this share of what is written.
const LEVEL_MOVE_MAX: f64 = 0.05;
const BALANCE: f64 = 0.12;
/// The longest that is waited for.
pub(crate) const RUN_IN_MAX: Nanos = Nanos::from_secs(100);
/// Another seed than the measurement's.
pub(crate) const SEED: u64 = 0x4111;
/// So many answers are enough in any case: what moves still, moves slowly.
const IOS_MAX: f64 = 500_000.0;

/// How long rounds are, and how alike.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    /// A round has so many answers,
    ios: f64,
    /// and takes at least so long: short of either its mean says little;
    least: Nanos,
    /// and at most so long.
    most: Nanos,
    range_percent: f64,
    slope_percent: f64,
}

/// What a queue or a buffer needs.
const PLAIN: Rounds = Rounds {
    ios: 1000.0,
    least: Nanos::from_millis(200),
    most: Nanos::from_secs(1),
    range_percent: 20.0,
    slope_percent: 10.0,
};
/// Pages that hardly fill a write cache are destaged when they are 10 s old, in waves of twice that length: rounds together are
/// as long, and alike in their trend alone.
const WITH_WRITE_CACHE: Rounds = Rounds {
    ios: 40_000.0,
    least: Nanos::from_millis(200),
    most: Nanos::from_secs(4),
    range_percent: 80.0,
    slope_percent: 20.0,
};

/// Judges a run.
pub(crate) struct RunIn {
    arrays: Vec<Volume>,
    rounds: Rounds,
    detector: SteadyDetector,
    round: Round,
    /// Levels of the write cache at the ends of rounds, and what had been written then, in sizes of the log.
    levels: Vec<[f64; 2]>,
    /// Hit rates of the last rounds, of both caches.
    rates: Vec<[Option<f64>; 2]>,
    last: Nanos,
    ios: f64,
    seen: Rc<Cell<RanIn>>,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct RanIn {
    /// Whether it became steady.
    pub(crate) is_steady: bool,
    /// Requests per second in its last round.
    pub(crate) iops: f64,
}

/// Since the last verdict.
#[derive(Default)]
struct Round {
    time: Nanos,
    ios: f64,
    latency_ns: f64,
    lookups: CacheLookups,
}

impl RunIn {
    /// Of a load on arrays, of each of which there is a volume; `writes` says whether it writes into their write caches.
    pub(crate) fn new(arrays: Vec<Volume>, writes: bool) -> RunIn {
        let rounds = if writes { WITH_WRITE_CACHE } else { PLAIN };
        let Rounds { range_percent, slope_percent, .. } = rounds;
        let criterion =
            SteadyCriterion { rounds: ROUNDS, range_percent, slope_percent, ..SteadyCriterion::default() };
        let round = Round { lookups: CacheLookups::of(&arrays), ..Round::default() };
        RunIn {
            arrays,
            rounds,
            detector: SteadyDetector::new(criterion),
            round,
            levels: Vec::new(),
            rates: Vec::new(),
            last: Nanos::ZERO,
            ios: 0.0,
            seen: Rc::default(),
        }
    }

    /// Has a run judged, and ended once it is steady, or once `look` says so; the cell tells what it came to.
    pub(crate) fn judge<T: BlockTarget + 'static>(
        mut self,
        run: LoadRun<T>,
        mut look: Look,
    ) -> (LoadRun<T>, Rc<Cell<RanIn>>) {
        let (stop, seen) = (run.stop_handle(), self.seen.clone());
        let judge = move |progress: &Progress| {
            let is_over = self.take(progress);
            if is_over || !look("running in") {
                stop.stop();
            }
        };
        (run.on_progress(LOOK, judge), seen)
    }

    /// Takes what was done since the last look; true at the end.
    fn take(&mut self, progress: &Progress) -> bool {
        let time = progress.elapsed.saturating_sub(self.last);
        self.last = progress.elapsed;
        let ios = progress.iops * time.as_secs_f64();
        let latencies = [progress.read_latency, progress.write_latency];
        // Reads and writes each count: their shares are the load's, and stay.
        let latency_ns: f64 = latencies.iter().flatten().map(|latency| latency.0 as f64).sum();
        let round = &mut self.round;
        round.time = round.time.saturating_add(time);
        round.ios += ios;
        round.latency_ns += latency_ns * ios;
        self.ios += ios;
        let Rounds { ios, least, most, .. } = self.rounds;
        let is_long = round.ios >= ios && round.time >= least || round.time >= most;
        if !is_long {
            return false;
        }
        let is_steady = self.end_round();
        is_steady || self.ios >= IOS_MAX
    }

    fn end_round(&mut self) -> bool {
        let now = CacheLookups::of(&self.arrays);
        let next = Round { lookups: now, ..Round::default() };
        let round = std::mem::replace(&mut self.round, next);
        let lookups = now.since(round.lookups);
        self.rates.push([lookups.memory.rate(), lookups.flash.rate()]);
        self.levels.extend(self.arrays.first().map(write_level));
        let verdict = self.detector.push(round.ios.ceil() as u64, round.latency_ns);
        let is_steady =
            verdict.is_some_and(|state| state.steady) && self.hit_rates_stay() && self.level_stays();
        let iops = round.ios / round.time.as_secs_f64().max(1e-9);
        self.seen.set(RanIn { is_steady, iops });
        is_steady
    }

    /// Whether the write cache of the last rounds neither fills nor empties.
    fn level_stays(&self) -> bool {
        let last = &self.levels[self.levels.len().saturating_sub(ROUNDS as usize)..];
        let ([[_, before], ..], [.., [_, after]]) = (last, last) else { return true };
        let levels: Vec<f64> = last.iter().map(|[level, _]| *level).collect();
        2.0 * rise(&levels).abs() <= LEVEL_MOVE_MAX.max(BALANCE * (after - before))
    }

    /// Whether the hit rates of the last rounds neither rise nor fall.
    fn hit_rates_stay(&self) -> bool {
        let last = &self.rates[self.rates.len().saturating_sub(ROUNDS as usize)..];
        (0..2).all(|cache| {
            let rates: Vec<f64> = last.iter().filter_map(|rates| rates[cache]).collect();
            rise(&rates).abs() <= HIT_RATE_MOVE_MAX
        })
    }
}

/// How full the write cache of a volume is, and what has been written into it in sizes of its log; nothing where it has none.
pub(super) fn write_level(volume: &Volume) -> [f64; 2] {
    if !volume.writes_cached() {
        return [0.0; 2];
    }
    let cache = volume.write_cache();
    let written = (cache.written_pages * PAGE_SECTORS * SECTOR_BYTES) as f64;
    [cache.level, written / (cache.log_bytes as f64).max(1.0)]
}

/// By how much values rise from their first half to their second.
pub(super) fn rise(values: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let half = values.len() / 2;
    if half == 0 { 0.0 } else { mean(&values[values.len() - half..]) - mean(&values[..half]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(ms: u64, iops: f64, latency: Nanos) -> Progress {
        Progress {
            phase: tier0_workload::stats::Phase::Measuring,
            elapsed: Nanos::from_millis(ms),
            done: None,
            left: None,
            iops,
            megabytes_per_s: 0.0,
            read_latency: Some(latency),
            write_latency: None,
            errors: 0,
        }
    }

    /// Milliseconds until it is steady, or the longest.
    fn steady_after(latency: impl Fn(u64) -> Nanos) -> Option<u64> {
        let mut run_in = RunIn::new(Vec::new(), false);
        (1..600).map(|look| look * 50).find(|ms| run_in.take(&progress(*ms, 10_000.0, latency(*ms))))
    }

    #[test]
    fn a_latency_that_rises_is_waited_for() {
        assert_eq!(steady_after(|_| Nanos::from_millis(1)), Some(1_000), "five rounds of 200 ms");
        let buffered = |ms: u64| if ms < 3_000 { Nanos(100_000 + ms * 300) } else { Nanos::from_millis(1) };
        let after = steady_after(buffered).expect("it becomes steady");
        assert!((3_200..4_400).contains(&after), "{after} ms");
    }

    #[test]
    fn slow_targets_have_longer_rounds() {
        let mut run_in = RunIn::new(Vec::new(), false);
        let looks = (1..400).map(|look| look * 50);
        let after = looks.into_iter().find(|ms| run_in.take(&progress(*ms, 100.0, Nanos::from_millis(10))));
        assert_eq!(after, Some(5_000), "five rounds of a second");
        assert!(run_in.seen.get().is_steady);
    }

    #[test]
    fn with_a_write_cache_waves_pass_within_the_rounds() {
        let mut run_in = RunIn::new(Vec::new(), true);
        // Waves of 10 s around 10 ms.
        let wave = |ms: u64| Nanos::from_micros(if (ms / 5_000).is_multiple_of(2) { 8_000 } else { 12_000 });
        let mut looks = (1..2_000).map(|look| look * 50);
        let after = looks.find(|ms| run_in.take(&progress(*ms, 1_000.0, wave(*ms)))).expect("it is steady");
        assert!((20_000..40_000).contains(&after), "{after} ms");
        assert!(run_in.seen.get().is_steady);
    }

    #[test]
    fn a_write_cache_that_fills_is_waited_for() {
        let mut run_in = RunIn::new(Vec::new(), true);
        run_in.levels = (0..5).map(|n| [0.1 * f64::from(n), 0.2 * f64::from(n)]).collect();
        assert!(!run_in.level_stays(), "it rises by 20 % of 80 % written");
        run_in.levels = (0..5).map(|n| [0.5 + 0.01 * f64::from(n), f64::from(n)]).collect();
        assert!(run_in.level_stays());
    }

    #[test]
    fn a_rise_is_between_halves() {
        assert_eq!(rise(&[]), 0.0);
        assert!((rise(&[0.1, 0.2, 0.3, 0.4, 0.5]) - 0.3).abs() < 1e-12);
    }
}
