//! The budget of flash writes: a token bucket that fills at some times the device's size a day.

use tier0_units::Nanos;

const DAY_SECS: f64 = 86_400.0;

/// What may be written, bytes.
pub(crate) struct Budget {
    level: f64,
    per_second: f64,
    most: f64,
    filled: Nanos,
}

impl Budget {
    /// Of a device of so many bytes, full.
    pub(crate) fn full(bytes: u64, writes_per_day: f64, now: Nanos) -> Budget {
        let most = bytes as f64;
        Budget { level: most, per_second: most * writes_per_day.max(0.0) / DAY_SECS, most, filled: now }
    }

    /// Of a device that was in use, with what was left. How much time has passed since nobody knows.
    pub(crate) fn with(bytes: u64, writes_per_day: f64, level: f64, now: Nanos) -> Budget {
        let mut budget = Budget::full(bytes, writes_per_day, now);
        budget.level = level.clamp(-budget.most, budget.most);
        budget
    }

    /// What is left, bytes; less than nothing where more was written.
    pub(crate) fn level(&mut self, now: Nanos) -> f64 {
        let time = now.saturating_sub(self.filled).as_secs_f64();
        self.filled = now;
        // Without a limit to the writes the product may be no number where no time has passed.
        let more = if time > 0.0 { time * self.per_second } else { 0.0 };
        self.level = (self.level + more).min(self.most);
        self.level
    }

    /// Takes bytes that are to be written, if there are as many.
    pub(crate) fn take(&mut self, bytes: u64, now: Nanos) -> bool {
        let is_there = self.level(now) >= bytes as f64;
        if is_there {
            self.level -= bytes as f64;
        }
        is_there
    }

    /// Nothing is left.
    pub(crate) fn use_up(&mut self) {
        self.level = self.level.min(0.0);
    }

    /// Takes bytes that have to be written in any case.
    pub(crate) fn charge(&mut self, bytes: u64, now: Nanos) {
        self.level = (self.level(now) - bytes as f64).max(-self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fills_with_time() {
        let mut budget = Budget::full(86_400, 2.0, Nanos(0));
        assert!(budget.take(86_400, Nanos(0)) && !budget.take(1, Nanos(0)));
        assert!(budget.take(20, Nanos::from_secs(10)) && !budget.take(1, Nanos::from_secs(10)));
        budget.charge(100, Nanos::from_secs(10));
        assert!(!budget.take(100, Nanos::from_secs(60)) && budget.take(100, Nanos::from_secs(110)));
    }

    #[test]
    fn none_and_no_limit_are_budgets() {
        let mut none = Budget::with(100, 0.0, 0.0, Nanos(0));
        assert!(!none.take(1, Nanos::from_secs(1_000_000)));
        let mut endless = Budget::with(100, f64::INFINITY, 0.0, Nanos(0));
        assert!(!endless.take(1, Nanos(0)) && endless.take(100, Nanos(1)));
    }
}
