//! One writer per slot: batches, scrub and rebuild of a slot go one after the other.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use tier0_world::sync::Notify;

#[derive(Default)]
pub(super) struct SlotLocks {
    held: RefCell<BTreeSet<u64>>,
    released: Notify,
}

impl SlotLocks {
    /// Waits until no batch has any of these slots, and takes all of them at once.
    pub(super) async fn lock(self: &Rc<Self>, slots: BTreeSet<u64>) -> SlotGuard {
        while !self.held.borrow().is_disjoint(&slots) {
            self.released.wait().await;
        }
        self.held.borrow_mut().extend(&slots);
        SlotGuard { locks: self.clone(), slots }
    }
}

/// Locked slots; dropping it unlocks.
pub(super) struct SlotGuard {
    locks: Rc<SlotLocks>,
    slots: BTreeSet<u64>,
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.locks.held.borrow_mut().retain(|slot| !self.slots.contains(slot));
        self.locks.released.notify_all();
    }
}
