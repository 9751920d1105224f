//! Slots without tables, of pools without checksums: whatever the drives hold is right, so a slot that another extent
//! had before is filled with zeros before anything in it is mapped.
//!
//! Such a slot is unwiped until then, and reads as zeros. If the process ends meanwhile, no extent has the slot.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;

use tier0_units::{ExtentId, Lba, SlotRef};
use tier0_world::{Buf, BufMut, IoError};

use super::SlotIo;
use super::request::{PageContent, SlotWrite};
use crate::intent::{Intent, IntentLog};

/// What is remembered of slots without tables.
#[derive(Default)]
pub(super) struct Unchecked {
    /// Slots that were allocated and hold what they held before.
    unwiped: RefCell<BTreeSet<u64>>,
}

/// No extent has a slot that is being wiped, so it needs no intents.
struct NoIntents;

impl IntentLog for NoIntents {
    fn append(&self, _: Vec<Intent>) -> Pin<Box<dyn Future<Output = Result<(), IoError>> + '_>> {
        Box::pin(async { Ok(()) })
    }
}

impl SlotIo {
    /// Whether slots have tables.
    pub fn is_checked(&self) -> bool {
        self.shared.unchecked.is_none()
    }

    /// Writes sectors of a slot that is wiped straight to the drives, in a pool without checksums. What a power cut
    /// between two drives leaves behind is not made right: for arrays of which nothing outlives the process.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when too many drives are lost; the range then holds old or new content.
    pub async fn write_through(
        &self,
        slot: SlotRef,
        first_sector: u64,
        buf: Buf,
        durable: bool,
    ) -> Result<(), IoError> {
        debug_assert!(!self.is_checked() && !self.is_unwiped(slot.slot), "a slot to be written through");
        let _changing = self.changing([slot.slot].into());
        let place = self.slots().place(slot.slot);
        self.raid().write(place.set, Lba(place.first_sector + first_sector), buf, durable).await
    }

    pub(super) async fn read_unchecked(
        &self,
        slot: SlotRef,
        first_sector: u64,
        mut buf: BufMut,
    ) -> (Result<(), IoError>, BufMut) {
        if self.is_unwiped(slot.slot) {
            buf.set_zero();
            return (Ok(()), buf);
        }
        let place = self.slots().place(slot.slot);
        self.raid().read(place.set, Lba(place.first_sector + first_sector), buf).await
    }

    pub(super) fn set_unwiped(&self, slot: SlotRef, unwiped: bool) {
        let Some(unchecked) = &self.shared.unchecked else { return };
        let mut slots = unchecked.unwiped.borrow_mut();
        if unwiped {
            slots.insert(slot.slot)
        } else {
            slots.remove(&slot.slot)
        };
    }

    fn is_unwiped(&self, slot: u64) -> bool {
        self.shared.unchecked.as_ref().is_some_and(|unchecked| unchecked.unwiped.borrow().contains(&slot))
    }

    /// Makes an unwiped slot zeros.
    pub(super) async fn wipe(&self, slot: SlotRef) -> Result<(), IoError> {
        if self.is_unwiped(slot.slot) {
            let extent = ExtentId { volume: u32::MAX, index: u32::MAX };
            let write = SlotWrite { extent, slot, pages: Vec::new() };
            self.write_batch(vec![write], &NoIntents).await?;
        }
        Ok(())
    }

    /// Adds zeros for all other pages to what is written to unwiped slots.
    pub(super) fn complete_unwiped(&self, batch: &mut [SlotWrite]) {
        for write in batch.iter_mut().filter(|write| self.is_unwiped(write.slot.slot)) {
            let mut given = std::mem::take(&mut write.pages).into_iter().peekable();
            let page = |page| match given.next_if(|(given, _)| *given == page) {
                Some((_, content)) => (page, content),
                None => (page, PageContent::Zero),
            };
            write.pages = (0..self.pages_per_slot(write.slot.slot)).map(page).collect();
        }
    }

    /// A batch is stable.
    pub(super) fn wiped(&self, batch: &[SlotWrite]) {
        batch.iter().for_each(|write| self.set_unwiped(write.slot, false));
    }
}
