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

/// Logical pages in a chunk: 16 MiB of 4 KiB pages, much longer than any single command.
pub(super) const CHUNK_PAGES: u64 = 1 << CHUNK_SHIFT;
const CHUNK_SHIFT: u32 = 12;

/// Blocks on each die beyond capacity and over-provisioning: the two open blocks and the free ones that
/// collection works with. On a die of thousands of blocks they are about 0.1 % of it; on a modelled die of two
/// hundred they would eat a visible part of the over-provisioning, so they come on top.
pub(super) const RESERVED_BLOCKS: u32 = 3;

/// The least blocks on a modelled die: greedy victim selection needs a population to choose from.
const BLOCKS_PER_DIE_MIN: u64 = 128;

/// The least multi-plane programs in a modelled block. Write amplification depends on the block size only
/// below some tens of pages (Desnoyers, SYSTOR 2012, figure 4).
const STRIPES_PER_BLOCK_MIN: u64 = 16;

/// Pages of a modelled block at most, so that the count of valid ones fits 15 bits.
const SLOTS_PER_BLOCK_MAX: u64 = 16_384;

/// Derived sizes. A *slot* is a physical place for a logical page, a *stripe* the slots of one multi-plane
/// program. Slots are numbered die by die, block by block, stripe by stripe.
#[derive(Clone, Debug)]
pub(super) struct Geometry {
    pub(super) dies: u32,
    pub(super) channels: u32,
    pub(super) slots_per_stripe: u32,
    pub(super) slots_per_block: u32,
    pub(super) slots_per_die: u32,
    pub(super) blocks_per_die: u32,
    /// Logical pages the mapping tracks.
    pub(super) modelled_pages: u32,
    /// Logical pages of the drive.
    pub(super) host_pages: u64,
    /// Chunks of the host's span that share a modelled one.
    pub(super) scale: u32,
    /// Modelled blocks that amount to one real block: an erase is charged once in so many.
    pub(super) blocks_per_erase: u32,
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
        let (dies, mapping_bytes) = (p.dies(), u64::from(p.mapping_bytes));
        let slots_per_stripe = (p.stripe_bytes() / mapping_bytes) as u32;
        let host_pages = p.capacity.0.div_ceil(mapping_bytes);
        let block_min = STRIPES_PER_BLOCK_MIN * u64::from(slots_per_stripe);
        let span_min = u64::from(dies) * block_min * BLOCKS_PER_DIE_MIN;
        let (modelled_pages, scale) = fold(host_pages, (p.modelled_span.0 / mapping_bytes).max(span_min));
        let physical = (modelled_pages as f64 * (1.0 + p.over_provisioning)).ceil() as u64;
        let slots_per_die = physical.div_ceil(u64::from(dies));
        let stripes_per_block = stripes_per_block(p, slots_per_die, u64::from(slots_per_stripe));
        let slots_per_block = stripes_per_block * slots_per_stripe;
        let blocks_per_die = slots_per_die.div_ceil(u64::from(slots_per_block)) as u32 + RESERVED_BLOCKS;
        Geometry {
            dies,
            channels: p.channels,
            slots_per_stripe,
            slots_per_block,
            slots_per_die: blocks_per_die * slots_per_block,
            blocks_per_die,
            modelled_pages: modelled_pages as u32,
            host_pages,
            scale,
            blocks_per_erase: (p.pages_per_block / stripes_per_block).max(1),
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
    pub(super) fn die_of(&self, slot: u32) -> u32 {
        slot / self.slots_per_die
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
        self.dies as usize * self.slots_per_die as usize
    }

    /// Blocks of the whole modelled drive.
    pub(super) fn blocks(&self) -> usize {
        self.dies as usize * self.blocks_per_die as usize
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

/// Programs in a modelled block: the real number, less where the modelled die would have too few blocks.
fn stripes_per_block(p: &FlashParameters, slots_per_die: u64, slots_per_stripe: u64) -> u32 {
    let for_population = slots_per_die / (slots_per_stripe * BLOCKS_PER_DIE_MIN);
    let most = (SLOTS_PER_BLOCK_MAX / slots_per_stripe).min(u64::from(p.pages_per_block));
    for_population.clamp(STRIPES_PER_BLOCK_MIN.min(most), most) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

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
