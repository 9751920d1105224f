//! The journal's copies: where they lie, and how one or all of them end.

use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_journal::{CopyState, Region};
use uuid::Uuid;

use super::carriers;
use super::core::Core;
use crate::MetadataArea;
use crate::codec::crc64;

/// Where a copy of the journal lies.
pub(super) fn region(drive: DriveHandle, area: &MetadataArea) -> Region {
    Region { drive, first: area.journal_start(), sectors: area.journal_sectors }
}

/// The identity of the journal that begins with this checkpoint: the checkpoint's generation, 32 bits of the pool's
/// checksum, and 32 bits that tell apart what two openings began with the same generation.
pub(super) fn identity(pool: Uuid, generation: u64, random: u64) -> Uuid {
    let of_pool = crc64(&[pool.as_bytes()]) & POOL_BITS;
    Uuid::from_u64_pair(generation, of_pool | crc64(&[&random.to_le_bytes()]) & !POOL_BITS)
}

/// Whether a journal is one of the same pool that began with an older checkpoint.
pub(super) fn is_older(found: Uuid, wanted: Uuid) -> bool {
    let ((found, pool), (generation, own_pool)) = (found.as_u64_pair(), wanted.as_u64_pair());
    found < generation && pool & POOL_BITS == own_pool & POOL_BITS
}

const POOL_BITS: u64 = 0xffff_ffff_0000_0000;

impl Core {
    /// A carrier is lost, and the superblocks know.
    pub(super) fn drop_carrier(&self, member: u32) {
        let (ring, copy) = {
            let journal = self.journal.borrow();
            (journal.ring.clone(), journal.carriers.iter().position(|carrier| *carrier == member))
        };
        if let (Some(ring), Some(copy)) = (ring, copy) {
            ring.drop_copy(copy);
        }
    }

    /// Drops the copies on members that were lost while the journal was being made.
    pub(super) fn drop_lost_carriers(&self) {
        let carriers = self.journal.borrow().carriers.clone();
        carriers
            .into_iter()
            .filter(|member| self.drive(*member).is_none())
            .for_each(|member| self.drop_carrier(member));
    }

    /// Ends the journal: what waits for it ends with an error.
    pub(super) fn end_journal(&self) {
        let ring = self.journal.borrow().ring.clone();
        if let Some(ring) = ring {
            (0..ring.copies().len()).for_each(|copy| ring.drop_copy(copy));
        }
        self.fail();
    }

    /// Carriers that still count.
    fn live_carriers(&self) -> usize {
        let ring = self.journal.borrow().ring.clone();
        let live = |ring: tier0_journal::Ring| {
            ring.copies().into_iter().filter(|state| *state == CopyState::Live).count()
        };
        ring.map_or(carriers::CARRIERS_MAX, live)
    }

    /// Finds new carriers in the background, where there are drives for more than are left, or faster ones.
    pub(super) fn replenish_carriers(self: &Rc<Self>) {
        if self.failure().is_some() || !self.persistent {
            return;
        }
        let chosen = self.choose_carriers();
        let is_new = |member: &u32| !self.journal.borrow().carriers.contains(member);
        let is_due = chosen.len() > self.live_carriers() || chosen.iter().any(is_new);
        if is_due && !self.journal.borrow().checkpoint_is_due.replace(true) {
            let core = self.clone();
            self.world
                .spawn(async move {
                    // A failure is in the core's state, and ends the commits.
                    let _ = core.roll_over().await;
                    core.journal.borrow().checkpoint_is_due.set(false);
                    core.replenish_carriers();
                })
                .detach();
        }
    }
}
