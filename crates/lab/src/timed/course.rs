//! What was answered, interval by interval. How long a replay lasts is not known before, so intervals begin short and are put
//! together where there would be too many.

use tier0_units::Nanos;
use tier0_workload::draw::IoKind;
use tier0_workload::stats::KindTally;

/// There are no more intervals than these.
const INTERVALS_MAX: u64 = 60;
/// Lengths of intervals, milliseconds: each a multiple of the one before. Beyond, they double.
const LENGTHS_MS: [u64; 17] = [
    1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 30_000, 60_000, 300_000, 600_000, 1_800_000, 3_600_000,
    21_600_000, 86_400_000,
];

/// Answers by the time at which they came.
#[derive(Debug)]
pub(super) struct Course {
    began: Nanos,
    length: Nanos,
    rows: Vec<KindTally>,
}

impl Course {
    pub(super) fn new(began: Nanos) -> Course {
        Course { began, length: Nanos::from_millis(LENGTHS_MS[0]), rows: Vec::new() }
    }

    /// Counts a request that was answered at `at`.
    pub(super) fn record(&mut self, kind: IoKind, bytes: u64, latency: Nanos, at: Nanos) {
        let since = at.saturating_sub(self.began).0;
        while since / self.length.0 >= INTERVALS_MAX {
            self.widen();
        }
        let place = (since / self.length.0) as usize;
        if self.rows.len() <= place {
            self.rows.resize_with(place + 1, KindTally::default);
        }
        self.rows[place].kind_mut(kind).record(bytes, latency);
    }

    fn widen(&mut self) {
        let longer = LENGTHS_MS.iter().map(|ms| Nanos::from_millis(*ms)).find(|length| *length > self.length);
        let longer = longer.unwrap_or(Nanos(self.length.0 * 2));
        let together = (longer.0 / self.length.0) as usize;
        let merged = self.rows.chunks(together).map(|rows| {
            let mut all = rows[0].clone();
            rows[1..].iter().for_each(|row| all.merge(row));
            all
        });
        self.rows = merged.collect();
        self.length = longer;
    }

    /// How long an interval is.
    pub(super) fn length(&self) -> Nanos {
        self.length
    }

    /// The intervals up to the last that has an answer.
    pub(super) fn rows(&self) -> &[KindTally] {
        &self.rows
    }

    /// All in one.
    pub(super) fn all(&self) -> KindTally {
        let mut all = KindTally::default();
        self.rows.iter().for_each(|row| all.merge(row));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_grow_with_the_replay_and_lose_nothing() {
        let mut course = Course::new(Nanos::from_secs(5));
        for ms in 0..130_000_u64 {
            let kind = if ms % 10 == 0 { IoKind::Write } else { IoKind::Read };
            let at = Nanos::from_secs(5).saturating_add(Nanos::from_millis(ms));
            course.record(kind, 512, Nanos(ms + 1), at);
        }
        assert_eq!((course.length(), course.rows().len()), (Nanos::from_secs(5), 26));
        assert!(course.rows().iter().all(|row| (row.read.ios(), row.write.ios()) == (4_500, 500)));
        let all = course.all();
        assert_eq!((all.read.ios(), all.write.ios()), (117_000, 13_000));
        assert_eq!(all.read.latency_max(), Nanos(130_000));
    }

    #[test]
    fn a_length_is_a_multiple_of_the_one_before() {
        assert!(LENGTHS_MS.windows(2).all(|pair| pair[1].is_multiple_of(pair[0])));
        let mut course = Course::new(Nanos::ZERO);
        course.record(IoKind::Read, 1, Nanos(1), Nanos::from_secs(10 * 365 * 86_400));
        assert_eq!(course.length(), Nanos::from_secs(64 * 86_400));
        assert_eq!(course.rows().len(), 58);
    }
}
