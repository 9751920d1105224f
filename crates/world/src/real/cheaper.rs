//! Which of two ways of doing the same costs less, learnt by doing both.
//!
//! What is cheaper depends on the machine, and on what else it does: nobody knows beforehand. The one that has been
//! cheaper is taken, and the other is tried now and then, the more seldom the more often it lost. Trials come in series,
//! because what a way costs may show only where it is taken again and again.
//!
//! Only what was measured one right after the other is compared, by medians: a shared machine is slow for a while, and
//! what the other way cost before that says nothing.

use tier0_units::Nanos;

/// One of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    First,
    Second,
}

/// So many times in a row a way is taken before it is judged.
const SERIES: usize = 64;
/// The way that is taken costs what the cheapest of its last series did.
const RECENT: usize = 4;
/// After so many times in one way the other is tried, if that has proved itself before.
const TRIAL_AFTER_LEAST: u32 = 4 << 10;
/// The same where trials keep failing or what they find does not last: 64 in 256 Ki are nothing.
const TRIAL_AFTER_MOST: u32 = 256 << 10;
/// The other is tried at once where the way that is taken has become dearer by this factor,
const DEAR: u64 = 2;
/// but for so many times after a trial.
const REST: u32 = 512;
/// A way must be cheaper by this part to be taken instead.
const MARGIN: u64 = 16;

/// What has been learnt.
#[derive(Debug)]
pub(super) struct Cheaper {
    /// What the present series has cost so far, nanoseconds per MiB.
    costs: [u64; SERIES],
    count: usize,
    taken: Way,
    /// The series is one of the way that is not taken.
    trial: bool,
    /// What the last series of the way that is taken cost, and the cheapest since the last trial; nanoseconds per MiB.
    recent: [u64; RECENT],
    least: u64,
    /// Times since the last trial, and since the last change.
    since_trial: u32,
    since_change: u32,
    /// After so many times each way is tried while it is not taken.
    trial_after: [u32; 2],
}

impl Cheaper {
    pub(super) fn new() -> Cheaper {
        Cheaper {
            costs: [0; SERIES],
            count: 0,
            taken: Way::First,
            trial: false,
            recent: [u64::MAX; RECENT],
            least: u64::MAX,
            since_trial: 0,
            since_change: 0,
            trial_after: [SERIES as u32; 2],
        }
    }

    /// The way to take now.
    pub(super) fn way(&self) -> Way {
        if self.trial { self.taken.other() } else { self.taken }
    }

    /// Notes that moving `bytes` (not 0) this way took `time`.
    pub(super) fn learn(&mut self, bytes: usize, time: Nanos) {
        self.costs[self.count] = time.0.saturating_mul(1 << 20) / bytes as u64;
        self.count += 1;
        if self.count < SERIES {
            return;
        }
        self.count = 0;
        let cost = *self.costs.select_nth_unstable(SERIES / 2).1;
        if self.trial {
            return self.judge_trial(cost);
        }
        self.recent.rotate_left(1);
        self.recent[RECENT - 1] = cost;
        self.least = self.least.min(cost);
        self.since_trial = self.since_trial.saturating_add(SERIES as u32);
        self.since_change = self.since_change.saturating_add(SERIES as u32);
        let dear = self.since_trial >= REST && self.present() / DEAR > self.least;
        self.trial = dear || self.since_trial >= self.trial_after[self.taken.other() as usize];
    }

    /// The other way cost this.
    fn judge_trial(&mut self, cost: u64) {
        let other = self.taken.other();
        self.trial = false;
        self.since_trial = 0;
        if cost + cost / MARGIN < self.present() {
            if self.since_change >= TRIAL_AFTER_LEAST {
                // It was good for long: this may be a mistake.
                self.trial_after[self.taken as usize] = REST;
            } else {
                self.put_off(self.taken);
            }
            self.taken = other;
            self.since_change = 0;
            self.recent = [u64::MAX; RECENT];
            self.recent[RECENT - 1] = cost;
            self.least = cost;
        } else {
            self.put_off(other);
            self.least = self.present();
        }
    }

    /// What the way that is taken costs now: a dear series among cheap ones was a stall.
    fn present(&self) -> u64 {
        self.recent.into_iter().min().expect("there is more than one")
    }

    /// Waits twice as long as before with the next trial of this way.
    fn put_off(&mut self, way: Way) {
        let after = &mut self.trial_after[way as usize];
        *after = (*after * 2).clamp(TRIAL_AFTER_LEAST, TRIAL_AFTER_MOST);
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
        assert_eq!(go(&mut Cheaper::new(), 1_000, |_| [10_000, 20_000]), SERIES as u32, "one trial");
        assert_eq!(
            go(&mut Cheaper::new(), 1_000, |_| [10_000, 9_900]),
            SERIES as u32,
            "that is not worth a change"
        );
    }

    #[test]
    fn the_loser_is_tried_ever_more_seldom() {
        let mut cheaper = Cheaper::new();
        let times = 10_000_000;
        let tried = go(&mut cheaper, times, |_| [10_000, 20_000]);
        assert!((30..60).contains(&(tried / SERIES as u32)), "{tried} of {times}");
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
    fn who_was_good_for_long_is_returned_to_soon() {
        let mut cheaper = Cheaper::new();
        for _ in 0..4 {
            go(&mut cheaper, 300_000, |_| [16_000, 6_000]);
            go(&mut cheaper, 2_000, |_| [20_000, 60_000]);
        }
        let second = go(&mut cheaper, 20_000, |_| [16_000, 6_000]);
        assert!(second > 10_000, "{second} of 20000");
    }

    #[test]
    fn slow_times_of_the_machine_say_nothing() {
        // They begin and end while either way is taken, and some last as long as a trial.
        for phase in [50, 150, 1_000, 10_000] {
            let slow = |time: u32| {
                [1, 3, 1, 1, 6, 2, 1, 9][((time / phase).wrapping_mul(0x9e37_79b1) >> 29) as usize]
            };
            let costs = |time| [16_000 * slow(time), 6_000 * slow(time)];
            let times = 1_000_000;
            let second = go(&mut Cheaper::new(), times, costs);
            assert!(second > times / 10 * 9, "{second} of {times}, in phases of {phase}");
        }
    }

    #[test]
    fn an_interruption_says_nothing() {
        let costs = |time| [10_000, if time % 50 == 0 { 10_000_000 } else { 8_000 }];
        assert!(go(&mut Cheaper::new(), 100_000, costs) > 90_000);
    }
}
