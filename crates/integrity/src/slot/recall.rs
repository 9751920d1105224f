//! Checksums that only a drive has that was taken back: every other copy of a slot's table was lost, so nothing is known of
//! its pages ([`SlotTables::get_or_begin`](crate::table::SlotTables::get_or_begin)).
//!
//! What the drive has may be old. It is believed as it is only if the slot has not changed since the drive was lost, while this
//! array ran. Else a checksum is taken where what the others hold now passes it: then that is what was written last. Never may
//! it vouch for what lies on the drive itself, which may be as old.

use std::rc::Rc;

use futures_util::{StreamExt, stream};
use tier0_raid::checksum::{STAND_IN, page_checksum};
use tier0_raid::layout::Column;
use tier0_world::IoError;

use super::SlotIo;
use crate::table::{SlotTable, is_data};

/// Pages that are looked at at once.
const AT_ONCE: usize = 32;

impl SlotIo {
    /// Has a table know what its copy says where a column is being rebuilt to; whether it knows more by that. The slot is
    /// locked.
    pub(super) async fn recall_table(
        &self,
        table: &Rc<SlotTable>,
        column: Column,
        is_unchanged: bool,
    ) -> Result<bool, IoError> {
        let unknown = table.unknown();
        if unknown.is_empty() {
            return Ok(false);
        }
        let Some(held) = self.0.tables.held_by_target(table, column).await else { return Ok(false) };
        let mut recalled = 0;
        let known = unknown.into_iter().map(|page| (page, held[page as usize]));
        let mut pages = stream::iter(known.filter(|(_, entry)| *entry != STAND_IN))
            .map(|(page, entry)| async move {
                (page, entry, is_unchanged || self.is_held(table, page, entry).await)
            })
            .buffer_unordered(AT_ONCE);
        while let Some((page, entry, is_right)) = pages.next().await {
            if is_right {
                table.recall(page, entry);
                recalled += 1;
            }
        }
        drop(pages);
        if recalled == 0 {
            return Ok(false);
        }
        let slot = table.home().slot;
        tracing::warn!(?slot, recalled, "checksums are known again from a drive that was taken back");
        self.0.tables.write(table).await?;
        Ok(true)
    }

    /// Whether a column that is there holds what passes this checksum.
    async fn is_held(&self, table: &SlotTable, page: u32, entry: u32) -> bool {
        if !is_data(entry) {
            return false;
        }
        let home = table.home();
        let held = self.raid().held(home.set, home.first_page + u64::from(page)).await;
        held.iter().any(|content| page_checksum(content.as_slice()) == entry)
    }
}
