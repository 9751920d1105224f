//! Space that hosts have given back and that waits in the log: an extent gives its slot back when the zeros are
//! destaged, which happens when they have aged. A pool that lacks space does not wait for that.

use std::collections::BTreeSet;

use tier0_units::ExtentId;
use tier0_world::IoError;

use super::{Inner, WriteBack};

impl WriteBack {
    /// Destages the extents that have pages of zeros in the log, so that those which are empty then give their slots
    /// back. Extents that cannot be destaged are left out. Costs nothing where there are none.
    ///
    /// # Errors
    /// When the log has failed.
    pub async fn reclaim(&self) -> Result<(), IoError> {
        let zeroed = self.0.zeroed_extents();
        if zeroed.is_empty() {
            return Ok(());
        }
        self.0.until_stable().await?;
        loop {
            self.0.check_log()?;
            let left = self.0.still_zeroed(&zeroed);
            if left.is_empty() {
                return Ok(());
            }
            self.0.state.borrow_mut().urgent.extend(left);
            self.0.work.notify_all();
            self.0.progress.wait().await;
        }
    }
}

impl Inner {
    fn zeroed_extents(&self) -> BTreeSet<ExtentId> {
        let state = self.state.borrow();
        if state.pages.len() == state.pages.data_len() {
            return BTreeSet::new();
        }
        let logged: BTreeSet<ExtentId> = state
            .records
            .iter_from(state.records.first())
            .filter(|(_, record)| record.is_needed())
            .map(|(_, record)| record.extent)
            .collect();
        drop(state);
        self.still_zeroed(&logged)
    }

    /// Those of some extents that have pages of zeros in the log, or are on their way.
    fn still_zeroed(&self, extents: &BTreeSet<ExtentId>) -> BTreeSet<ExtentId> {
        let state = self.state.borrow();
        let has_zeros = |extent: &ExtentId| state.pages.of(*extent).any(|(_, page)| page.index().is_none());
        let waits = |extent: &&ExtentId| {
            !state.failed.contains_key(extent) && (state.busy.contains(*extent) || has_zeros(extent))
        };
        extents.iter().filter(waits).copied().collect()
    }
}
