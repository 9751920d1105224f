//! Scrub and rebuild of one slot: its rows, and the copies of its table.

use tier0_pool::ChunkletAddress;
use tier0_raid::io::{Rebuilt, ScrubOutcome};
use tier0_raid::layout::{Column, ColumnMask};
use tier0_raid::set::SetIndex;
use tier0_units::SlotRef;
use tier0_world::{IoError, PlantedBug, planted};

use super::SlotIo;
use super::locks::SlotGuard;

/// What a scrub of a slot found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotScrub {
    /// In its rows.
    pub rows: ScrubOutcome,
    /// Copies of its table that were stale, damaged or unreadable, and were written again.
    pub tables_repaired: u64,
    /// The pages of the slot that nothing could make right.
    pub lost_pages: Vec<u32>,
}

/// A slot's share of a column that was rebuilt and is stable. The slot and its rows stay locked until this is dropped.
#[must_use = "the column counts as lost in these rows until they are declared present"]
pub struct SlotRebuilt {
    io: SlotIo,
    slot: SlotRef,
    set: SetIndex,
    column: Column,
    target: ChunkletAddress,
    /// It was there until its drive was lost.
    returned: bool,
    rebuilt: Rebuilt,
    _guard: SlotGuard,
}

impl SlotRebuilt {
    /// Rows that were written; the others are unwritten and had nothing to rebuild.
    pub fn rows_written(&self) -> u64 {
        self.rebuilt.rows_written
    }

    /// Whether pages were met of which nothing is right.
    pub fn has_lost_pages(&self) -> bool {
        !self.rebuilt.lost_pages.is_empty()
    }

    /// Whether the column is still where it was rebuilt to, on a drive that is not lost: ask before the metadata are to
    /// remember it.
    pub fn is_current(&self) -> bool {
        self.io.is_target(self.set, self.column, self.target)
    }

    /// Where the column was rebuilt to.
    pub fn target(&self) -> ChunkletAddress {
        self.target
    }

    /// Declares the slot's rows present on the column, and unlocks them: the metadata remember it. False, and nothing is
    /// present, if the column has moved on meanwhile.
    pub fn declare_present(self) -> bool {
        let rows = self.io.slots().rows(self.slot.slot);
        let sets = self.io.raid().sets();
        let is_present = self.is_current() && sets.set_rebuilt_at(self.set, self.column, self.target, rows);
        if is_present && self.returned {
            self.io.regained(self.slot.slot);
        }
        is_present
    }
}

impl SlotIo {
    /// Reads everything that a slot has on every drive, and makes right what is wrong; repairs are stable when it ends.
    ///
    /// Pages that a power cut caught and that the log still has must have been destaged before: at levels without parity
    /// they may fail until then.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when too many drives are lost; [`IoError::DataLost`] when the table is lost.
    pub async fn scrub_slot(&self, slot: SlotRef) -> Result<SlotScrub, IoError> {
        let _guard = self.shared.locks.lock([slot.slot].into()).await;
        tracing::trace!(?slot, "a slot is scrubbed");
        let table = self.table(slot).await?;
        let tables_repaired = self.shared.tables.scrub(&table).await?;
        let set = table.home().set;
        let rows = self.raid().scrub_rows(set, self.slots().rows(slot.slot), table.as_ref()).await?;
        // What is repaired is stable before the caller is told, and before the scrub's cursor moves on.
        if tables_repaired + rows.repaired > 0 {
            self.raid().flush_sets([set]).await?;
            self.shared.tables.flushed(&table);
        }
        let in_slot = |page: &u64| (page - table.home().first_page) as u32;
        let lost_pages: Vec<u32> = rows.lost_pages.iter().map(in_slot).collect();
        let right = (0..self.pages_per_slot(slot.slot)).filter(|page| !lost_pages.contains(page));
        self.counts().forget_unrecoverable(slot.slot, right);
        Ok(SlotScrub { rows, tables_repaired, lost_pages })
    }

    /// Rebuilds a slot's share of a column that was moved to a spare chunklet
    /// ([`RaidSets::start_rebuild`](tier0_raid::set::RaidSets::start_rebuild)), with the copy of its table, and
    /// flushes. The caller makes that known to the metadata and then calls [`SlotRebuilt::declare_present`]. `returned`
    /// is where the column was until its drive was lost, while this array ran: if it is rebuilt there, what has not changed
    /// since is there.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when too many drives are lost; [`IoError::Gone`] or what else the spare's drive fails with.
    pub async fn rebuild_slot(
        &self,
        slot: SlotRef,
        column: Column,
        returned: Option<ChunkletAddress>,
    ) -> Result<SlotRebuilt, IoError> {
        let guard = self.shared.locks.lock([slot.slot].into()).await;
        tracing::trace!(?slot, ?column, "a slot is rebuilt");
        let table = self.table_to_write(slot).await?;
        let set = table.home().set;
        let target = self.raid().sets().chunklet(set, column);
        // The column may have moved on since the caller asked.
        let returned = returned == Some(target);
        let is_unchanged = returned && !self.has_changed(slot.slot);
        let is_recalled = is_unchanged && self.recall_table(&table, column).await?;
        let rows = self.slots().rows(slot.slot);
        let is_kept = is_unchanged && !is_recalled;
        let rebuilt = match is_kept {
            true => self.raid().keep_rows(set, rows).await,
            false => self.raid().rebuild_rows(set, column, rows, table.as_ref()).await?,
        };
        // A table that was begun anew is to be there too: what the drive has of it counts more otherwise.
        if !is_kept || table.has_unknown() {
            self.shared.tables.write_columns(&table, ColumnMask::only(column)).await?;
            if !planted(PlantedBug::CommitRebuildBeforeFlush) {
                self.raid().flush_sets([set]).await?;
            }
            self.shared.tables.flushed(&table);
        }
        if !self.is_target(set, column, target) {
            return Err(IoError::Gone);
        }
        Ok(SlotRebuilt { io: self.clone(), slot, set, column, target, returned, rebuilt, _guard: guard })
    }

    /// Whether a column lies on this chunklet, and its drive is not lost.
    fn is_target(&self, set: SetIndex, column: Column, target: ChunkletAddress) -> bool {
        let lost = self.raid().members().lost().is_lost(target.drive as usize);
        self.raid().sets().chunklet(set, column) == target && !lost
    }
}
