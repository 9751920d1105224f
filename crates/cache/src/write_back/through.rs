//! Pools without a log: a write goes straight to its slot, and nothing is ever dirty.
//!
//! What a crash between two drives leaves behind is not made right, so this is for arrays of which nothing outlives the
//! process. Writes count as readers of their slot, so moving an extent or giving its slot back waits for them. Of two
//! writes to a sector that are under way at once either may win.

use std::ops::Range;
use std::rc::Rc;

use tier0_integrity::SlotIo;
use tier0_units::{ExtentId, PAGE_SECTORS, SlotRef};
use tier0_world::{Buf, BufMut, IoError, World};

use super::write::page_of;
use super::{Inner, WriteBack};
use crate::locks::{PageGuard, WHOLE};
use crate::read_cache::ReadCache;
use crate::{Mapping, WriteBackOptions};

/// Sectors of zeros that are written at once: 1 MiB.
const ZERO_SECTORS: u64 = 2048;

impl WriteBack {
    /// Without a log: writes are acknowledged when the drives have them.
    pub fn without_log(
        world: &World,
        slots: SlotIo,
        mapping: Rc<dyn Mapping>,
        options: WriteBackOptions,
    ) -> WriteBack {
        WriteBack::with_versions(world, None, slots, mapping, options, 1)
    }

    /// Whether writes go into a log first.
    #[inline]
    pub fn has_log(&self) -> bool {
        self.0.ring.is_some()
    }
}

/// Pages of a slot are written in place, while they may be read: what is read of them does not stay in memory.
struct Changing<'a> {
    clean: &'a ReadCache,
    slot: u64,
    pages: Range<u32>,
}

impl<'a> Changing<'a> {
    fn begin(clean: &'a ReadCache, slot: u64, pages: Range<u32>) -> Changing<'a> {
        clean.strike(slot, pages.clone());
        Changing { clean, slot, pages }
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.clean.strike(self.slot, self.pages.clone());
    }
}

impl Inner {
    pub(super) async fn write_through(
        &self,
        extent: ExtentId,
        first_sector: u64,
        buf: Buf,
        durable: bool,
    ) -> Result<(), IoError> {
        let end = first_sector + u64::from(buf.sectors());
        let pages = page_of(first_sector)..page_of(end.next_multiple_of(PAGE_SECTORS));
        let slot = match self.slot(extent) {
            Some(slot) if self.locks.is_free(extent, &pages) && !self.mapping.is_shared(slot) => slot,
            // Out of line: its future is large.
            _ => Box::pin(self.slot_behind_lock(extent)).await?,
        };
        let _writing = self.readers.enter(slot.slot);
        let _changing = self.clean.get().map(|clean| Changing::begin(clean, slot.slot, pages));
        self.slots.write_through(slot, first_sector, buf, durable).await
    }

    /// Writes zeros, where anything can be stored.
    pub(super) async fn zero_through(
        &self,
        extent: ExtentId,
        sectors: Range<u64>,
        durable: bool,
    ) -> Result<(), IoError> {
        let mut at = sectors.start;
        while at < sectors.end && self.slot(extent).is_some() {
            let some = ZERO_SECTORS.min(sectors.end - at);
            let zeros = BufMut::zeroed(some as u32, self.world.width()).freeze();
            self.write_through(extent, at, zeros, durable).await?;
            at += some;
        }
        Ok(())
    }

    /// The slot of an extent once no other task has the extent locked; a new one that holds zeros, if it has none.
    async fn slot_behind_lock(&self, extent: ExtentId) -> Result<SlotRef, IoError> {
        let guard = self.locks.lock(extent, WHOLE).await;
        if let Some(slot) = self.slot(extent) {
            if !self.mapping.is_shared(slot) {
                return Ok(slot);
            }
            if self.needs_copy(extent, slot) {
                self.allocate_copy(extent).await?;
            }
            self.own_slot(extent, Some(guard)).await?;
            return self.slot(extent).ok_or(IoError::Gone);
        }
        let slot = self.mapping.allocate(extent).await?;
        self.allocate_slot(slot);
        self.slots.make_known(slot).await?;
        self.mapping.commit(vec![(extent, slot)], Vec::new()).await?;
        Ok(slot)
    }

    /// Keeps writers away from extents; no write to their slot is under way when this ends.
    pub(super) async fn hold_writers(&self, extents: &[ExtentId], slot: SlotRef) -> Vec<PageGuard> {
        let guards = self.lock_all(extents).await;
        self.readers.wait(slot.slot).await;
        guards
    }
}
