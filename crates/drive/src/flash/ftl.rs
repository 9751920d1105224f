//! The flash translation layer: where each logical page lies, and where the next one goes.
//!
//! Page mapping with dynamic allocation: pages are gathered into stripes (the slots of one multi-plane
//! program) in the order they are written, and stripes go to the groups of
//! dies in turn, so that any write pattern uses
//! every die (Agrawal et al. 2008, section 3.2; Tavakkol et al., "MQSim", FAST 2018, section 4.1).
//!
//! Invariants
//! - Each mapped page has one slot and each valid slot one page.
//! - The low bits of `valid` count a block's valid slots; [`NOT_FULL`] is set while it is free, open or being
//!   collected, which keeps it from being selected for collection.
//!
//! It knows no time: a write reports the operations it caused, and the caller charges them.

use tier0_world::prefetch;

use super::blocks::{Frontier, GroupBlocks, NONE};
use super::geometry::{CHUNK_PAGES, Geometry, Place, RESERVED_BLOCKS};

/// Flag on a block's valid count.
pub(super) const NOT_FULL: u16 = 1 << 15;

/// Blocks' worth of slots of a group that never hold valid pages, so that some full block always has a page to
/// reclaim: one free block and two for moved data may be all that is not full, and one more makes the difference.
const BLOCKS_WITHOUT_VALID: u32 = RESERVED_BLOCKS + 1;

/// A stripe the host fills: the `serial`-th of its group, counted from 1, which determines its die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HostStripe {
    pub(super) group: u32,
    pub(super) serial: u32,
    pub(super) die: u32,
}

/// A background operation that collection calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// A multi-plane read of so many valid pages.
    Read { die: u32, pages: u32 },
    /// A program of moved pages.
    Program { die: u32 },
    /// A modelled block erased, on all dies of the group.
    Erase { group: u32 },
}

/// What a page written did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    /// The stripe it began, taking a place in the write buffer.
    pub(super) opened: Option<HostStripe>,
    /// The stripe it completed, which is now programmed; [`Ftl::operations`] are the collection that caused.
    pub(super) closed: Option<HostStripe>,
}

/// What is known of a modelled page; in one place, because a write needs both, and each page of a random load is a miss in
/// the processor's cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapped {
    /// Where it lies, or [`NONE`].
    pub(super) slot: u32,
    /// Which of the host pages that share it wrote or discarded it last, or [`NONE`].
    pub(super) owner: u32,
}

/// The mapping of one drive.
#[derive(Clone, Debug)]
pub(super) struct Ftl {
    pub(super) geometry: Geometry,
    /// By modelled page.
    pub(super) pages: Vec<Mapped>,
    /// The page last put into each slot, which counts while the slot is valid.
    pub(super) page_in_slot: Vec<u32>,
    /// One bit for each slot: whether its page is up to date. Overwriting a page costs a bit in a table that
    /// stays in the processor's cache, rather than a line of `page_in_slot` that does not.
    pub(super) is_valid: Vec<u64>,
    pub(super) valid: Vec<u16>,
    pub(super) erases: Vec<u32>,
    /// Which of its group's host stripes this is, counted from 1; 0 where moved data went.
    pub(super) stripe_serial: Vec<u32>,
    pub(super) groups: Vec<GroupBlocks>,
    /// Slots of the stripe being filled by the host; empty where there is none.
    open: Frontier,
    open_stripe: HostStripe,
    /// The collection caused by the stripe closed last.
    pub(super) operations: Vec<Operation>,
    /// The pages of a stripe that is being collected; empty, and kept for its memory.
    pub(super) moving: Vec<u32>,
    next_group: u32,
    /// Valid pages a group takes at most.
    group_limit: u32,
    pub(super) mapped_pages: u32,
    pub(super) host_pages_written: u64,
    pub(super) nand_pages_written: u64,
    pub(super) pages_moved: u64,
    pub(super) blocks_erased: u64,
}

impl Ftl {
    /// A drive fresh from the factory: nothing mapped, every block free.
    pub(super) fn new(geometry: Geometry) -> Ftl {
        let per_group = geometry.blocks_per_group;
        let stripes = geometry.slots() / geometry.slots_per_stripe as usize;
        Ftl {
            pages: vec![Mapped { slot: NONE, owner: NONE }; geometry.modelled_pages as usize],
            page_in_slot: vec![NONE; geometry.slots()],
            is_valid: vec![0; geometry.slots().div_ceil(64)],
            valid: vec![NOT_FULL; geometry.blocks()],
            erases: vec![0; geometry.blocks()],
            stripe_serial: vec![0; stripes],
            groups: (0..geometry.groups)
                .map(|group| GroupBlocks::new(group * per_group, per_group))
                .collect(),
            open: Default::default(),
            open_stripe: HostStripe { group: 0, serial: 0, die: 0 },
            operations: Vec::with_capacity(
                4 * (geometry.slots_per_block / geometry.slots_per_stripe) as usize,
            ),
            moving: Vec::with_capacity(geometry.slots_per_stripe as usize),
            next_group: 0,
            group_limit: geometry.slots_per_group - BLOCKS_WITHOUT_VALID * geometry.slots_per_block,
            mapped_pages: 0,
            host_pages_written: 0,
            nand_pages_written: 0,
            pages_moved: 0,
            blocks_erased: 0,
            geometry,
        }
    }

    /// Has the processor fetch what is known of a page that is about to be asked for.
    #[inline]
    pub(super) fn prefetch(&self, host_page: u64) {
        if let Some(mapped) = self.pages.get(self.geometry.place(host_page).page as usize) {
            prefetch(mapped);
        }
    }

    /// Maps a page anew. A page still in the open stripe is overwritten in the buffer.
    #[inline]
    pub(super) fn write(&mut self, place: Place) -> Written {
        self.host_pages_written += 1;
        let page = place.page as usize;
        let old = self.pages[page];
        self.pages[page].owner = place.alias;
        if old.slot != NONE {
            if old.owner == place.alias && self.in_open_stripe(old.slot) {
                return Written::default();
            }
            self.invalidate(old.slot);
        }
        let opened = self.open.is_empty().then(|| self.begin_stripe());
        let slot = self.open.next;
        self.open.next += 1;
        self.put(place.page, slot);
        self.valid[self.geometry.block_of(slot) as usize] += 1;
        self.groups[self.open_stripe.group as usize].valid += 1;
        self.mapped_pages += 1;
        let closed = self.open.is_empty().then(|| self.close_stripe());
        Written { opened, closed }
    }

    /// Unmaps host pages `first..end`. Where all that share a chunk are in the range it is visited once.
    pub(super) fn discard_range(&mut self, mut first: u64, end: u64) {
        let group = CHUNK_PAGES * u64::from(self.geometry.scale);
        while first < end {
            let place = self.geometry.place(first);
            if self.geometry.scale > 1 && first.is_multiple_of(group) && end - first >= group {
                (place.page..place.page + CHUNK_PAGES as u32).for_each(|page| self.unmap(page));
                first += group;
            } else {
                self.discard(place);
                first += 1;
            }
        }
    }

    /// Unmaps a page if this alias wrote it last.
    fn discard(&mut self, place: Place) {
        if self.pages[place.page as usize].owner == place.alias {
            self.unmap(place.page);
        }
    }

    /// Unmaps a page, whichever alias wrote it last.
    fn unmap(&mut self, page: u32) {
        let slot = std::mem::replace(&mut self.pages[page as usize].slot, NONE);
        if slot != NONE {
            self.invalidate(slot);
        }
    }

    /// Completes the open stripe with padding, if there is one.
    pub(super) fn pad(&mut self) -> Option<HostStripe> {
        if self.open.is_empty() {
            return None;
        }
        self.open.next = self.open.end;
        Some(self.close_stripe())
    }

    /// Whether a slot belongs to the stripe being filled.
    #[inline]
    pub(super) fn in_open_stripe(&self, slot: u32) -> bool {
        !self.open.is_empty()
            && slot < self.open.next
            && slot + self.geometry.slots_per_stripe >= self.open.end
    }

    /// Whether a slot's page is up to date.
    #[inline]
    pub(super) fn is_valid_slot(&self, slot: u32) -> bool {
        (self.is_valid[slot as usize / 64] >> (slot % 64)) & 1 == 1
    }

    /// Marks a slot's page as outdated.
    #[inline]
    fn invalidate(&mut self, slot: u32) {
        self.is_valid[slot as usize / 64] &= !(1 << (slot % 64));
        self.valid[self.geometry.block_of(slot) as usize] -= 1;
        self.groups[self.geometry.group_of(slot) as usize].valid -= 1;
        self.mapped_pages -= 1;
    }

    /// Puts a page into an erased slot of an open block; the caller counts it as valid there.
    #[inline]
    pub(super) fn put(&mut self, page: u32, slot: u32) {
        self.page_in_slot[slot as usize] = page;
        self.pages[page as usize].slot = slot;
        self.is_valid[slot as usize / 64] |= 1 << (slot % 64);
    }

    /// Starts a stripe in the next group that has room.
    fn begin_stripe(&mut self) -> HostStripe {
        let group = self.pick_group();
        let state = &mut self.groups[group as usize];
        if state.host.is_empty() {
            let block = state.take_youngest(&self.erases);
            self.groups[group as usize].host = self.frontier(block);
        }
        let per_stripe = self.geometry.slots_per_stripe;
        let state = &mut self.groups[group as usize];
        self.open.next = state.host.next;
        state.host.next += per_stripe;
        self.open.end = state.host.next;
        state.serial += 1;
        let stripe = self.open.next / per_stripe;
        self.stripe_serial[stripe as usize] = state.serial;
        let die = self.geometry.die_of_stripe(stripe);
        debug_assert_eq!(
            (state.serial - 1) % self.geometry.dies_per_group,
            die % self.geometry.dies_per_group
        );
        self.open_stripe = HostStripe { group, serial: state.serial, die };
        self.open_stripe
    }

    /// The slots of a block.
    pub(super) fn frontier(&self, block: u32) -> Frontier {
        let per_block = self.geometry.slots_per_block;
        Frontier { next: block * per_block, end: (block + 1) * per_block }
    }

    /// The next group in turn, passing over one that holds more than its share of valid data.
    fn pick_group(&mut self) -> u32 {
        let groups = self.geometry.groups;
        for _ in 0..groups {
            let group = self.next_group;
            self.next_group = if group + 1 == groups { 0 } else { group + 1 };
            if self.groups[group as usize].valid + self.geometry.slots_per_stripe <= self.group_limit {
                return group;
            }
        }
        panic!("the groups hold {} pages, more than the drive has", self.mapped_pages);
    }

    /// Hands the full stripe to its die and collects garbage in step with it.
    fn close_stripe(&mut self) -> HostStripe {
        self.nand_pages_written += u64::from(self.geometry.slots_per_stripe);
        let group = self.open_stripe.group;
        let host = self.groups[group as usize].host;
        if host.is_empty() {
            self.valid[(host.end / self.geometry.slots_per_block - 1) as usize] &= !NOT_FULL;
        }
        self.collect(group);
        self.open_stripe
    }

    /// Starts all counters anew; wear too.
    pub(super) fn reset_counters(&mut self) {
        self.host_pages_written = 0;
        self.nand_pages_written = 0;
        self.pages_moved = 0;
        self.blocks_erased = 0;
        self.erases.fill(0);
    }

    /// Checks what the header promises, in time proportional to the modelled span.
    pub(super) fn assert_consistent(&self) {
        let mut valid = vec![0_u16; self.valid.len()];
        for slot in (0..self.geometry.slots() as u32).filter(|slot| self.is_valid_slot(*slot)) {
            let page = self.page_in_slot[slot as usize];
            assert_eq!(
                self.pages[page as usize].slot, slot,
                "slot {slot} holds page {page}, mapped elsewhere"
            );
            valid[self.geometry.block_of(slot) as usize] += 1;
        }
        let mapped = self.pages.iter().filter(|page| page.slot != NONE).count();
        assert_eq!(mapped, self.mapped_pages as usize, "pages mapped");
        assert_eq!(mapped, valid.iter().map(|v| usize::from(*v)).sum(), "a mapped page has no valid slot");
        for (block, count) in valid.iter().enumerate() {
            assert_eq!(self.valid[block] & !NOT_FULL, *count, "valid pages of block {block}");
        }
        let per_group = self.geometry.blocks_per_group as usize;
        for (group, state) in self.groups.iter().enumerate() {
            let blocks = &valid[group * per_group..(group + 1) * per_group];
            let sum: u32 = blocks.iter().map(|v| u32::from(*v)).sum();
            assert_eq!(state.valid, sum, "valid pages of group {group}");
            let erased = |block: &u32| valid[*block as usize] == 0;
            assert!(state.free.iter().all(erased), "group {group}: a free block holds data");
        }
    }
}
