//! Work is queued and processors are well below 100 %: the database waits for I/O.

use super::{Case, Rule, Said, Subject, percent, told, unknown};

/// "Well below 100 %".
const WELL_BELOW: f64 = 0.80;
/// The larger part of the time of sessions at work.
const HALF: f64 = 0.5;
/// Processors that are idle while I/Os are under way, where no waits were measured.
const IDLE_WITH_IO: f64 = 0.10;
/// I/Os at a device, where no waits were measured.
const QUEUED: f64 = 2.0;

pub(super) const RULE: Rule = Rule {
    id: "waits-for-io",
    subject: Subject::Diagnosis,
    threshold: "processors are less than 80 % busy, and sessions wait for storage at least half of their time (or, \
                where that was not measured, processors wait for I/O at least 10 % or devices have at least 2 I/Os \
                queued)",
    advice: "storage limits: see which objects wait",
    check,
};

fn check(case: &Case<'_>) -> Said {
    let Some(busy) = case.evidence.host.busy else {
        return unknown(
            "the processors were not measured; give iostat, sar, Perfmon or AWR of the same time",
        );
    };
    let has_room = busy < WELL_BELOW;
    if let Some(model) = &case.model {
        let share = model.storage_share();
        return told(
            has_room && share >= HALF,
            format!(
                "processors are {} busy; sessions wait for storage {} of their time",
                percent(busy),
                percent(share)
            ),
        );
    }
    let wait = case.evidence.host.io_wait;
    let queues: Vec<f64> = case.evidence.devices.iter().filter_map(|device| device.queue).collect();
    let queue = queues.iter().copied().fold(0.0, f64::max);
    if wait.is_none() && queues.is_empty() {
        return unknown(format!(
            "processors are {} busy; neither waits of the database nor queues of devices were measured",
            percent(busy)
        ));
    }
    let waits = wait.is_some_and(|wait| wait >= IDLE_WITH_IO) || queue >= QUEUED;
    let wait = wait.map_or("not measured".to_owned(), percent);
    told(
        has_room && waits,
        format!(
            "processors are {} busy, wait for I/O {wait}; the longest queue has {queue:.1}",
            percent(busy)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Outcome, testing};
    use super::*;
    use crate::evidence::{Evidence, Kind};

    #[test]
    fn it_fires_is_silent_and_does_not_know() {
        let slow = || vec![testing::object("t", Kind::Data, 1.0, 10_000.0, 0.0, 60.0)];
        assert_eq!(testing::of(&RULE, &testing::period(slow(), 0.3)), Outcome::Fires);
        assert_eq!(testing::of(&RULE, &testing::period(slow(), 0.9)), Outcome::Silent);
        let mut evidence = testing::period(Vec::new(), 0.3);
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Unknown);
        evidence.host.io_wait = Some(0.4);
        assert_eq!(testing::of(&RULE, &evidence), Outcome::Fires);
        assert_eq!(testing::of(&RULE, &Evidence::default()), Outcome::Unknown);
    }
}
