//! Which slots have changed while a drive was lost: what a drive that returns need not be given again.
//!
//! A slot that is written counts as changed if its set must do without one of its columns when the write has ended. Writes
//! end when they are stable on every drive that serves, so whatever had ended before a drive was lost is on it, and whatever
//! had not counts as changed. What recovery wrote counts in any case. A slot that has all its columns again, the last one
//! where it was before, no longer counts; one whose column was rebuilt elsewhere does, for the metadata name the old place
//! until the whole column is there.

use std::cell::RefCell;
use std::collections::BTreeSet;

use tier0_world::{PlantedBug, planted};

use super::SlotIo;

/// The slots of one shard that have changed while one of their columns was lost, or by recovery.
#[derive(Default)]
pub(super) struct ChangedSlots(RefCell<BTreeSet<u64>>);

/// Slots that are being written; when this is dropped they have been, or have failed.
pub(super) struct Changing<'a> {
    io: &'a SlotIo,
    slots: BTreeSet<u64>,
}

impl SlotIo {
    /// These slots are written until what is returned is dropped. The caller has them locked.
    pub(super) fn changing(&self, slots: BTreeSet<u64>) -> Changing<'_> {
        Changing { io: self, slots }
    }

    /// Recovery writes this slot.
    pub(super) fn recovered(&self, slot: u64) {
        self.shared.changed.0.borrow_mut().insert(slot);
    }

    /// One of the slot's columns is rebuilt and stable where it was until its drive was lost.
    pub(super) fn regained(&self, slot: u64) {
        if !self.lacks_columns(slot) {
            self.shared.changed.0.borrow_mut().remove(&slot);
        }
    }

    /// Whether a drive that was lost while this array ran, and answers again, may lack what the slot holds now.
    pub(super) fn has_changed(&self, slot: u64) -> bool {
        self.shared.changed.0.borrow().contains(&slot) && !planted(PlantedBug::ForgetChangedSlots)
    }

    /// Whether the set does without a column in the rows of this slot: all of them are rebuilt at once.
    fn lacks_columns(&self, slot: u64) -> bool {
        let first_row = self.slots().rows(slot).start;
        !self.raid().lost_columns(self.slots().place(slot).set, first_row).is_empty()
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        let raid = self.io.raid();
        if raid.members().lost().any() || raid.sets().any_rebuilding() {
            self.slots.retain(|slot| self.io.lacks_columns(*slot));
            self.io.shared.changed.0.borrow_mut().append(&mut self.slots);
        }
    }
}
