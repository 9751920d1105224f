//! One write of one unit, as the book has it.

use std::fmt;
use std::ops::Range;

/// Moments of a book: it counts what begins and what ends.
pub type Moment = u64;

/// What a write leaves in a unit that it covers, once it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A stamp of its version.
    Stamp,
    /// Zeros.
    Zeros,
    /// Zeros, or what was there before: acknowledged or not, it may have left the unit alone.
    PerhapsZeros,
}

impl Effect {
    /// Of a discard of the sectors `range` on one of them: granules of so many sectors become zeros where they are
    /// discarded whole.
    pub fn of_discard(range: &Range<u64>, granule: u64, sector: u64) -> Effect {
        let start = sector / granule * granule;
        let is_whole = range.start <= start && start.saturating_add(granule) <= range.end;
        if is_whole { Effect::Zeros } else { Effect::PerhapsZeros }
    }
}

/// A version that a unit may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Its number; 0 stands for what was there before the first write.
    pub number: u32,
    /// It reads as zeros. What was there before the first write counts as zeros.
    pub zero: bool,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Version { number: 0, .. } => f.write_str("zeros, never written"),
            Version { number, zero: true } => write!(f, "zeros of version {number}"),
            Version { number, zero: false } => write!(f, "version {number}"),
        }
    }
}

/// A write of a unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) version: Version,
    /// Done or not, it may have left the unit alone.
    may_skip: bool,
    began: Moment,
    /// Nothing while it is under way.
    pub(super) ended: Option<Moment>,
    pub(super) acknowledged: bool,
    /// It survives a crash, or what was written over it does.
    pub(super) stable: bool,
}

impl Entry {
    /// A write that begins.
    pub(super) fn begun(number: u32, effect: Effect, began: Moment) -> Entry {
        Entry {
            version: Version { number, zero: effect != Effect::Stamp },
            may_skip: effect == Effect::PerhapsZeros,
            began,
            ended: None,
            acknowledged: false,
            stable: false,
        }
    }

    /// What a unit certainly holds since `moment`.
    pub(super) fn certain(version: Version, moment: Moment, stable: bool) -> Entry {
        Entry { version, may_skip: false, began: moment, ended: Some(moment), acknowledged: true, stable }
    }

    /// Since when nothing older can be left, if this write counts.
    pub(super) fn overwrites_since(&self) -> Option<Moment> {
        (self.acknowledged && !self.may_skip).then_some(self.began)
    }

    /// Whether nothing of it can be left once something that began at `moment` counts.
    pub(super) fn is_overwritten_by(&self, moment: Option<Moment>) -> bool {
        self.ended.is_some_and(|ended| Some(ended) < moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discard_zeroes_granules_that_it_covers_whole() {
        let effects = |range: Range<u64>| -> Vec<bool> {
            range.clone().map(|sector| Effect::of_discard(&range, 4, sector) == Effect::Zeros).collect()
        };
        assert_eq!(effects(0..4), [true; 4]);
        assert_eq!(effects(1..9), [false, false, false, true, true, true, true, false]);
        assert_eq!(effects(5..7), [false; 2]);
    }
}
