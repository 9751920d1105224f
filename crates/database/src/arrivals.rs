//! Transactions that arrive at a rate, whatever the database does: exponentially apart.

use std::cell::{Cell, RefCell};

use tier0_units::Nanos;
use tier0_world::Random;

/// The random stream of arrivals; users have the streams from 0 on.
const STREAM: u64 = u64::MAX - 1;

/// Arrivals that users take in turn.
pub(crate) struct Arrivals {
    mean_s: f64,
    last: Cell<Nanos>,
    random: RefCell<Random>,
}

impl Arrivals {
    /// So many in a second, on average, from `now` on.
    pub(crate) fn new(per_s: f64, now: Nanos, seed: u64) -> Arrivals {
        Arrivals {
            mean_s: 1.0 / per_s,
            last: Cell::new(now),
            random: RefCell::new(Random::new(seed, STREAM)),
        }
    }

    /// When the next one arrives, or has arrived while all users were busy.
    pub(crate) fn take(&self) -> Nanos {
        let gap = self.random.borrow_mut().exponential(self.mean_s);
        self.last.set(self.last.get().saturating_add(Nanos::from_secs_f64(gap)));
        self.last.get()
    }
}
