//! One read: what it may find.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use super::Holds;
use super::write::Version;

/// A read under way: what each of its units might hold when it began. It can be used again for the next read.
#[derive(Clone, Debug, Default)]
pub struct ReadTicket {
    pub(super) first: u64,
    pub(super) units: Vec<Noted>,
    /// What the units might hold, one unit's versions after the other's.
    pub(super) known: Vec<Version>,
}

/// What was noted of a unit when a read began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Noted {
    /// Writes that began since have numbers above this one.
    pub(super) above: u32,
    /// No write was under way.
    pub(super) quiet: bool,
    /// Where the unit's part of what is known ends.
    pub(super) known_end: usize,
}

impl ReadTicket {
    /// The units that are read.
    pub fn units(&self) -> Range<u64> {
        self.first..self.first + self.units.len() as u64
    }

    /// What was noted of a unit, and what it might hold.
    pub(super) fn noted(&self, unit: u64) -> (Noted, &[Version]) {
        let index = (unit - self.first) as usize;
        let start = index.checked_sub(1).map_or(0, |before| self.units[before].known_end);
        let noted = self.units[index];
        (noted, &self.known[start..noted.known_end])
    }
}

/// What a read may find in a unit when it ends: what the unit might hold when the read began, and whatever began since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allowed<'a> {
    /// In the order in which their writes began.
    pub(super) known: Cow<'a, [Version]>,
    /// Writes that began since have numbers above this one,
    pub(super) above: u32,
    /// and up to this one.
    pub(super) up_to: u32,
    /// The newest of these whose write left zeros.
    pub(super) zeroed_since: Option<u32>,
    /// No write was under way when the read began, and none has begun since.
    pub(super) at_rest: bool,
}

impl Allowed<'_> {
    /// The version of a unit with this address that holds this, if it may. Of several zeros one cannot tell which they
    /// are: the newest that they may be.
    pub fn version_of(&self, holds: &Holds, address: u64) -> Option<u32> {
        let mut newest_first = self.known.iter().rev();
        match *holds {
            Holds::Zeros => self
                .zeroed_since
                .or_else(|| newest_first.find(|version| version.zero).map(|version| version.number)),
            Holds::Stamp { address: found, version } => {
                let is_known = newest_first.any(|known| *known == Version { number: version, zero: false });
                let is_new = version > self.above && version <= self.up_to;
                (found == address && (is_known || is_new)).then_some(version)
            }
            Holds::OtherSeed { .. } | Holds::Noise => None,
        }
    }

    /// Whether the unit may never have been written.
    pub fn is_perhaps_unwritten(&self) -> bool {
        self.known.iter().any(|version| version.number == 0)
    }

    /// The newest number.
    pub fn newest(&self) -> u32 {
        self.known.iter().map(|version| version.number).fold(self.up_to, u32::max)
    }

    /// All numbers, of units that count their writes each by itself.
    pub fn numbers(&self) -> Vec<u32> {
        let known = self.known.iter().map(|version| version.number);
        let mut all: Vec<u32> = known.chain(self.above + 1..=self.up_to).collect();
        all.sort_unstable();
        all
    }

    /// The same, for a report.
    pub fn into_owned(self) -> Allowed<'static> {
        Allowed { known: Cow::Owned(self.known.into_owned()), ..self }
    }
}

impl fmt::Display for Allowed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, version) in self.known.iter().enumerate() {
            let separator = if index == 0 { "" } else { " or " };
            write!(f, "{separator}{version}")?;
        }
        if self.up_to > self.above {
            write!(f, " or what was written meanwhile (versions above {} up to {})", self.above, self.up_to)?;
        }
        Ok(())
    }
}
