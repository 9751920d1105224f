//! How many I/Os per second a target gives while its mean latency stays within a limit.
//!
//! The outstanding requests of a closed loop are raised until the mean latency of the reads *or* of the writes passes
//! the limit. The search is a state machine that knows no target and no clock: ask it what to measure
//! ([`LimitSearch::next`]), tell it what was measured ([`LimitSearch::record`]). So it serves simulations and real
//! targets alike.
//!
//! Invariants: a probe is asked for once per number of outstanding requests; the search ends after at most
//! [`PROBES_MAX`] probes. Assumption: latency does not fall as more requests are outstanding. Measurements scatter; a
//! point of the wrong side is taken at its word, which moves the result by less than the bracket is wide.

use serde::{Deserialize, Serialize};

/// The most probes of one search: 2^20 outstanding requests are reached by doubling in 20, and a bracket closes in a
/// few more.
pub const PROBES_MAX: usize = 40;
/// Where the throughput above the limit is less than this share of that below it, more requests have cost throughput, by
/// more than measurements scatter: there is nothing between the two to be found by a line.
const COLLAPSE_SHARE: f64 = 0.95;
/// The steepest step: the cost of a probe grows with its length, not with its depth, so growth may be bold.
const GROWTH_MAX: f64 = 4.0;
/// The flattest step, so that a search on the wrong side of a knee makes headway.
const GROWTH_MIN: f64 = 1.25;

/// One measurement of the closed loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Outstanding requests.
    pub outstanding: u32,
    /// Answered requests per second.
    pub iops: f64,
    /// Millions of bytes per second.
    pub megabytes_per_s: f64,
    /// Mean latency of all requests, in milliseconds.
    pub latency_ms: f64,
    /// Mean latency of the reads, where there were any.
    pub read_latency_ms: Option<f64>,
    /// Mean latency of the writes, where there were any.
    pub write_latency_ms: Option<f64>,
    /// The latency that 99 % of all requests keep, in milliseconds.
    pub p99_ms: f64,
    /// Half the width of the 95 % confidence interval of the reads' mean latency, as a share of it; nothing where too little
    /// was measured to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_half_width: Option<f64>,
    /// The same of the writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_half_width: Option<f64>,
}

impl Sample {
    /// The mean latency that counts: the worse of the reads' and the writes'.
    pub fn worse_latency_ms(&self) -> f64 {
        let of = |latency: Option<f64>| latency.unwrap_or(0.0);
        of(self.read_latency_ms).max(of(self.write_latency_ms))
    }

    /// Half the width of the interval of the latency that counts.
    pub fn worse_half_width(&self) -> Option<f64> {
        let of = |latency: Option<f64>| latency.unwrap_or(0.0);
        match of(self.read_latency_ms) >= of(self.write_latency_ms) {
            true => self.read_half_width,
            false => self.write_half_width,
        }
    }

    /// The sample between two others, `share` of the way from this one.
    fn toward(&self, other: &Sample, share: f64) -> Sample {
        let mix = |a: f64, b: f64| a + (b - a) * share;
        let more = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b));
        let mix_some = |a: Option<f64>, b: Option<f64>| Some(mix(a?, b?));
        Sample {
            outstanding: mix(f64::from(self.outstanding), f64::from(other.outstanding)).floor() as u32,
            iops: mix(self.iops, other.iops),
            megabytes_per_s: mix(self.megabytes_per_s, other.megabytes_per_s),
            latency_ms: mix(self.latency_ms, other.latency_ms),
            read_latency_ms: mix_some(self.read_latency_ms, other.read_latency_ms),
            write_latency_ms: mix_some(self.write_latency_ms, other.write_latency_ms),
            p99_ms: mix(self.p99_ms, other.p99_ms),
            read_half_width: more(self.read_half_width, other.read_half_width),
            write_half_width: more(self.write_half_width, other.write_half_width),
        }
    }
}

/// What is searched for, and how closely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// The greatest mean latency of reads and of writes, in milliseconds.
    pub latency_limit_ms: f64,
    /// The first probe, at least 1.
    pub outstanding_start: u32,
    /// The last probe, at least `outstanding_start`.
    pub outstanding_max: u32,
    /// The search ends when the bracket is at most this share of its lower end wide; 0 asks for neighbouring numbers.
    pub bracket_share: f64,
}

impl SearchPlan {
    /// A search from one request up to 16,384, to a bracket of 4 %: between its ends the curve is straight to a few
    /// thousandths.
    pub fn new(latency_limit_ms: f64) -> SearchPlan {
        SearchPlan { latency_limit_ms, outstanding_start: 1, outstanding_max: 16_384, bracket_share: 0.04 }
    }
}

/// Why the result is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// The limit lies between two probes, and the result at it.
    Limit,
    /// Even a single request takes longer; the result is that single request's.
    AboveFromTheStart,
    /// The limit was never passed; the result is the most that was tried.
    NeverPassed,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The target at the limit.
    pub at_limit: Sample,
    /// Why it ended.
    pub end: SearchEnd,
    /// Every probe, by outstanding requests.
    pub probes: Vec<Sample>,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct LimitSearch {
    plan: SearchPlan,
    /// By outstanding requests.
    probes: Vec<Sample>,
}

impl LimitSearch {
    /// A search that has measured nothing yet.
    ///
    /// # Panics
    /// If the plan's numbers contradict each other.
    pub fn new(plan: SearchPlan) -> LimitSearch {
        assert!(plan.outstanding_start >= 1, "a loop has at least one request");
        assert!(plan.outstanding_start <= plan.outstanding_max, "a search starts below its end");
        LimitSearch { plan, probes: Vec::new() }
    }

    /// How many requests to measure with next; nothing once the result is known.
    pub fn next(&self) -> Option<u32> {
        if self.probes.len() >= PROBES_MAX {
            return None;
        }
        let asked = match (self.below(), self.above()) {
            (None, None) => self.plan.outstanding_start,
            (Some(below), None) => self.raise(below)?,
            (None, Some(above)) => self.lower(above)?,
            (Some(below), Some(above)) => self.narrow(below, above)?,
        };
        debug_assert!(self.probes.iter().all(|probe| probe.outstanding != asked), "{asked} is known");
        Some(asked)
    }

    /// Takes a measurement.
    pub fn record(&mut self, sample: Sample) {
        let place = self.probes.partition_point(|probe| probe.outstanding < sample.outstanding);
        self.probes.insert(place, sample);
    }

    /// The result of what was measured; nothing before the first measurement.
    pub fn result(&self) -> Option<SearchResult> {
        let (at_limit, end) = match (self.below(), self.above()) {
            (None, None) => return None,
            (Some(below), None) => (*below, SearchEnd::NeverPassed),
            (None, Some(above)) => (*above, SearchEnd::AboveFromTheStart),
            // A write log that has filled, for instance.
            (Some(below), Some(above)) if above.iops < below.iops * COLLAPSE_SHARE => {
                (*below, SearchEnd::Limit)
            }
            (Some(below), Some(above)) => {
                let (low, high) = (below.worse_latency_ms(), above.worse_latency_ms());
                let share = ((self.plan.latency_limit_ms - low) / (high - low)).clamp(0.0, 1.0);
                (below.toward(above, share), SearchEnd::Limit)
            }
        };
        Some(SearchResult { at_limit, end, probes: self.probes.clone() })
    }

    fn is_below(&self, probe: &Sample) -> bool {
        probe.worse_latency_ms() <= self.plan.latency_limit_ms
    }

    /// The probe before the first one that passes the limit.
    fn below(&self) -> Option<&Sample> {
        self.probes.iter().take_while(|probe| self.is_below(probe)).last()
    }

    /// The first probe that passes the limit.
    fn above(&self) -> Option<&Sample> {
        self.probes.iter().find(|probe| !self.is_below(probe))
    }

    /// Where the limit would lie if latency went on along the line through the last two probes, or, after one,
    /// in proportion to the requests (a saturated target).
    fn raise(&self, below: &Sample) -> Option<u32> {
        if below.outstanding >= self.plan.outstanding_max {
            return None;
        }
        let n = f64::from(below.outstanding);
        let latency = below.worse_latency_ms();
        let before = self.probes.iter().rev().nth(1);
        let slope =
            before.map(|before| (latency - before.worse_latency_ms()) / (n - f64::from(before.outstanding)));
        let wanted = match slope {
            Some(slope) if slope > 0.0 => n + (self.plan.latency_limit_ms - latency) / slope * 1.05,
            Some(_) => n * GROWTH_MAX,
            None => n * self.plan.latency_limit_ms / latency.max(1e-9),
        };
        let next = wanted.clamp(n * GROWTH_MIN, n * GROWTH_MAX).ceil() as u32;
        Some(next.clamp(below.outstanding + 1, self.plan.outstanding_max))
    }

    fn lower(&self, above: &Sample) -> Option<u32> {
        if above.outstanding <= 1 {
            return None;
        }
        let share = self.plan.latency_limit_ms / above.worse_latency_ms();
        let wanted = f64::from(above.outstanding) * share.clamp(1.0 / GROWTH_MAX, 0.9);
        Some((wanted.floor() as u32).clamp(1, above.outstanding - 1))
    }

    /// Where the line between the bracket's ends crosses the limit, or, where that would shave off little, a step to
    /// its other side.
    fn narrow(&self, below: &Sample, above: &Sample) -> Option<u32> {
        let (low, high) = (below.outstanding, above.outstanding);
        let width = high - low;
        let wanted = (f64::from(low) * self.plan.bracket_share).floor() as u32;
        if width <= wanted.max(1) {
            return None;
        }
        let (low_ms, high_ms) = (below.worse_latency_ms(), above.worse_latency_ms());
        let share = (self.plan.latency_limit_ms - low_ms) / (high_ms - low_ms);
        let crossing = f64::from(low) + share * f64::from(width);
        // Half the wanted bracket beside the crossing, alternately: the two probes then close the bracket at once.
        let aside = f64::from(wanted.max(1)) / 2.0;
        let aim = if self.probes.len().is_multiple_of(2) { crossing - aside } else { crossing + aside };
        // A knee can lie far from the straight line: never leave more than nine tenths of the bracket.
        let margin = (f64::from(width) * 0.1).max(1.0);
        let aim = aim.round().clamp(f64::from(low) + margin, f64::from(high) - margin);
        Some((aim as u32).clamp(low + 1, high - 1))
    }
}

/// Runs a search by measuring with `measure`.
///
/// # Errors
/// The first error of a measurement.
pub fn search<E>(
    plan: SearchPlan,
    mut measure: impl FnMut(u32) -> Result<Sample, E>,
) -> Result<SearchResult, E> {
    let mut search = LimitSearch::new(plan);
    while let Some(outstanding) = search.next() {
        search.record(measure(outstanding)?);
    }
    Ok(search.result().expect("a search measures at least once"))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tier0_world::Random;

    use super::*;

    fn sample(outstanding: u32, iops: f64, latency_ms: f64) -> Sample {
        Sample {
            outstanding,
            iops,
            megabytes_per_s: iops * 0.008_192,
            latency_ms,
            read_latency_ms: Some(latency_ms),
            write_latency_ms: None,
            p99_ms: latency_ms,
            read_half_width: None,
            write_half_width: None,
        }
    }

    /// `servers` machines of 5 ms each: latency is 5 ms until all are busy, and grows in proportion from there.
    fn machines(servers: u32, n: u32, scatter: &mut Random) -> Sample {
        let latency =
            5.0 * (f64::from(n) / f64::from(servers)).max(1.0) * (1.0 + 0.01 * (scatter.unit() - 0.5));
        sample(n, f64::from(n) * 1000.0 / latency, latency)
    }

    #[test]
    fn finds_the_limit_of_any_machine_in_few_probes() {
        for servers in [1, 2, 7, 24, 150, 3000] {
            let mut scatter = Random::new(u64::from(servers), 0);
            let plan = SearchPlan { outstanding_max: 1 << 20, ..SearchPlan::new(20.0) };
            let Ok(found) = search(plan, |n| Ok::<_, Infallible>(machines(servers, n, &mut scatter)));
            let expected = f64::from(servers) * 200.0;
            assert_eq!(found.end, SearchEnd::Limit);
            assert!((found.at_limit.iops / expected - 1.0).abs() < 0.01, "{servers}: {:?}", found.at_limit);
            assert!((found.at_limit.worse_latency_ms() - 20.0).abs() < 1e-9);
            assert!(found.probes.len() <= 14, "{servers}: {} probes", found.probes.len());
        }
    }

    /// A line between a target that works well and one that has collapsed was taken for what it gives within the limit.
    #[test]
    fn where_throughput_collapses_the_result_is_that_before() {
        let collapses = |n: u32| {
            let is_full = n > 50;
            sample(n, if is_full { 400.0 } else { f64::from(n) * 20.0 }, if is_full { 60.0 } else { 15.0 })
        };
        let Ok(found) = search(SearchPlan::new(20.0), |n| Ok::<_, Infallible>(collapses(n)));
        assert_eq!((found.at_limit.worse_latency_ms(), found.end), (15.0, SearchEnd::Limit));
        assert!(found.at_limit.iops > 900.0, "{:?}", found.at_limit);
    }

    #[test]
    fn a_close_bracket_ends_at_neighbours() {
        let mut scatter = Random::new(1, 0);
        let plan = SearchPlan { bracket_share: 0.0, ..SearchPlan::new(20.0) };
        let Ok(found) = search(plan, |n| {
            let mut sample = machines(24, n, &mut scatter);
            sample.read_latency_ms = Some(sample.outstanding as f64 * 0.2083);
            Ok::<_, Infallible>(sample)
        });
        // 96 x 0.2083 = 19.997, 97 x 0.2083 = 20.2.
        assert_eq!(found.at_limit.outstanding, 96);
        let numbers: Vec<u32> = found.probes.iter().map(|probe| probe.outstanding).collect();
        assert!(numbers.contains(&96) && numbers.contains(&97), "{numbers:?}");
    }

    #[test]
    fn writes_can_pass_the_limit_first() {
        let measure = |n: u32| {
            let latency = f64::from(n) * 0.1;
            let mut sample = sample(n, 10_000.0, latency);
            sample.write_latency_ms = Some(latency * 2.0);
            Ok::<_, Infallible>(sample)
        };
        let Ok(found) = search(SearchPlan::new(20.0), measure);
        assert_eq!(found.at_limit.outstanding, 100);
    }

    #[test]
    fn what_cannot_be_found_is_said() {
        let Ok(slow) =
            search(SearchPlan::new(20.0), |n| Ok::<_, Infallible>(sample(n, 10.0, 100.0 * f64::from(n))));
        assert_eq!((slow.end, slow.at_limit.outstanding), (SearchEnd::AboveFromTheStart, 1));
        let Ok(fast) = search(SearchPlan::new(20.0), |n| Ok::<_, Infallible>(sample(n, 1e6, 0.1)));
        assert_eq!((fast.end, fast.at_limit.outstanding), (SearchEnd::NeverPassed, 16_384));
        let high = SearchPlan { outstanding_start: 64, ..SearchPlan::new(20.0) };
        let Ok(found) = search(high, |n| Ok::<_, Infallible>(sample(n, 50.0, 10.0 * f64::from(n))));
        assert_eq!((found.end, found.at_limit.outstanding), (SearchEnd::Limit, 2));
    }

    #[test]
    fn errors_end_the_search() {
        let failed =
            search(SearchPlan::new(20.0), |n| if n > 4 { Err("gone") } else { Ok(sample(n, 1.0, 1.0)) });
        assert_eq!(failed, Err("gone"));
    }
}
