//! Copy on write: an extent whose slot others have too gets one of its own when it is written.
//!
//! 1. A writer takes a slot for the copy, so that a pool without space refuses the write, and what is written becomes dirty.
//!    No batch takes the extent.
//! 2. In the background the extent moves to that slot ([`super::relocate`]): what is not dirty is copied.
//! 3. From then on it is destaged like any other.
//!
//! After a crash what is dirty of such an extent needs a copy again. One that becomes zeros as a whole needs none: it leaves
//! its slot to the others. The log has nothing of it, for a volume is cloned when that is so.

use std::rc::Rc;

use tier0_units::{ExtentId, SlotRef};
use tier0_world::{IoError, PlantedBug, planted};

use super::Inner;
use super::relocate::Lost;
use super::state::State;
use crate::Relocation;
use crate::locks::PageGuard;

/// Extents that are copied at once: a transaction of the map holds all.
const COPIES_AT_ONCE: usize = 4;

impl Inner {
    /// Whether an extent that has this slot must get one of its own before it is written.
    #[inline]
    pub(super) fn needs_copy(&self, extent: ExtentId, slot: SlotRef) -> bool {
        self.mapping.is_shared(slot)
            && !planted(PlantedBug::WriteToSharedSlot)
            && !self.state.borrow().copies.contains_key(&extent)
    }

    /// Takes a slot for the copy of an extent; no other task may be about to.
    pub(crate) async fn allocate_copy(&self, extent: ExtentId) -> Result<(), IoError> {
        let slot = self.mapping.allocate_copy(extent).await?;
        // A rebuild looks at it from now on.
        self.allocate_slot(slot);
        let before = self.state.borrow_mut().copies.insert(extent, slot);
        debug_assert!(before.is_none(), "{extent} is to be copied twice, though writers lock it before");
        self.work.notify_all();
        Ok(())
    }

    /// The next extent that is to be copied, which is claimed; none while enough are.
    pub(super) fn next_copy(&self, state: &mut State) -> Option<ExtentId> {
        let now = self.world.now();
        let is_due = |extent: &ExtentId| {
            let has_waited = state.failed.get(extent).is_none_or(|failure| failure.due <= now);
            has_waited && !state.busy.contains(extent)
        };
        if state.copying >= COPIES_AT_ONCE {
            return None;
        }
        let next = state.copies.keys().copied().find(is_due)?;
        state.busy.insert(next);
        state.copying += 1;
        Some(next)
    }

    /// Gives an extent that is claimed its own slot, and books the end.
    pub(super) async fn copy_out(self: &Rc<Self>, extent: ExtentId) {
        let result = self.own_slot(extent, None).await;
        let mut state = self.state.borrow_mut();
        state.busy.remove(&extent);
        state.copying -= 1;
        match result {
            Ok(()) => {
                if let Some(failure) = state.failed.remove(&extent) {
                    state.unpin_all(failure.pins);
                }
            }
            Err(error) => {
                tracing::error!(
                    "{extent} gets no slot of its own: {error}; what was written stays in the log"
                );
                state.counts.failures += 1;
                state.last_failure = Some(error);
                let now = self.world.now();
                // Nothing of its pages is half destaged.
                state.fail_extent(extent, error, now);
            }
        }
        drop(state);
        self.progress.notify_all();
        self.work.notify_all();
    }

    /// Claims an extent that is to leave its slot; false where it moves just now.
    pub(super) fn claim_to_leave(&self, extent: ExtentId) -> bool {
        let mut state = self.state.borrow_mut();
        let is_free = state.busy.insert(extent);
        if is_free {
            state.emptied.insert(extent);
        }
        is_free
    }

    /// Waits until an extent neither moves nor leaves its slot.
    pub(super) async fn until_idle(&self, extent: ExtentId) {
        while self.state.borrow().busy.contains(&extent) {
            self.progress.wait().await;
        }
    }

    /// An extent that has a slot with others, and that the caller has locked and claimed, leaves it: it reads as zeros.
    pub(super) async fn leave_slot(&self, extent: ExtentId, slot: SlotRef) -> Result<(), IoError> {
        let left = self.mapping.commit_leave(extent, slot).await;
        let is_free = left.is_ok() && self.mapping.has_left(extent, slot);
        {
            let mut state = self.state.borrow_mut();
            state.emptied.remove(&extent);
            state.busy.remove(&extent);
        }
        self.progress.notify_all();
        self.work.notify_all();
        if is_free {
            self.until_free(slot).await;
            self.mapping.give_back(slot);
        }
        left
    }

    /// Moves an extent to the slot that was allocated for it. `held` keeps writers away.
    pub(super) async fn own_slot(&self, extent: ExtentId, held: Option<PageGuard>) -> Result<(), IoError> {
        let to = self.state.borrow().copies.get(&extent).copied().expect("a slot was allocated for it");
        let Some(from) = self.mapping.slot(extent) else {
            // Its volume is gone.
            self.state.borrow_mut().copies.remove(&extent);
            self.until_free(to).await;
            self.mapping.give_back(to);
            return Ok(());
        };
        let relocation = Relocation { extents: vec![extent], from, to };
        let held = held.map(|guard| vec![guard]);
        let moved = self.relocate_claimed(&relocation, held, Lost::StaysLost).await;
        if moved.is_err() {
            // It is tried again.
            self.allocate_slot(to);
        }
        let is_free = moved?;
        self.state.borrow_mut().copies.remove(&extent);
        if is_free {
            self.until_free(from).await;
            self.mapping.give_back(from);
        }
        Ok(())
    }
}

impl State {
    /// Whether no batch may take an extent: one is on it, or it is to move first.
    pub(super) fn is_taken(&self, extent: ExtentId) -> bool {
        self.busy.contains(&extent) || self.copies.contains_key(&extent)
    }
}
