//! Bytes per second stay flat while the queue grows: the device gives all it has.

use super::{Case, Rule, Said, Subject, fires, names, silent, unknown};

/// Fewer intervals show no trend.
const POINTS_MIN: usize = 6;
/// How much longer the queue is.
const GROWS: f64 = 1.5;
/// How much more is moved.
const FLAT: f64 = 1.1;
/// A queue that waits at all: below it the load grows, and not the queue of a busy device.
const QUEUED: f64 = 1.0;

pub(super) const RULE: Rule = Rule {
    id: "queue-grows",
    subject: Subject::Diagnosis,
    threshold: "the longest third of a device's queues is at least 1.5 times the shortest third, and moves at most \
                10 % more bytes",
    advice: "the device is saturated: move content off it",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let mut judged = 0;
    let mut found = Vec::new();
    for device in &case.evidence.devices {
        let mut series = device.series.clone();
        if series.len() < POINTS_MIN {
            continue;
        }
        series.sort_by(|a, b| a.0.total_cmp(&b.0));
        let third = series.len() / 3;
        let mean = |points: &[(f32, f32)]| {
            let count = points.len() as f64;
            let sum = |of: fn(&(f32, f32)) -> f32| {
                points.iter().map(|point| f64::from(of(point))).sum::<f64>() / count
            };
            (sum(|point| point.0), sum(|point| point.1))
        };
        let (short, long) = (mean(&series[..third]), mean(&series[series.len() - third..]));
        judged += 1;
        if short.0 >= QUEUED && long.0 >= GROWS * short.0 && long.1 <= FLAT * short.1 {
            found.push(format!(
                "{}: queue {:.1} to {:.1}, {:.0} to {:.0} MB/s",
                device.name,
                short.0,
                long.0,
                short.1 / 1e6,
                long.1 / 1e6
            ));
        }
    }
    match (judged, found.is_empty()) {
        (0, _) => {
            unknown(format!("no device has {POINTS_MIN} intervals of queue and bytes; measure for longer"))
        }
        (_, false) => fires(names(&found)),
        (_, true) => silent("where queues grew, bytes per second grew too, or no queue grew"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Evidence;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let evidence = |queues: &[f32], bytes: &[f32]| Evidence {
            devices: vec![testing::device(queues, bytes)],
            ..Evidence::default()
        };
        let grows = [2.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 14.0, 16.0];
        assert_eq!(testing::of(&RULE, &evidence(&grows, &[5e7; 9])), Outcome::Fires);
        let bytes = grows.map(|queue| queue * 1e7);
        assert_eq!(testing::of(&RULE, &evidence(&grows, &bytes)), Outcome::Silent);
        assert_eq!(testing::of(&RULE, &evidence(&grows[..3], &[5e7; 3])), Outcome::Unknown);
    }
}
