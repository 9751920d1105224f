//! Garbage collection: greedy victims, collected in step with host writes; static wear levelling.
//!
//! The victim is the full block with the fewest valid pages (greedy, optimal for uniform traffic: Desnoyers,
//! "Analytic Modeling of SSD Write Performance", SYSTOR 2012). Its pages move within the group. Collection is
//! spread over the host's writes: for each stripe the host fills in a group, as many of the victim's stripes are
//! collected as it takes to have the block free when the host needs it, so that writers feel a steady drag
//! rather than pauses of a whole block.
//!
//! Invariant: after each host stripe the group has a free block for the host and one for moved data.

use std::ops::Range;

use super::blocks::Frontier;
use super::ftl::{Ftl, NOT_FULL, Operation};

/// A victim is selected when no more blocks than these are free: one for the host, one for moved data.
const FREE_BLOCKS_LOW: usize = 2;

/// Wear is compared once in so many selections, which bounds what wear levelling costs: one block in sixteen.
const WEAR_CHECK_INTERVAL: u32 = 16;

/// Erases by which the blocks of a group may differ before the least worn one is collected: about 1 % of the
/// life of a block of 3,000 cycles. Times the scale of the modelled span, whose blocks turn over so much faster:
/// a pass over the drive in sequence dwells on one modelled chunk after the other, and is no uneven wear.
const WEAR_SPREAD_MAX: u32 = 32;

impl Ftl {
    /// Collects in a group what one host stripe calls for, and leaves the operations that takes.
    pub(super) fn collect(&mut self, group: u32) {
        self.operations.clear();
        self.collect_stripes(group);
        while self.needs_host_block(group) && self.groups[group as usize].free.len() < FREE_BLOCKS_LOW {
            self.groups[group as usize].pace = self.geometry.slots_per_block;
            self.collect_stripes(group);
        }
    }

    fn needs_host_block(&self, group: u32) -> bool {
        self.groups[group as usize].host.is_empty()
    }

    /// Collects `pace` stripes of the victim, selecting one if blocks are short.
    fn collect_stripes(&mut self, group: u32) {
        let state = &self.groups[group as usize];
        if state.victim.is_empty() {
            if state.free.len() > FREE_BLOCKS_LOW {
                return;
            }
            self.select_victim(group);
        }
        let state = &self.groups[group as usize];
        let (mut slot, end) = (state.victim.next, state.victim.end);
        for _ in 0..state.pace {
            if slot == end {
                break;
            }
            self.collect_stripe(group, slot);
            slot += self.geometry.slots_per_stripe;
        }
        self.groups[group as usize].victim.next = slot;
        if slot == end {
            self.erase(group, end / self.geometry.slots_per_block - 1);
        }
    }

    /// Moves the valid pages of one stripe, which are read together.
    fn collect_stripe(&mut self, group: u32, first: u32) {
        let mut pages = std::mem::take(&mut self.moving);
        self.take_valid(first..first + self.geometry.slots_per_stripe, &mut pages);
        if !pages.is_empty() {
            let count = pages.len() as u32;
            let die = self.geometry.die_of_stripe(self.geometry.stripe_of(first));
            self.operations.push(Operation::Read { die, pages: count });
            self.valid[self.geometry.block_of(first) as usize] -= count as u16;
            self.pages_moved += u64::from(count);
            let mut left = &pages[..];
            while !left.is_empty() {
                left = self.move_to_one_stripe(group, left);
            }
        }
        pages.clear();
        self.moving = pages;
    }

    /// Adds the pages that are up to date in these slots to `pages`, and marks the slots as outdated.
    fn take_valid(&mut self, slots: Range<u32>, pages: &mut Vec<u32>) {
        let mut slot = slots.start;
        while slot < slots.end {
            let word = slot / 64;
            let end = slots.end.min((word + 1) * 64);
            let these = (u64::MAX >> (64 - (end - slot))) << (slot % 64);
            let mut valid = self.is_valid[word as usize] & these;
            self.is_valid[word as usize] &= !these;
            while valid != 0 {
                pages.push(self.page_in_slot[(word * 64 + valid.trailing_zeros()) as usize]);
                valid &= valid - 1;
            }
            slot = end;
        }
    }

    /// Moves as many of the pages as fit into the stripe that is being filled with moved data; the others.
    fn move_to_one_stripe<'a>(&mut self, group: u32, pages: &'a [u32]) -> &'a [u32] {
        let (per_stripe, per_block) = (self.geometry.slots_per_stripe, self.geometry.slots_per_block);
        let first = self.next_moved_slot(group);
        let stripe = self.geometry.stripe_of(first);
        let stripe_end = (stripe + 1) * per_stripe;
        let (pages, others) = pages.split_at(pages.len().min((stripe_end - first) as usize));
        let end = first + pages.len() as u32;
        for (slot, page) in (first..end).zip(pages) {
            self.put(*page, slot);
        }
        let block = self.geometry.block_of(first);
        self.valid[block as usize] += pages.len() as u16;
        self.moved_frontier(group).next = end;
        if first == stripe * per_stripe {
            self.stripe_serial[stripe as usize] = 0;
        }
        if end == stripe_end {
            self.operations.push(Operation::Program { die: self.geometry.die_of_stripe(stripe) });
            self.nand_pages_written += u64::from(per_stripe);
        }
        if end == (block + 1) * per_block {
            self.valid[block as usize] &= !NOT_FULL;
        }
        others
    }

    /// The next slot for a page moved from the victim.
    fn next_moved_slot(&mut self, group: u32) -> u32 {
        if self.moved_frontier(group).is_empty() {
            let block = self.groups[group as usize].take_oldest(&self.erases);
            *self.moved_frontier(group) = self.frontier(block);
        }
        self.moved_frontier(group).next
    }

    /// Where what is moved from the victim goes.
    fn moved_frontier(&mut self, group: u32) -> &mut Frontier {
        let state = &mut self.groups[group as usize];
        if state.victim_is_cold { &mut state.cold } else { &mut state.moved }
    }

    /// Makes the best full block the victim and sets the pace at which it is collected.
    fn select_victim(&mut self, group: u32) {
        let per_group = self.geometry.blocks_per_group;
        let first = group * per_group;
        self.groups[group as usize].selections += 1;
        let worn_unevenly = self.groups[group as usize].selections.is_multiple_of(WEAR_CHECK_INTERVAL);
        let cold = if worn_unevenly { self.least_worn_if_spread(first, per_group) } else { None };
        let block = cold.unwrap_or_else(|| self.least_valid(first, per_group));
        let slots = self.geometry.slots_per_block;
        let valid = u32::from(self.valid[block as usize]);
        self.valid[block as usize] |= NOT_FULL;
        let victim = self.frontier(block);
        let state = &mut self.groups[group as usize];
        state.victim = victim;
        state.victim_is_cold = cold.is_some();
        state.pace = slots.div_ceil((slots - valid).max(1));
    }

    /// The full block with the fewest valid pages.
    fn least_valid(&self, first: u32, count: u32) -> u32 {
        let valid = &self.valid[first as usize..(first + count) as usize];
        let least = valid.iter().copied().fold(u16::MAX, u16::min);
        assert!(least & NOT_FULL == 0, "no full block to collect among blocks {first}..{}", first + count);
        first + valid.iter().position(|v| *v == least).expect("the minimum is among them") as u32
    }

    /// The full block with the fewest erases, where wear has spread too far.
    fn least_worn_if_spread(&self, first: u32, count: u32) -> Option<u32> {
        let blocks = first..first + count;
        let most = blocks.clone().map(|block| self.erases[block as usize]).max()?;
        let full = blocks.filter(|block| self.valid[*block as usize] & NOT_FULL == 0);
        let least = full.min_by_key(|block| self.erases[*block as usize])?;
        let spread_max = WEAR_SPREAD_MAX.saturating_mul(self.geometry.scale);
        (most - self.erases[least as usize] > spread_max).then_some(least)
    }

    /// Returns a collected block to the free ones.
    fn erase(&mut self, group: u32, block: u32) {
        assert_eq!(self.valid[block as usize], NOT_FULL, "block {block} is erased with valid pages in it");
        self.erases[block as usize] += 1;
        self.groups[group as usize].free.push(block);
        self.operations.push(Operation::Erase { group });
        self.blocks_erased += 1;
        self.groups[group as usize].victim = Default::default();
    }
}
