//! The erase blocks of one group of dies: which are free, which take new data, which one is being collected.
//!
//! Wear levelling is in the choice of blocks. *Dynamic*: host data, the more often rewritten, goes to the
//! least worn free block, moved data to the most worn one. *Static*: when the wear of a group's blocks has
//! spread too far, the least worn full block is collected, whatever it holds (see `collect`).
//!
//! Invariants: a block is free, open, a victim or full; the collector can always get a block.

/// No block, page or slot.
pub(super) const NONE: u32 = u32::MAX;

/// Where the next page goes: the slots from `next` to `end` of an open block. Empty means no block is open.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frontier {
    pub(super) next: u32,
    pub(super) end: u32,
}

impl Frontier {
    /// Whether a new block is needed.
    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.next == self.end
    }
}

/// The state of one group's blocks. Block numbers count over the whole drive.
#[derive(Clone, Debug)]
pub(super) struct GroupBlocks {
    /// Erased blocks.
    pub(super) free: Vec<u32>,
    /// Takes host data.
    pub(super) host: Frontier,
    /// Takes data that collection moves.
    pub(super) moved: Frontier,
    /// Takes data that wear levelling moves, which is cold. Among the other moved data its blocks would be left with
    /// holes that are never collected, and the over-provisioning with them.
    pub(super) cold: Frontier,
    /// What is still to be collected of the victim.
    pub(super) victim: Frontier,
    /// Whether wear levelling selected the victim.
    pub(super) victim_is_cold: bool,
    /// Stripes of the victim to collect for each stripe the host fills.
    pub(super) pace: u32,
    /// Valid pages of the group.
    pub(super) valid: u32,
    /// Host stripes opened in the group, ever.
    pub(super) serial: u32,
    /// Victims selected, ever.
    pub(super) selections: u32,
}

impl GroupBlocks {
    /// A group whose blocks `first..first + count` are all free.
    pub(super) fn new(first: u32, count: u32) -> GroupBlocks {
        GroupBlocks {
            free: (first..first + count).rev().collect(),
            host: Frontier::default(),
            moved: Frontier::default(),
            cold: Frontier::default(),
            victim_is_cold: false,
            victim: Frontier::default(),
            pace: 0,
            valid: 0,
            serial: 0,
            selections: 0,
        }
    }

    /// Takes the least worn free block.
    pub(super) fn take_youngest(&mut self, erases: &[u32]) -> u32 {
        self.take_by(|block| erases[block as usize])
    }

    /// Takes the most worn free block.
    pub(super) fn take_oldest(&mut self, erases: &[u32]) -> u32 {
        self.take_by(|block| u32::MAX - erases[block as usize])
    }

    fn take_by(&mut self, key: impl Fn(u32) -> u32) -> u32 {
        let at = (0..self.free.len()).min_by_key(|&at| key(self.free[at]));
        self.free.swap_remove(at.expect("a group keeps free blocks for collection"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_data_takes_the_least_worn_block_and_moved_data_the_most_worn() {
        let mut blocks = GroupBlocks::new(0, 3);
        let erases = [5, 1, 9];
        assert_eq!(blocks.take_youngest(&erases), 1);
        assert_eq!(blocks.take_oldest(&erases), 2);
    }
}
