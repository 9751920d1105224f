//! Extents that exist no more.

use std::collections::BTreeSet;

use tier0_units::ExtentId;

use super::{Inner, WriteBack};
use crate::locks::{PageGuard, WHOLE};

impl WriteBack {
    /// Drops whatever is dirty of extents that exist no more, and ends when nothing of them is under way.
    ///
    /// They read as zeros until [`WriteBack::has_gone`] of their volume.
    ///
    /// To be called after it is durable that they are gone (so that recovery does not own them), after the last request
    /// to them, and before [`crate::Mapping::slot`] forgets their slots: from its end on these may be used again.
    pub async fn forget(&self, gone: impl Fn(ExtentId) -> bool) {
        for extent in self.0.dirty_extents(gone) {
            self.0.forget_extent(extent).await;
        }
        self.0.release();
        self.0.leave_memory();
        self.0.progress.notify_all();
        self.0.work.notify_all();
    }
}

impl Inner {
    fn dirty_extents(&self, wanted: impl Fn(ExtentId) -> bool) -> BTreeSet<ExtentId> {
        let state = self.state.borrow();
        let logged = state.records.iter_from(state.records.first()).map(|(_, record)| record.extent);
        let others = state
            .fresh
            .keys()
            .chain(state.failed.keys())
            .chain(&state.busy)
            .chain(state.copies.keys())
            .copied();
        logged.chain(others).filter(|extent| wanted(*extent)).collect()
    }

    /// Locks an extent once no batch is on it. A batch may need the lock to end, so it is not held while this waits.
    async fn lock_idle(&self, extent: ExtentId) -> PageGuard {
        loop {
            while self.state.borrow().busy.contains(&extent) {
                self.progress.wait().await;
            }
            let guard = self.locks.lock(extent, WHOLE).await;
            if !self.state.borrow().busy.contains(&extent) {
                return guard;
            }
        }
    }

    async fn forget_extent(&self, extent: ExtentId) {
        let _guard = self.lock_idle(extent).await;
        let Some(slot) = self.mapping.slot(extent) else { return };
        let allocated = {
            let mut state = self.state.borrow_mut();
            let pages: Vec<_> = state.pages.of(extent).collect();
            for (number, page) in pages {
                state.pages.forget(extent, number, page.record);
                state.records.unpin(page.record);
            }
            if let Some(failure) = state.failed.remove(&extent) {
                state.unpin_all(failure.pins);
            }
            state.urgent.remove(&extent);
            state.fresh.remove(&extent);
            // A scrub that knows it still finds no slot.
            state.emptied.insert(extent);
            state.copies.remove(&extent)
        };
        if let Some(allocated) = allocated {
            self.until_free(allocated).await;
            self.mapping.give_back(allocated);
        }
        // What others have too they go on reading.
        if !self.mapping.is_shared(slot) {
            self.until_free(slot).await;
        }
    }
}
