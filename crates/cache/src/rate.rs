//! How fast something goes while there is anything to destage, measured: pages that are destaged, or pages of which the
//! log is rid.

use tier0_units::Nanos;

/// Pages per second while there was something to destage, smoothed.
#[derive(Debug)]
pub(crate) struct DestageRate {
    pages_per_s: f64,
    measured: bool,
    pages: u64,
    busy: Nanos,
    /// When it began to be busy, or was last looked at.
    since: Option<Nanos>,
}

/// How long a measurement lasts at least.
const MEASURE_MIN: Nanos = Nanos::from_millis(50);
/// The weight of the newest measurement: about half a second is remembered.
const NEWEST_WEIGHT: f64 = 0.1;
/// What is believed until something was measured: 1 MiB/s, below any drive.
const UNKNOWN_PAGES_PER_S: f64 = 256.0;

impl Default for DestageRate {
    fn default() -> DestageRate {
        DestageRate {
            pages_per_s: UNKNOWN_PAGES_PER_S,
            measured: false,
            pages: 0,
            busy: Nanos::ZERO,
            since: None,
        }
    }
}

impl DestageRate {
    /// The rate, pages per second.
    pub(crate) fn pages_per_s(&self) -> f64 {
        self.pages_per_s
    }

    /// A batch begins.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.since.get_or_insert(now);
    }

    /// A batch has ended, and `pages` pages are done since the last one; `busy` says whether others are under way.
    pub(crate) fn end(&mut self, now: Nanos, pages: u64, busy: bool) {
        let since = self.since.expect("a batch that ends has begun");
        self.busy += now.saturating_sub(since);
        self.since = busy.then_some(now);
        self.pages += pages;
        if self.busy >= MEASURE_MIN && self.pages > 0 {
            let newest = self.pages as f64 / self.busy.as_secs_f64();
            let weight = if self.measured { NEWEST_WEIGHT } else { 1.0 };
            self.pages_per_s += weight * (newest - self.pages_per_s);
            (self.measured, self.pages, self.busy) = (true, 0, Nanos::ZERO);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_does_not_count_as_slowness() {
        let mut rate = DestageRate::default();
        rate.begin(Nanos::from_secs(1));
        rate.begin(Nanos::from_secs(2));
        rate.end(Nanos::from_secs(2), 1000, true);
        assert_eq!(rate.pages_per_s(), 1000.0);
        rate.end(Nanos::from_secs(3), 1000, false);
        rate.begin(Nanos::from_secs(100));
        rate.end(Nanos::from_secs(101), 1000, false);
        assert!((rate.pages_per_s() - 1000.0).abs() < 1e-9);
    }
}
