//! What the slots of a group of sets have for themselves, so that a group of slow drives holds up no other.

use std::cell::Cell;
use std::rc::Rc;

use tier0_world::sync::Semaphore;

use super::SlotIo;

/// The share of one lane.
pub(super) struct Lane {
    /// Rows and tables that may still be read or written at once.
    pub(super) rows: Semaphore,
    /// Of the memory, what others have because of this lane.
    left: Cell<usize>,
}

impl Lane {
    pub(super) fn new(rows_in_flight: usize) -> Rc<Lane> {
        Rc::new(Lane { rows: Semaphore::new(rows_in_flight as u64), left: Cell::new(0) })
    }
}

/// What somebody else than batches has of the memory.
pub struct MemoryShare(SlotIo);

impl MemoryShare {
    /// It has so many bytes from now on: tables and clean pages make room.
    pub fn take(&self, bytes: usize) {
        self.0.leave_memory(bytes);
    }
}

impl SlotIo {
    /// A share of the memory, nothing at first.
    pub fn memory_share(&self) -> MemoryShare {
        MemoryShare(SlotIo { shared: self.shared.clone(), lane: Lane::new(0) })
    }

    /// The same slots for the batches of a lane: `rows_in_flight` rows of them at once
    /// ([`super::SlotIoOptions::rows_in_flight`]), whatever others have under way.
    pub fn in_lane(&self, rows_in_flight: usize) -> SlotIo {
        SlotIo { shared: self.shared.clone(), lane: Lane::new(rows_in_flight) }
    }

    /// Clean pages have a part of the memory from now on: half of what dirty pages leave, and what tables do not need.
    pub fn share_memory(&self) {
        self.shared.tables.share_memory();
    }

    /// What neither tables have nor others that [`SlotIo::leave_memory`] speaks of, bytes.
    pub fn memory_left(&self) -> usize {
        self.shared.tables.memory_left(self.shared.left.get())
    }

    /// So many bytes of the memory are taken by others for now, because of this lane: tables make room, but keep a fifth of
    /// it.
    pub fn leave_memory(&self, bytes: usize) {
        let others = self.shared.left.get() - self.lane.left.replace(bytes);
        self.shared.left.set(others + bytes);
        self.shared.tables.leave_memory(others + bytes);
    }
}
