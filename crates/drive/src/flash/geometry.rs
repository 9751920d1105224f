//! The shape of a drive as the mapping sees it, and the fold of a large span onto a modelled one.
//!
//! A 400 GB drive has 10^8 logical pages; a table of them for each of 48 drives is out of reach. The mapping
//! therefore tracks a *modelled span* with the drive's own number of channels, dies and planes and its own
//! over-provisioning. The host's span is cut into chunks of [`CHUNK_PAGES`]; `scale` neighbouring chunks, the
//! *aliases*, share one modelled chunk. Neighbours share, so a hot region takes the same share of the modelled
//! span as of the drive, and runs within a chunk keep their parallelism. `docs/flash-model.md` says what this
//! keeps and what it does not.
//!
//! Invariants: `scale == 1` is the identity; every modelled page has an alias that maps to it.

use super::parameters::FlashParameters;

/// Logical pages in a chunk: 4 MiB of 4 KiB pages, longer than a command and a round over all dies.
pub(super) const CHUNK_PAGES: u64 = 1 << CHUNK_SHIFT;
const CHUNK_SHIFT: u32 = 10;

/// Blocks of each group beyond capacity and over-provisioning: the two open blocks and a free one that collection
/// works with. On a die of thousands of blocks they are about 0.1 % of it; of a modelled group of a hundred and
/// twenty-eight they would take a visible part of the over-provisioning, so they come on top.
pub(super) const RESERVED_BLOCKS: u32 = 3;

/// The least blocks of a modelled group: greedy victim selection needs a population to choose from.
const BLOCKS_MIN: u64 = 128;

/// The least blocks of a group of a drive too small for [`BLOCKS_MIN`]: with three blocks open and two free there
/// are still full ones to collect.
const BLOCKS_LEAST: u64 = 5;

/// The least pages of a modelled block. Greedy collection profits from small blocks, whose valid pages vary more:
/// at 7 % over-provisioning 64 pages give a write amplification of 7.0, 256 pages 7.6, and thousands, as real
/// blocks have, 7.8 (Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012, closed form).
const SLOTS_PER_BLOCK_MIN: u64 = 256;

/// Pages of a modelled block at most, so that the count of valid ones fits 15 bits.
const SLOTS_PER_BLOCK_MAX: u64 = 16_384;

/// Derived sizes. A *slot* is a physical place for a logical page; a *stripe* is the slots of one multi-plane
/// program on one die; a *group* is the dies whose blocks are written, collected and erased together, as drives
/// with superblocks do. A group is one die unless the modelled span is too small to give each its own
/// population of blocks. Slots are numbered group by group, block by block, stripe by stripe; the stripes of
/// a block go to the dies of its group in turn.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    pub(super) dies: u32,
    pub(super) channels: u32,
    pub(super) groups: u32,
    /// A power of two.
    pub(super) dies_per_group: u32,
    pub(super) slots_per_stripe: u32,
    pub(super) slots_per_block: u32,
    pub(super) slots_per_group: u32,
    pub(super) blocks_per_group: u32,
    /// Logical pages the mapping tracks.
    pub(super) modelled_pages: u32,
    /// Logical pages of the drive.
    pub(super) host_pages: u64,
    /// Chunks of the host's span that share a modelled one.
    pub(super) scale: u32,
}

/// A modelled page and which of the host pages that share it is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) page: u32,
    pub(super) alias: u32,
}

impl Geometry {
    /// The shape of checked parameters.
    pub(super) fn new(p: &FlashParameters) -> Geometry {
        let mapping_bytes = u64::from(p.mapping_bytes);
        let slots_per_stripe = p.stripe_bytes() / mapping_bytes;
        let host_pages = p.capacity.0.div_ceil(mapping_bytes);
        let span_pages = p.modelled_span.0 / mapping_bytes;
        let (dies_per_group, least_pages) = grouping(p.dies(), slots_per_stripe, span_pages.min(host_pages));
        let (modelled_pages, scale) = fold(host_pages, span_pages.max(least_pages));
        let groups = p.dies() / dies_per_group;
        let physical = (modelled_pages as f64 * (1.0 + p.over_provisioning)).ceil() as u64;
        let per_group = physical.div_ceil(u64::from(groups));
        let row = slots_per_stripe * u64::from(dies_per_group);
        let slots_per_block = slots_per_block(per_group, row, u64::from(p.pages_per_block)) as u32;
        // To the nearest block: of 128 half a block is 0.4 % of over-provisioning, and rounding up would always add.
        let blocks = (per_group + u64::from(slots_per_block) / 2) / u64::from(slots_per_block);
        let pages_per_group = modelled_pages.div_ceil(u64::from(groups));
        let least = (pages_per_group + slots_per_stripe).div_ceil(u64::from(slots_per_block)) + 1;
        let blocks_per_group = blocks.max(least).max(BLOCKS_LEAST) as u32 + RESERVED_BLOCKS;
        Geometry {
            dies: p.dies(),
            channels: p.channels,
            groups,
            dies_per_group,
            slots_per_stripe: slots_per_stripe as u32,
            slots_per_block,
            slots_per_group: blocks_per_group * slots_per_block,
            blocks_per_group,
            modelled_pages: modelled_pages as u32,
            host_pages,
            scale,
        }
    }

    /// The modelled page of a logical page of the host.
    pub(super) fn place(&self, host_page: u64) -> Place {
        if self.scale == 1 {
            return Place { page: host_page as u32, alias: 0 };
        }
        let chunk = (host_page >> CHUNK_SHIFT) as u32;
        let within = (host_page & (CHUNK_PAGES - 1)) as u32;
        let group = chunk / self.scale;
        Place { page: group << CHUNK_SHIFT | within, alias: chunk - group * self.scale }
    }

    /// The place after `place`, which is that of `host_page - 1`.
    #[inline]
    pub(super) fn next_place(&self, place: Place, host_page: u64) -> Place {
        if host_page & (CHUNK_PAGES - 1) == 0 {
            self.place(host_page)
        } else {
            Place { page: place.page + 1, alias: place.alias }
        }
    }

    #[inline]
    pub(super) fn group_of(&self, slot: u32) -> u32 {
        slot / self.slots_per_group
    }

    /// The die of a stripe: each block has a whole number of stripes for each die of its group.
    #[inline]
    pub(super) fn die_of_stripe(&self, stripe: u32) -> u32 {
        let group = self.group_of(stripe * self.slots_per_stripe);
        group * self.dies_per_group + (stripe & (self.dies_per_group - 1))
    }

    #[inline]
    pub(super) fn block_of(&self, slot: u32) -> u32 {
        slot / self.slots_per_block
    }

    #[inline]
    pub(super) fn stripe_of(&self, slot: u32) -> u32 {
        slot / self.slots_per_stripe
    }

    /// Slots of the whole modelled drive.
    pub(super) fn slots(&self) -> usize {
        self.groups as usize * self.slots_per_group as usize
    }

    /// Blocks of the whole modelled drive.
    pub(super) fn blocks(&self) -> usize {
        self.groups as usize * self.blocks_per_group as usize
    }
}

/// Modelled pages and scale of a drive of `host_pages`, when about `span_pages` may be modelled.
fn fold(host_pages: u64, span_pages: u64) -> (u64, u32) {
    if host_pages <= span_pages {
        return (host_pages, 1);
    }
    let chunks = host_pages.div_ceil(CHUNK_PAGES);
    let scale = chunks.div_ceil((span_pages / CHUNK_PAGES).max(1));
    (chunks.div_ceil(scale) * CHUNK_PAGES, scale as u32)
}

/// How many dies share a group, and the least pages to model then: no more dies than needed to give each group
/// its population of blocks within `span_pages`; where even one group of all dies does not, the least span.
fn grouping(dies: u32, slots_per_stripe: u64, span_pages: u64) -> (u32, u64) {
    let least_pages = |dies_per_group: u32| {
        let row = slots_per_stripe * u64::from(dies_per_group);
        u64::from(dies / dies_per_group) * BLOCKS_MIN * SLOTS_PER_BLOCK_MIN.next_multiple_of(row)
    };
    let sizes = (0..=dies.trailing_zeros()).map(|power| (1 << power, least_pages(1 << power)));
    let fits = sizes.clone().find(|(_, pages)| *pages <= span_pages);
    fits.or_else(|| sizes.min_by_key(|(_, pages)| *pages)).expect("a group of one die is always possible")
}

/// Pages of a modelled block, a multiple of `row`: as many as really, less where a group would have too few blocks.
fn slots_per_block(slots_per_group: u64, row: u64, pages_per_block: u64) -> u64 {
    let rows = slots_per_group / BLOCKS_MIN / row;
    let rows_max = pages_per_block.min(SLOTS_PER_BLOCK_MAX / row).max(1);
    let fits = slots_per_group >= BLOCKS_MIN * SLOTS_PER_BLOCK_MIN;
    let rows_min = if fits { SLOTS_PER_BLOCK_MIN.div_ceil(row).min(rows_max) } else { 1 };
    rows.clamp(rows_min, rows_max) * row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dies_share_a_group_only_where_the_span_is_small() {
        assert_eq!(grouping(64, 4, 1 << 21), (1, 1 << 21));
        assert_eq!(grouping(64, 4, 1 << 16), (32, 1 << 16));
        assert_eq!(grouping(64, 16, 1 << 10), (16, 1 << 17), "no grouping fits: the least span");
        assert_eq!(grouping(12, 4, 1 << 17), (4, 3 << 15), "groups are powers of two that divide the dies");
    }

    #[test]
    fn a_span_that_fits_is_not_folded() {
        assert_eq!(fold(1000, 1000), (1000, 1));
    }

    #[test]
    fn a_folded_span_covers_every_host_page() {
        let (host_pages, span_pages) = (97_656_250, 1 << 19);
        let (modelled, scale) = fold(host_pages, span_pages);
        assert!(modelled <= span_pages, "{modelled} pages modelled");
        assert!(modelled * u64::from(scale) >= host_pages, "{modelled} x {scale} too small");
    }
}
