//! The flash translation layer: where each logical page lies, and where the next one goes.
//!
//! Page mapping with dynamic allocation: pages are gathered into stripes (the slots of one multi-plane
//! program) in the order they are written, and stripes go to the dies in turn, so that any write pattern uses
//! every die (Agrawal et al. 2008, section 3.2; Tavakkol et al., "MQSim", FAST 2018, section 4.1).
//!
//! Invariants
//! - Each mapped page has one slot and each valid slot one page.
//! - The low bits of `valid` count a block's valid slots; [`NOT_FULL`] is set while it is free, open or being
//!   collected, which keeps it from being selected for collection.
//!
//! It knows no time: a write reports the work it caused, and the caller charges it.

use super::blocks::{DieBlocks, Frontier, NONE};
use super::geometry::{CHUNK_PAGES, Geometry, Place, RESERVED_BLOCKS};

/// Flag on a block's valid count.
pub(super) const NOT_FULL: u16 = 1 << 15;

/// Where a page lies: its slot, or [`NONE`], and which alias wrote (or discarded) it last, or [`NONE`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Mapping {
    pub(super) slot: u32,
    pub(super) alias: u32,
}

/// Background operations on one die.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Multi-plane array reads.
    pub(super) reads: u32,
    /// Pages moved.
    pub(super) moved: u32,
    /// Programs of moved data.
    pub(super) programs: u32,
    /// Modelled blocks erased.
    pub(super) erased: u32,
}

/// What a page written did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Written {
    /// The die on which it began a stripe, taking a place in the write buffer.
    pub(super) opened: Option<u32>,
    /// The die on which it completed a stripe, which is now programmed, and the collection that caused.
    pub(super) closed: Option<(u32, Work)>,
}

/// The mapping of one drive.
#[derive(Clone, Debug)]
pub(super) struct Ftl {
    pub(super) geometry: Geometry,
    pub(super) map: Vec<Mapping>,
    /// The page in each slot, or [`NONE`].
    pub(super) page_in_slot: Vec<u32>,
    pub(super) valid: Vec<u16>,
    pub(super) erases: Vec<u32>,
    /// Which of its die's host stripes this is, counted from 1; 0 where moved data went.
    pub(super) stripe_serial: Vec<u32>,
    pub(super) dies: Vec<DieBlocks>,
    /// Slots of the stripe being filled by the host; empty where there is none.
    open: Frontier,
    next_die: u32,
    /// Valid pages a die takes at most.
    die_limit: u32,
    pub(super) mapped_pages: u32,
    pub(super) host_pages_written: u64,
    pub(super) nand_pages_written: u64,
    pub(super) pages_moved: u64,
    pub(super) blocks_erased: u64,
}

impl Ftl {
    /// A drive fresh from the factory: nothing mapped, every block free.
    pub(super) fn new(geometry: Geometry) -> Ftl {
        let per_die = geometry.blocks_per_die;
        let stripes = geometry.slots() / geometry.slots_per_stripe as usize;
        Ftl {
            map: vec![Mapping { slot: NONE, alias: NONE }; geometry.modelled_pages as usize],
            page_in_slot: vec![NONE; geometry.slots()],
            valid: vec![NOT_FULL; geometry.blocks()],
            erases: vec![0; geometry.blocks()],
            stripe_serial: vec![0; stripes],
            dies: (0..geometry.dies).map(|die| DieBlocks::new(die * per_die, per_die)).collect(),
            open: Default::default(),
            next_die: 0,
            die_limit: geometry.slots_per_die - RESERVED_BLOCKS * geometry.slots_per_block,
            mapped_pages: 0,
            host_pages_written: 0,
            nand_pages_written: 0,
            pages_moved: 0,
            blocks_erased: 0,
            geometry,
        }
    }

    /// Maps a page anew. A page still in the open stripe is overwritten in the buffer.
    #[inline]
    pub(super) fn write(&mut self, place: Place) -> Written {
        self.host_pages_written += 1;
        let old = self.map[place.page as usize];
        if old.slot != NONE {
            if self.in_open_stripe(old.slot) {
                self.map[place.page as usize].alias = place.alias;
                return Written::default();
            }
            self.invalidate(old.slot);
        }
        let opened = self.open.is_empty().then(|| self.open_stripe());
        let slot = self.open.next;
        self.open.next += 1;
        self.put(place.page, slot);
        self.map[place.page as usize] = Mapping { slot, alias: place.alias };
        let die = self.geometry.die_of(slot);
        self.dies[die as usize].valid += 1;
        let closed = self.open.is_empty().then(|| (die, self.close_stripe(die)));
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
        let mapping = self.map[place.page as usize];
        if mapping.alias == place.alias && mapping.slot != NONE {
            self.unmap(place.page);
        }
    }

    /// Unmaps a page, whichever alias wrote it last.
    fn unmap(&mut self, page: u32) {
        let slot = std::mem::replace(&mut self.map[page as usize].slot, NONE);
        if slot != NONE {
            self.invalidate(slot);
        }
    }

    /// Completes the open stripe with padding, if there is one.
    pub(super) fn pad(&mut self) -> Option<(u32, Work)> {
        if self.open.is_empty() {
            return None;
        }
        let die = self.geometry.die_of(self.open.next);
        self.open.next = self.open.end;
        Some((die, self.close_stripe(die)))
    }

    /// Whether a slot belongs to the stripe being filled.
    #[inline]
    pub(super) fn in_open_stripe(&self, slot: u32) -> bool {
        !self.open.is_empty()
            && slot < self.open.next
            && slot + self.geometry.slots_per_stripe >= self.open.end
    }

    /// Marks a slot's page as outdated.
    #[inline]
    fn invalidate(&mut self, slot: u32) {
        self.page_in_slot[slot as usize] = NONE;
        self.valid[self.geometry.block_of(slot) as usize] -= 1;
        self.dies[self.geometry.die_of(slot) as usize].valid -= 1;
        self.mapped_pages -= 1;
    }

    #[inline]
    fn put(&mut self, page: u32, slot: u32) {
        self.page_in_slot[slot as usize] = page;
        self.valid[self.geometry.block_of(slot) as usize] += 1;
        self.mapped_pages += 1;
    }

    /// Starts a stripe on the next die that has room; returns the die.
    fn open_stripe(&mut self) -> u32 {
        let die = self.pick_die();
        if self.dies[die as usize].host.is_empty() {
            let block = self.dies[die as usize].take_youngest(&self.erases);
            self.dies[die as usize].host = self.frontier(block);
        }
        let per_stripe = self.geometry.slots_per_stripe;
        let state = &mut self.dies[die as usize];
        self.open.next = state.host.next;
        state.host.next += per_stripe;
        self.open.end = state.host.next;
        state.serial += 1;
        self.stripe_serial[(self.open.next / per_stripe) as usize] = state.serial;
        die
    }

    /// The slots of a block.
    pub(super) fn frontier(&self, block: u32) -> Frontier {
        let per_block = self.geometry.slots_per_block;
        Frontier { next: block * per_block, end: (block + 1) * per_block }
    }

    /// The next die in turn, passing over one that holds more than its share of valid data.
    fn pick_die(&mut self) -> u32 {
        let dies = self.geometry.dies;
        for _ in 0..dies {
            let die = self.next_die;
            self.next_die = if die + 1 == dies { 0 } else { die + 1 };
            if self.dies[die as usize].valid + self.geometry.slots_per_stripe <= self.die_limit {
                return die;
            }
        }
        panic!("the dies hold {} pages, more than the drive has", self.mapped_pages);
    }

    /// Hands a full stripe to its die and collects garbage in step with it.
    fn close_stripe(&mut self, die: u32) -> Work {
        self.nand_pages_written += u64::from(self.geometry.slots_per_stripe);
        let host = self.dies[die as usize].host;
        if host.is_empty() {
            self.valid[(host.end / self.geometry.slots_per_block - 1) as usize] &= !NOT_FULL;
        }
        self.collect(die)
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
        for (slot, &page) in self.page_in_slot.iter().enumerate().filter(|(_, page)| **page != NONE) {
            assert_eq!(
                self.map[page as usize].slot, slot as u32,
                "slot {slot} holds page {page}, mapped elsewhere"
            );
            valid[self.geometry.block_of(slot as u32) as usize] += 1;
        }
        let mapped = self.map.iter().filter(|mapping| mapping.slot != NONE).count();
        assert_eq!(mapped, self.mapped_pages as usize, "pages mapped");
        assert_eq!(mapped, valid.iter().map(|v| usize::from(*v)).sum(), "a mapped page has no valid slot");
        for (block, count) in valid.iter().enumerate() {
            assert_eq!(self.valid[block] & !NOT_FULL, *count, "valid pages of block {block}");
        }
        for (die, state) in self.dies.iter().enumerate() {
            let blocks = die * self.geometry.blocks_per_die as usize..;
            let sum: u32 =
                valid[blocks].iter().take(self.geometry.blocks_per_die as usize).map(|v| u32::from(*v)).sum();
            assert_eq!(state.valid, sum, "valid pages of die {die}");
            assert!(
                state.free.iter().all(|block| valid[*block as usize] == 0),
                "die {die}: a free block holds data"
            );
        }
    }
}
