//! How much a tier may write to its flash: so many times its size in a day.

use tier0_description::FLASH_WRITES_PER_DAY;
use tier0_units::Nanos;

/// What was not written may be written later, up to this part of a day. The first fill of the flash comes on top.
const BURST_DAYS: f64 = 0.25;
const FIRST_FILL: f64 = 1.0;
const DAY_S: f64 = 86_400.0;

/// What may be written now.
pub(crate) struct WriteAllowance {
    writes_per_day: u32,
    /// Shares of the flash that may be written now.
    left: f64,
    at: Nanos,
}

impl Default for WriteAllowance {
    fn default() -> WriteAllowance {
        let mut allowance = WriteAllowance { writes_per_day: 0, left: 0.0, at: Nanos(0) };
        allowance.set(FLASH_WRITES_PER_DAY);
        allowance
    }
}

impl WriteAllowance {
    /// The flash may be written over so often in a day.
    pub(crate) fn set(&mut self, writes_per_day: u32) {
        self.writes_per_day = writes_per_day;
        self.left = FIRST_FILL + f64::from(writes_per_day) * BURST_DAYS;
    }

    /// It is now this time.
    pub(crate) fn advance(&mut self, now: Nanos) {
        let days = now.saturating_sub(self.at).0 as f64 / 1e9 / DAY_S;
        self.at = now;
        let per_day = f64::from(self.writes_per_day);
        let most = (BURST_DAYS * per_day).max(self.left);
        self.left = (self.left + days * per_day).min(most);
    }

    /// How many of `all` slots may be written now.
    pub(crate) fn slots(&self, all: u64) -> u64 {
        (self.left.max(0.0) * all as f64) as u64
    }

    /// One of `all` slots was written.
    pub(crate) fn spend(&mut self, all: u64) {
        self.left -= 1.0 / all.max(1) as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_allows_so_many_writes() {
        let mut allowance = WriteAllowance::default();
        assert_eq!(allowance.slots(1000), 1750);
        (0..1750).for_each(|_| allowance.spend(1000));
        assert_eq!(allowance.slots(1000), 0);
        allowance.advance(Nanos::from_secs(8640));
        assert_eq!(allowance.slots(1000), 300, "a tenth of a day, three times");
        allowance.advance(Nanos::from_secs(864_000));
        assert_eq!(allowance.slots(1000), 750, "no more than a quarter of a day is saved");
    }
}
