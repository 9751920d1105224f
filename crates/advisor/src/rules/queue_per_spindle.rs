//! A queue of more than 2 for each spindle, consistently: what that disk holds is a candidate for flash.

use super::{Case, Rule, Said, Subject, fires, names, silent, unknown};

/// The customary limit of the mean disk queue.
const PER_SPINDLE: f64 = 2.0;
/// "Consistently".
const CONSISTENTLY: f64 = 0.8;

pub(super) const RULE: Rule = Rule {
    id: "queue-per-spindle",
    subject: Subject::Diagnosis,
    threshold: "the queue of a device is longer than 2 for each of its spindles in at least 80 % of the intervals",
    advice: "move the busiest content of these devices to flash",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let devices: Vec<_> = case.evidence.devices.iter().filter(|device| !device.queues.is_empty()).collect();
    if devices.is_empty() {
        return unknown("no queues of devices were measured; give iostat -x, sar -d or Perfmon");
    }
    let above = |limit: f64| -> Vec<String> {
        let often = |queues: &[f32]| {
            queues.iter().filter(|queue| f64::from(**queue) > limit).count() as f64
                >= CONSISTENTLY * queues.len() as f64
        };
        let found = devices.iter().filter(|device| often(&device.queues));
        found.map(|device| format!("{} (mean {:.1})", device.name, device.queue.unwrap_or(0.0))).collect()
    };
    match case.site.spindles {
        Some(spindles) => {
            let found = above(PER_SPINDLE * spindles);
            match found.is_empty() {
                true => silent(format!("no queue is above 2 for each of {spindles:.0} spindles")),
                false => fires(format!("{}; {spindles:.0} spindles", names(&found))),
            }
        }
        None => {
            let found = above(PER_SPINDLE);
            match found.is_empty() {
                // Shorter than for a single spindle: however many there are.
                true => silent("no queue is above 2"),
                false => unknown(format!(
                    "{}: say how many spindles these devices have (spindles in --site)",
                    names(&found)
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::Evidence;
    use crate::site::Site;

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let evidence = |queue: f32| Evidence {
            devices: vec![testing::device(&[queue; 10], &[1e6; 10])],
            ..Evidence::default()
        };
        let site = Site { spindles: Some(4.0), ..Site::default() };
        assert_eq!(testing::with(&RULE, &evidence(12.0), &site, None), Outcome::Fires);
        assert_eq!(testing::with(&RULE, &evidence(7.0), &site, None), Outcome::Silent);
        assert_eq!(testing::of(&RULE, &evidence(12.0)), Outcome::Unknown);
        assert_eq!(testing::of(&RULE, &evidence(1.0)), Outcome::Silent);
        assert_eq!(testing::of(&RULE, &Evidence::default()), Outcome::Unknown);
    }
}
