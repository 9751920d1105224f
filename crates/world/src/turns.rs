//! Turns of a runtime: how much of the clock's time passed without one.

use std::cell::Cell;

use tier0_units::Nanos;

/// What a turn may take beyond its sleep without anything being lost.
const ALLOWED: Nanos = Nanos::from_millis(100);
/// From here on a turn is told as slow.
const TOLD: Nanos = Nanos::from_secs(1);

/// The shortest time between two warnings.
const WARNED_EVERY: Nanos = Nanos::from_secs(60);

/// How often a runtime stood still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlowTurns {
    /// How often, for a second or longer.
    pub count: u64,
    /// For how long the last time.
    pub last: Nanos,
}

/// The account of a runtime's turns.
#[derive(Default)]
pub(crate) struct Turns {
    lost: Cell<Nanos>,
    slow: Cell<SlowTurns>,
    /// What all turns took.
    all: Cell<Nanos>,
    /// When of that a warning was given, and how many slow turns there had been.
    warned: Cell<(Nanos, u64)>,
}

impl Turns {
    /// A turn took `time`, of which it meant to sleep `asleep`.
    pub(crate) fn took(&self, time: Nanos, asleep: Nanos) {
        self.all.set(self.all.get().saturating_add(time));
        let over = time.saturating_sub(asleep);
        let lost = over.saturating_sub(ALLOWED);
        if lost == Nanos::ZERO {
            return;
        }
        self.lost.set(self.lost.get().saturating_add(lost));
        if over >= TOLD {
            let count = self.slow.get().count + 1;
            self.slow.set(SlowTurns { count, last: over });
            self.warn(over, count);
        }
    }

    /// Tells of a slow turn, unless that was done a short while ago.
    fn warn(&self, over: Nanos, count: u64) {
        let now = self.all.get();
        let (at, told) = self.warned.get();
        if told > 0 && now.saturating_sub(at) < WARNED_EVERY {
            return;
        }
        self.warned.set((now, count));
        let times = count - told;
        tracing::warn!(%over, times, "this thread stood still; drives are not blamed for it");
    }

    pub(crate) fn lost(&self) -> Nanos {
        self.lost.get()
    }

    pub(crate) fn slow(&self) -> SlowTurns {
        self.slow.get()
    }
}
