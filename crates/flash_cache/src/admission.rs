//! What may come in: lines that were read lately, as far as the budget of writes lasts.

use tier0_units::Nanos;

use crate::budget::Budget;
use crate::doorkeeper::Doorkeeper;

/// What decides whether a line comes in.
pub(crate) struct Admission {
    pub(crate) doorkeeper: Doorkeeper,
    pub(crate) budget: Budget,
    /// Lines that come in where there is room without using up the budget: as many as fill what was empty when it was made.
    pub(crate) free_fills: u64,
}

/// The budget does not last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverBudget;

impl Admission {
    /// With a doorkeeper for so many lines, and nothing that comes in for nothing.
    pub(crate) fn new(lines: u64, budget: Budget) -> Admission {
        Admission { doorkeeper: Doorkeeper::new(lines), budget, free_fills: 0 }
    }

    /// Whether a line of this hash is worth its writes: it `is_known` to be read again, there `is_room`, or it was read lately,
    /// which is noted.
    pub(crate) fn is_welcome(&mut self, hash: u64, is_known: bool, is_room: impl FnOnce() -> bool) -> bool {
        is_known || is_room() || self.doorkeeper.has_seen(hash)
    }

    /// Pays for bytes that are written now. A whole line that takes an empty place costs nothing as long as there are fills for
    /// nothing.
    ///
    /// # Errors
    /// [`OverBudget`] where they may not be written.
    pub(crate) fn pay(&mut self, bytes: u64, takes_empty: bool, now: Nanos) -> Result<(), OverBudget> {
        if takes_empty && self.free_fills > 0 {
            self.free_fills -= 1;
            return Ok(());
        }
        self.budget.take(bytes, now).then_some(()).ok_or(OverBudget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_once_waits_for_room_and_all_waits_for_the_budget() {
        let day = Nanos::from_secs(86_400);
        let mut admission = Admission::new(1000, Budget::with(8192, 1.0, 0.0, Nanos::ZERO));
        admission.free_fills = 1;
        assert!(admission.is_welcome(7, false, || true), "there is room");
        assert!(!admission.is_welcome(7, false, || false), "the doorkeeper has not seen it");
        assert!(admission.is_welcome(7, false, || false), "the doorkeeper has seen it");
        assert!(admission.is_welcome(8, true, || false), "it is known");
        assert_eq!(admission.pay(8192, true, Nanos::ZERO), Ok(()), "an empty place is free");
        assert_eq!(admission.pay(8192, true, Nanos::ZERO), Err(OverBudget));
        assert_eq!(admission.pay(8192, false, day), Ok(()), "a day's budget");
    }
}
