//! Whether a run is in a steady state, while it runs.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use tier0_units::Nanos;

use crate::spec::SpecError;

/// What must have become steady.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum SteadyMetric {
    /// The mean latency. In a closed loop it fixes the throughput too (Little's law); in an open loop the
    /// throughput is given and says nothing.
    #[default]
    Latency,
    /// Answered requests per second.
    Iops,
}

/// When a run counts as steady: the rule of the SNIA Solid State Storage Performance Test Specification (PTS,
/// definition of "steady state"): over a window of rounds, the greatest and the least value differ by at most
/// 20 % of the average, and the best straight line through them rises or falls by at most 10 % of it. PTS
/// takes 5 rounds of a minute; rounds here are shorter by default, since a model has no minute-long
/// housekeeping.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SteadyCriterion {
    /// What must be steady.
    pub metric: SteadyMetric,
    /// The length of a round.
    #[serde(with = "crate::spec::duration")]
    pub round: Nanos,
    /// The rounds of the window, 2 to 1000.
    pub rounds: u32,
    /// The greatest allowed range in percent of the average.
    pub range_percent: f64,
    /// The greatest allowed rise or fall of the fitted line in percent of the average.
    pub slope_percent: f64,
    /// How long to wait at most. Then the measurement begins all the same, and the report says that it was
    /// not steady.
    #[serde(with = "crate::spec::duration")]
    pub wait_max: Nanos,
}

impl Default for SteadyCriterion {
    fn default() -> SteadyCriterion {
        SteadyCriterion {
            metric: SteadyMetric::Latency,
            round: Nanos::from_secs(1),
            rounds: 5,
            range_percent: 20.0,
            slope_percent: 10.0,
            wait_max: Nanos::from_secs(60),
        }
    }
}

impl SteadyCriterion {
    pub(crate) fn validate(&self) -> Result<(), SpecError> {
        let refuse = |field, value, allowed| Err(SpecError::Field { field, value, allowed });
        if self.round == Nanos::ZERO {
            return refuse("round of [steady]", "0s".to_owned(), "more than 0s");
        }
        if !(2..=1000).contains(&self.rounds) {
            return refuse("rounds of [steady]", self.rounds.to_string(), "2 to 1000");
        }
        for (field, value) in [
            ("range_percent of [steady]", self.range_percent),
            ("slope_percent of [steady]", self.slope_percent),
        ] {
            if !(value > 0.0 && value <= 1000.0) {
                return refuse(field, value.to_string(), "more than 0, at most 1000");
            }
        }
        Ok(())
    }

    /// Judges a window of values.
    pub fn judge(&self, values: impl ExactSizeIterator<Item = f64> + Clone) -> SteadyState {
        let n = values.len() as f64;
        let mean = values.clone().sum::<f64>() / n;
        let (least, greatest) =
            values.clone().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, g), v| (l.min(v), g.max(v)));
        // Least squares: slope = sum((x - x̄)(y - ȳ)) / sum((x - x̄)²); the line's rise is the slope times n
        // - 1.
        let middle = (n - 1.0) / 2.0;
        let (above, below) = values.enumerate().fold((0.0, 0.0), |(above, below), (index, value)| {
            let x = index as f64 - middle;
            (above + x * (value - mean), below + x * x)
        });
        let rise = (above / below * (n - 1.0)).abs();
        let (range_percent, slope_percent) = (100.0 * (greatest - least) / mean, 100.0 * rise / mean);
        let steady = range_percent <= self.range_percent && slope_percent <= self.slope_percent;
        SteadyState { steady, range_percent, slope_percent }
    }
}

/// The verdict on a window of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// Both bounds hold.
    pub steady: bool,
    /// Greatest minus least in percent of the average.
    pub range_percent: f64,
    /// Rise or fall of the fitted line in percent of the average.
    pub slope_percent: f64,
}

/// Judges the last rounds of a run.
#[derive(Clone, Debug)]
pub struct SteadyDetector {
    criterion: SteadyCriterion,
    window: VecDeque<f64>,
}

impl SteadyDetector {
    /// No round yet.
    pub fn new(criterion: SteadyCriterion) -> SteadyDetector {
        SteadyDetector { criterion, window: VecDeque::with_capacity(criterion.rounds as usize) }
    }

    /// Takes the value of a round: requests answered in it, and the sum of their latencies. A round without
    /// an answer breaks the window. Returns the verdict once the window is full.
    pub fn push(&mut self, ios: u64, latency_ns_sum: f64) -> Option<SteadyState> {
        if ios == 0 {
            self.window.clear();
            return None;
        }
        if self.window.len() == self.criterion.rounds as usize {
            self.window.pop_front();
        }
        self.window.push_back(match self.criterion.metric {
            SteadyMetric::Latency => latency_ns_sum / ios as f64,
            SteadyMetric::Iops => ios as f64,
        });
        let full = self.window.len() == self.criterion.rounds as usize;
        full.then(|| self.criterion.judge(self.window.iter().copied()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(values: &[f64]) -> SteadyState {
        SteadyCriterion::default().judge(values.iter().copied())
    }

    #[test]
    fn range_and_slope_each_decide() {
        let flat = judge(&[100.0, 101.0, 99.0, 100.0, 100.0]);
        assert!(flat.steady && (flat.range_percent - 2.0).abs() < 1e-9, "{flat:?}");
        let line = judge(&[90.0, 95.0, 100.0, 105.0, 110.0]);
        assert!(!line.steady && (line.slope_percent - 20.0).abs() < 1e-9, "{line:?}");
        let gentle = judge(&[96.0, 98.0, 100.0, 102.0, 104.0]);
        assert!(gentle.steady && (gentle.slope_percent - 8.0).abs() < 1e-9, "{gentle:?}");
        let spike = judge(&[100.0, 100.0, 125.0, 100.0, 100.0]);
        assert!(!spike.steady && spike.slope_percent < 1e-9, "{spike:?}");
    }

    #[test]
    fn the_window_slides_and_silence_breaks_it() {
        let mut detector = SteadyDetector::new(SteadyCriterion::default());
        let verdicts: Vec<_> = [500.0, 300.0, 200.0, 110.0, 100.0, 100.0, 100.0, 100.0]
            .into_iter()
            .map(|latency| detector.push(10, latency * 10.0).map(|state| state.steady))
            .collect();
        let (no, yes) = (Some(false), Some(true));
        assert_eq!(verdicts, [None, None, None, None, no, no, no, yes]);
        assert_eq!(detector.push(0, 0.0), None);
        assert_eq!(detector.push(10, 1000.0), None, "the window begins anew");
    }
}
