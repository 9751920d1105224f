//! Latencies as bars.

use std::fmt::Write;

use tier0_units::Nanos;
use tier0_workload::stats::HistogramBucket;

/// The longest bar, in characters.
const WIDTH: u64 = 60;

/// One line per step of the histogram; the fullest step has the longest bar, and none that holds anything is empty.
pub(super) fn bars(histogram: &[HistogramBucket]) -> String {
    let most = histogram.iter().map(|bucket| bucket.ios).max().unwrap_or(1).max(1);
    let mut text = String::new();
    for bucket in histogram {
        let length = (bucket.ios * WIDTH).div_ceil(most) as usize;
        let bound = Nanos(bucket.latency_ns_max).to_string();
        writeln!(text, "<= {bound:>8}  {:>10}  {}", bucket.ios, "█".repeat(length))
            .expect("writing to a string cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_step_is_longest_and_none_vanishes() {
        let steps = [(1000, 1), (2000, 6000), (3000, 3000)];
        let steps = steps.map(|(latency_ns_max, ios)| HistogramBucket { latency_ns_max, ios });
        let lengths: Vec<_> = bars(&steps).lines().map(|line| line.matches('█').count()).collect();
        assert_eq!(lengths, [1, 60, 30]);
    }
}
