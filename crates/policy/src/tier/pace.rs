//! How many moves may begin in a second while hosts are served.
//!
//! Each round has a time in which nothing moves and one in which extents move. What hosts wait for the slow group in both is
//! compared: where moves make them wait longer, fewer begin in the next round.

/// Moves in a second at the beginning.
const START: f64 = 8.0;
/// The least.
const LEAST: f64 = 1.0;
/// The most while hosts are served.
const MOST: f64 = 128.0;
/// With moves hosts may wait so many times as long as without.
const TOLERATED: f64 = 1.25;
/// Up to here the pace grows.
const UNNOTICED: f64 = 1.12;
/// By this much it grows.
const GROWTH: f64 = 1.5;
/// A mean of fewer accesses says nothing.
const ACCESSES_MIN: u64 = 16;

/// Accesses to a group's drives that hosts waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies {
    /// How many.
    pub count: u64,
    /// How long they took together, nanoseconds.
    pub total_ns: u64,
}

impl Latencies {
    /// Those since an earlier look.
    pub fn since(self, earlier: Latencies) -> Latencies {
        Latencies {
            count: self.count.saturating_sub(earlier.count),
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
        }
    }

    /// Those of both.
    pub fn and(self, other: Latencies) -> Latencies {
        Latencies { count: self.count + other.count, total_ns: self.total_ns + other.total_ns }
    }

    /// The mean in nanoseconds; `None` of too few.
    pub fn mean_ns(self) -> Option<f64> {
        (self.count >= ACCESSES_MIN).then(|| self.total_ns as f64 / self.count as f64)
    }
}

/// What a round did to the pace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaceChange {
    /// Hosts do not notice the moves.
    Grew,
    /// Hosts notice them, within what is tolerated; or too little was measured.
    Stayed,
    /// Hosts waited too long.
    Halved,
    /// Hosts ask for nothing.
    Idle,
}

/// The pace of moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    per_s: f64,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { per_s: START }
    }
}

impl Pace {
    /// Moves that may begin in a second.
    pub fn per_s(&self) -> f64 {
        self.per_s
    }

    /// Fewer moves begin from now on.
    pub fn halve(&mut self) {
        self.per_s = (self.per_s / 2.0).max(LEAST);
    }

    /// A round has ended: what hosts waited for while nothing moved, and while extents moved.
    pub fn learn(&mut self, quiet: Latencies, moving: Latencies) -> PaceChange {
        if quiet.count == 0 && moving.count == 0 {
            return PaceChange::Idle;
        }
        let (Some(quiet), Some(moving)) = (quiet.mean_ns(), moving.mean_ns()) else {
            return PaceChange::Stayed;
        };
        if moving > TOLERATED * quiet {
            self.halve();
            return PaceChange::Halved;
        }
        if moving <= UNNOTICED * quiet {
            self.per_s = (self.per_s * GROWTH).min(MOST);
            return PaceChange::Grew;
        }
        PaceChange::Stayed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(ms: u64) -> Latencies {
        Latencies { count: 100, total_ns: 100 * ms * 1_000_000 }
    }

    #[test]
    fn it_halves_where_hosts_suffer_and_never_stops() {
        let mut pace = Pace::default();
        assert_eq!(pace.learn(mean(10), mean(13)), PaceChange::Halved);
        assert_eq!(pace.per_s(), START / 2.0);
        (0..20).for_each(|_| _ = pace.learn(mean(10), mean(50)));
        assert_eq!(pace.per_s(), LEAST);
        assert_eq!(pace.learn(mean(10), mean(12)), PaceChange::Stayed);
        (0..20).for_each(|_| _ = pace.learn(mean(10), mean(10)));
        assert_eq!(pace.per_s(), MOST);
        assert_eq!(pace.learn(Latencies::default(), Latencies::default()), PaceChange::Idle);
    }
}
