//! What is told of accesses to slots, for those who decide where extents should lie.

use tier0_units::{ExtentId, Nanos, SlotRef};

/// Counts accesses to slots.
///
/// A read that memory serves is none, nor is what is read ahead, scrubbed, rebuilt or moved.
pub trait AccessCounter {
    /// Whether it counts now.
    fn is_on(&self) -> bool;

    /// A host has read sectors of an extent that were not in memory. `took` says how long the slot's drives took; `None` if the
    /// flash cache had them.
    fn read(&self, extent: ExtentId, slot: SlotRef, sectors: u64, took: Option<Nanos>);

    /// Pages of an extent were written to its slot, by their numbers, ascending.
    fn written(&self, extent: ExtentId, pages: &mut dyn Iterator<Item = u32>);
}
