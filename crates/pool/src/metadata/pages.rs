//! The pages of the map: where they lie, which have changed since the newest checkpoint, and what a checkpoint that is
//! being written still needs of them.
//!
//! A checkpoint is of one position of the journal, and is written while commits go on. So the set of changed pages is
//! frozen at its beginning, and whatever changes a slot in a page of that set that was not encoded yet keeps what it was.
//!
//! What it does not do: it reads and writes no drives.

use std::collections::BTreeMap;

use tier0_world::{PlantedBug, planted};

use crate::MetaRecord;
use crate::checkpoint::{PAGE_SLOTS, PageBytes, PageTable, encode_page, page_count};
use crate::state::{BitSet, PoolState, Tenant};

/// The pages of a pool's map.
pub(super) struct Pages {
    /// As the newest checkpoint has them.
    pub(super) table: PageTable,
    /// Pages that have changed since that one, or the one that is being written, was begun.
    changed: BitSet,
    frozen: Option<Frozen>,
}

/// What is left of a checkpoint that is being written.
struct Frozen {
    generation: u64,
    /// Slots that there were.
    slots: u64,
    /// Pages that were not encoded yet.
    pending: BitSet,
    /// Slots of those that have changed since, as they were; none where they were free.
    saved: BTreeMap<u64, Option<Tenant>>,
}

impl Frozen {
    /// A page as it was; what was kept of it is not needed any more.
    fn encode(&mut self, state: &PoolState, page: u64) -> PageBytes {
        let tenant = |slot: u64| match self.saved.get(&slot) {
            Some(saved) => *saved,
            None => state.tenant(slot),
        };
        let bytes = encode_page(state.id(), self.slots, page, self.generation, tenant);
        // Pages are taken in their order.
        self.saved = self.saved.split_off(&((page + 1) * PAGE_SLOTS));
        bytes
    }
}

impl Pages {
    /// The pages of a state, as a checkpoint has them that was read or that there never was.
    pub(super) fn new(table: PageTable) -> Pages {
        let changed = BitSet::new(table.count());
        Pages { table, changed, frozen: None }
    }

    /// Notes what these records are about to change; `state` is what they are applied to. Where sets come with them, to be
    /// called again afterwards: so far there are no such pages.
    pub(super) fn note(&mut self, state: &PoolState, records: &[MetaRecord]) {
        let slots = state.slot_count();
        for record in records {
            match record {
                MetaRecord::MapExtents(runs) => {
                    for run in runs {
                        // Nothing was checked yet.
                        let end = run.run.slot.slot.saturating_add(u64::from(run.run.count)).min(slots);
                        (run.run.slot.slot..end).for_each(|slot| self.note_slot(state, slot));
                    }
                }
                MetaRecord::ShareExtents(runs) => {
                    for run in runs {
                        let shared = state.shared_by(run);
                        shared.for_each(|(_, slot)| self.note_slot(state, slot.slot));
                    }
                }
                MetaRecord::UnmapExtents(runs) => {
                    for run in runs {
                        let end = u64::from(run.first.index) + u64::from(run.count);
                        let Some(map) = state.map(run.first.volume) else { continue };
                        let extents = map.iter_from(run.first.index);
                        let extents = extents.take_while(|(index, _)| u64::from(*index) < end);
                        extents.for_each(|(_, slot)| self.note_slot(state, slot.slot));
                    }
                }
                MetaRecord::VolumeDeleted { volume } => {
                    let extents = state.map(*volume).into_iter().flat_map(|map| map.iter());
                    extents.for_each(|(_, slot)| self.note_slot(state, slot.slot));
                }
                _ => {}
            }
        }
    }

    /// A slot is about to change.
    fn note_slot(&mut self, state: &PoolState, slot: u64) {
        let page = slot / PAGE_SLOTS;
        if page >= self.changed.bound() {
            self.changed.grow(page + 1);
        }
        self.changed.insert(page);
        if let Some(frozen) = &mut self.frozen
            && frozen.pending.contains(page)
            && !planted(PlantedBug::ForgetFrozenPage)
        {
            frozen.saved.entry(slot).or_insert_with(|| state.tenant(slot));
        }
    }

    /// Whatever there is counts as changed.
    pub(super) fn note_all(&mut self, state: &PoolState) {
        let pages = page_count(state.slot_count());
        self.changed.grow(pages.max(self.changed.bound()));
        (0..pages).for_each(|page| _ = self.changed.insert(page));
    }

    /// Begins a checkpoint of `state`: of all changed pages as they are now.
    pub(super) fn freeze(&mut self, state: &PoolState, generation: u64) {
        let pages = page_count(state.slot_count());
        self.table.grow(pages.max(self.table.count()));
        if state.has_families() {
            self.table.begin_families();
        }
        self.changed.grow(pages.max(self.changed.bound()));
        let pending = std::mem::replace(&mut self.changed, BitSet::new(pages));
        let slots = state.slot_count();
        self.frozen = Some(Frozen { generation, slots, pending, saved: BTreeMap::new() });
    }

    /// The frozen pages at or above `from`, at most so many, and where to go on; none there at the end.
    pub(super) fn take(
        &mut self,
        state: &PoolState,
        from: u64,
        most: usize,
    ) -> (Vec<(u64, PageBytes)>, Option<u64>) {
        let Some(frozen) = &mut self.frozen else { return (Vec::new(), None) };
        let (mut taken, mut at) = (Vec::new(), from);
        while taken.len() < most {
            let Some(page) = frozen.pending.next_present(at) else { return (taken, None) };
            frozen.pending.remove(page);
            taken.push((page, frozen.encode(state, page)));
            at = page + 1;
        }
        (taken, Some(at))
    }

    /// A checkpoint with these pages is the newest.
    pub(super) fn finish(&mut self, table: PageTable) {
        self.table = table;
        self.frozen = None;
    }
}
