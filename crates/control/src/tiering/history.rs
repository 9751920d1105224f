//! The last moves of a tier, and how many there were.

use std::collections::{BTreeSet, VecDeque};

use tier0_api::{TierMoves, TierReason};
use tier0_units::{ExtentId, Nanos};

/// Moves that are remembered.
const KEPT: usize = 4096;

/// A move that was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Made {
    /// When.
    pub(crate) at: Nanos,
    /// Which extent.
    pub(crate) extent: ExtentId,
    /// Whether to the fast group.
    pub(crate) to_fast: bool,
    /// Why.
    pub(crate) reason: TierReason,
    /// What it was worth.
    pub(crate) value: f64,
}

/// The moves of a pool since the start.
#[derive(Default)]
pub(crate) struct History {
    /// Oldest first.
    last: VecDeque<Made>,
    counts: TierMoves,
}

impl History {
    /// An extent of so many bytes has moved.
    pub(crate) fn add(&mut self, made: Made, bytes: u64) {
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back(made);
        self.counts.bytes += bytes;
        let count = match made.reason {
            TierReason::Hot => &mut self.counts.promoted,
            TierReason::GivesWay => &mut self.counts.demoted,
            TierReason::Placed => &mut self.counts.placed,
        };
        *count += 1;
    }

    /// An extent has not moved.
    pub(crate) fn add_failure(&mut self) {
        self.counts.failed += 1;
    }

    /// How many there were.
    pub(crate) fn counts(&self) -> TierMoves {
        self.counts
    }

    /// The extents that have moved since a time.
    pub(crate) fn since(&self, time: Nanos) -> BTreeSet<ExtentId> {
        let late = self.last.iter().rev().take_while(|made| made.at >= time);
        late.map(|made| made.extent).collect()
    }

    /// The moves of an extent, the newest first.
    pub(crate) fn of(&self, extent: ExtentId) -> impl Iterator<Item = &Made> {
        self.last.iter().rev().filter(move |made| made.extent == extent)
    }
}
