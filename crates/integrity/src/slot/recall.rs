//! Checksums that only a drive has that was taken back: every other copy of a slot's table was lost, so nothing is known of
//! its pages ([`SlotTables::get_or_begin`](crate::table::SlotTables::get_or_begin)).
//!
//! What the drive has is believed only if the slot has not changed since the drive was lost, while this array ran: then it is
//! as new as what was lost. Else it may be old, and nothing tells: not even that another drive holds what passes an old checksum,
//! for a page that was given up since is still there.

use std::rc::Rc;

use tier0_raid::io::Stake;
use tier0_raid::layout::Column;
use tier0_world::IoError;

use super::SlotIo;
use crate::table::SlotTable;

impl SlotIo {
    /// Has a table of which some is not known be what its copy says where a column is being rebuilt to; whether it is. The slot
    /// is locked and has not changed since that copy was written.
    pub(super) async fn recall_table(&self, table: &Rc<SlotTable>, column: Column) -> Result<bool, IoError> {
        if !table.has_unknown() {
            return Ok(false);
        }
        let mut wait = self.raid().wait(Stake::Content);
        let held = loop {
            match self.shared.tables.held_by_target(table, column).await {
                Err(IoError::Medium) if wait.again().await => {}
                held => break held,
            }
        };
        let Ok(held) = held else { return Ok(false) };
        wait.succeeded();
        let Some((generation, entries)) = held else { return Ok(false) };
        table.recall(generation, &entries);
        tracing::warn!(home = ?table.home(), "checksums are known again from a drive that was taken back");
        self.shared.tables.write(table).await?;
        Ok(true)
    }
}
