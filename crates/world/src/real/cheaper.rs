//! Which of two ways of doing the same costs less, learnt by doing both.
//!
//! What is cheaper depends on the machine, and on what else it does: nobody knows beforehand. The one that has been
//! cheaper is taken, and the other is tried now and then, the more seldom the more often it lost. Trials come in series,
//! because what a way costs may show only where it is taken again and again.

use tier0_units::Nanos;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    First,
    Second,
}

/// So many times in a row a way is tried before it is judged.
const SERIES: u32 = 64;
/// After so many times in one way, which won the last trial and has lasted since, the other is tried.
const TRIAL_AFTER_LEAST: u32 = 4 << 10;
/// The same where trials keep failing or do not last: 64 in 256 Ki are nothing.
const TRIAL_AFTER_MOST: u32 = 256 << 10;
/// How much one cost counts in the average: a 32nd.
const WEIGHT_SHIFT: u32 = 5;
/// One that was interrupted counts for so many times the average at most.
const OUTLIER: u64 = 4;
/// A way must be cheaper by this part to be taken instead.
const MARGIN: u64 = 16;

/// What has been learnt.
#[derive(Debug)]
pub(super) struct Cheaper {
    /// Nanoseconds per MiB of either way; 0 where nothing is known.
    costs: [u64; 2],
    taken: Way,
    trial: bool,
    /// Times since the last change between the two.
    times: u32,
    trial_after: u32,
    /// The way that is taken won the last trial.
    won: bool,
}

impl Cheaper {
    pub(super) fn new() -> Cheaper {
        Cheaper { costs: [0; 2], taken: Way::First, trial: false, times: 0, trial_after: SERIES, won: false }
    }

    /// The way to take now.
    pub(super) fn way(&self) -> Way {
        if self.trial { self.taken.other() } else { self.taken }
    }

    /// Notes that moving `bytes` (not 0) this way took `time`.
    pub(super) fn learn(&mut self, bytes: usize, time: Nanos) {
        let way = self.way();
        let cost = time.0.saturating_mul(1 << 20) / bytes as u64;
        let average = &mut self.costs[way as usize];
        *average = match *average {
            0 => cost,
            known => known - (known >> WEIGHT_SHIFT) + (cost.min(known * OUTLIER) >> WEIGHT_SHIFT),
        };
        self.times += 1;
        if self.trial {
            if self.times >= SERIES {
                self.judge_trial();
            }
        } else if self.times >= SERIES && self.is_cheaper(way.other()) {
            // What was found out in a trial does not hold, or no longer does.
            self.taken = way.other();
            self.won = false;
            self.times = 0;
            self.lost();
        } else if self.times >= self.trial_after {
            if self.won {
                self.trial_after = TRIAL_AFTER_LEAST;
            }
            self.trial = true;
            self.times = 0;
        }
    }

    fn judge_trial(&mut self) {
        self.trial = false;
        self.times = 0;
        self.won = self.is_cheaper(self.taken.other());
        if self.won {
            self.taken = self.taken.other();
            self.trial_after = self.trial_after.max(TRIAL_AFTER_LEAST);
        } else {
            self.lost();
        }
    }

    fn lost(&mut self) {
        self.trial_after = (self.trial_after * 2).clamp(TRIAL_AFTER_LEAST, TRIAL_AFTER_MOST);
    }

    /// Whether it is known to be.
    fn is_cheaper(&self, way: Way) -> bool {
        let (cost, other) = (self.costs[way as usize], self.costs[way.other() as usize]);
        cost > 0 && cost + cost / MARGIN < other
    }
}

impl Way {
    fn other(self) -> Way {
        match self {
            Way::First => Way::Second,
            Way::Second => Way::First,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: usize = 24 << 10;

    /// Goes on for `times` times with these costs in ns; how often the second way was taken.
    fn go(cheaper: &mut Cheaper, times: u32, mut costs: impl FnMut(u32) -> [u64; 2]) -> u32 {
        let mut second = 0;
        for time in 0..times {
            let way = cheaper.way();
            second += u32::from(way == Way::Second);
            cheaper.learn(BYTES, Nanos(costs(time)[way as usize]));
        }
        second
    }

    #[test]
    fn the_cheaper_way_is_found_at_once_and_kept() {
        assert!(go(&mut Cheaper::new(), 1_000, |_| [20_000, 10_000]) > 900);
        assert_eq!(go(&mut Cheaper::new(), 1_000, |_| [10_000, 20_000]), SERIES, "one trial");
        assert_eq!(go(&mut Cheaper::new(), 1_000, |_| [10_000, 9_900]), SERIES, "that is not worth a change");
    }

    #[test]
    fn the_loser_is_tried_ever_more_seldom() {
        let mut cheaper = Cheaper::new();
        let times = 10_000_000;
        let tried = go(&mut cheaper, times, |_| [10_000, 20_000]);
        assert!((30 * SERIES..60 * SERIES).contains(&tried), "{tried} of {times}");
    }

    #[test]
    fn other_times_are_noticed() {
        let mut cheaper = Cheaper::new();
        assert!(go(&mut cheaper, 10_000, |_| [20_000, 10_000]) > 9_000);
        assert!(go(&mut cheaper, 10_000, |_| [20_000, 40_000]) < 500, "the way that is taken became dear");
        assert!(go(&mut cheaper, 20_000, |_| [20_000, 10_000]) > 9_000, "the one that is not became cheap");
    }

    #[test]
    fn a_way_that_becomes_dear_by_being_taken_is_left() {
        // As memory does that is cheap until what lies at hand is used up.
        let (mut cheaper, mut at_hand, times) = (Cheaper::new(), 500, 1_000_000);
        let mut second = 0;
        for _ in 0..times {
            let way = cheaper.way();
            let cost = match way {
                Way::First => {
                    at_hand = 500;
                    15_000
                }
                Way::Second if at_hand > 0 => {
                    second += 1;
                    at_hand -= 1;
                    10_000
                }
                Way::Second => {
                    second += 1;
                    80_000
                }
            };
            cheaper.learn(BYTES, Nanos(cost));
        }
        assert!(second < times / 50, "{second} of {times}");
    }

    #[test]
    fn an_interruption_says_nothing() {
        let costs = |time| [10_000, if time % 50 == 0 { 10_000_000 } else { 8_000 }];
        assert!(go(&mut Cheaper::new(), 100_000, costs) > 90_000);
    }
}
