//! Destaging: from the log's pages to their places, in an order that a power cut may break off anywhere.
//!
//! 1. What parity needs is read and verified, the new parity computed; the rows stay locked.
//! 2. With parity: intents are appended to the log, all together, and are stable before anything is written.
//! 3. Data and parity are written in place; with each row its entries in the tables change, under the row's lock.
//! 4. The tables are written: their next generation.
//! 5. The drives are flushed.
//!
//! Until the end of step 5 the log keeps the pages and the intents, so whatever part of this a power cut leaves behind
//! is written once more. A row that is written whole has no parity in its intent: it follows from the pages.

use std::collections::BTreeSet;
use std::rc::Rc;

use futures_util::future::{join_all, try_join_all};
use tier0_raid::io::{Prepared, Rest};
use tier0_units::SlotRef;
use tier0_world::{IoError, PlantedBug, planted};

use super::SlotIo;
use super::plan::{RowPlan, RowShape, plan_rows};
use super::request::{PageContent, SlotOutcome, SlotWrite};
use crate::intent::{Intent, IntentLog, ParityPiece};
use crate::table::SlotTable;

/// A row of a batch on its way.
struct RowWrite<'a> {
    write: &'a SlotWrite,
    table: &'a SlotTable,
    plan: RowPlan,
}

impl SlotIo {
    /// Writes pages to their slots, each slot at most once in a batch. When it ends, all of it is stable: in place, and
    /// in the slots' tables. Batches with a slot in common go one after the other.
    ///
    /// # Errors
    /// The first failure: of the intent log, of a slot's table, or [`IoError::RedundancyLost`] when too many drives are
    /// lost. Then any part of the batch may have been written, and the log must keep the pages; writing the batch again
    /// is right.
    ///
    /// # Panics
    /// When the pages of a slot are not ascending or not its own, or a slot occurs twice.
    pub async fn write_batch(
        &self,
        mut batch: Vec<SlotWrite>,
        intents: &dyn IntentLog,
    ) -> Result<Vec<SlotOutcome>, IoError> {
        self.check(&batch);
        self.complete_unwiped(&mut batch);
        let slots: BTreeSet<u64> = batch.iter().map(|write| write.slot.slot).collect();
        assert_eq!(slots.len(), batch.len(), "a slot occurs twice in a batch");
        let _guard = self.shared.locks.lock(slots.clone()).await;
        let _changing = self.changing(slots);
        let tables = try_join_all(batch.iter().map(|write| self.table_to_write(write.slot))).await?;
        let wrote_rows = self.write_rows(&batch, &tables, intents).await?;
        for (write, table) in batch.iter().zip(&tables) {
            zeroed_pages(write).for_each(|page| table.give_up(page));
        }
        self.write_tables(&tables, wrote_rows).await?;
        let outcome = |(write, table): (&SlotWrite, &Rc<SlotTable>)| SlotOutcome {
            extent: write.extent,
            slot: write.slot,
            all_zero: table.is_all_zero(),
        };
        self.forget_lost_pages(&batch);
        self.wiped(&batch);
        Ok(batch.iter().zip(&tables).map(outcome).collect())
    }

    /// Makes stable that an allocated slot of which nothing was ever written reads as zeros, so that its table is found
    /// once the slot is mapped. A slot that has been written since it was allocated is known by the batch that did so,
    /// whose last step is a flush; a caller that met a failure in one allocates the slot anew first, as both do.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when no copy of the table took it, or what a drive fails with.
    pub async fn make_known(&self, slot: SlotRef) -> Result<(), IoError> {
        if !self.is_checked() {
            return self.wipe(slot).await;
        }
        let _guard = self.shared.locks.lock([slot.slot].into()).await;
        let _changing = self.changing([slot.slot].into());
        let table = self.table(slot).await?;
        match (table.is_fresh(), table.is_unflushed()) {
            (false, false) => return Ok(()),
            (false, true) => {}
            (true, _) => self.write_table(&table).await?,
        }
        self.raid().flush_sets([table.home().set]).await?;
        self.shared.tables.flushed(&table);
        Ok(())
    }

    fn check(&self, batch: &[SlotWrite]) {
        for write in batch {
            let ascending = write.pages.windows(2).all(|pair| pair[0].0 < pair[1].0);
            let inside =
                write.pages.last().is_none_or(|(page, _)| *page < self.pages_per_slot(write.slot.slot));
            assert!(ascending && inside, "pages of {} are not ascending pages of a slot", write.extent);
        }
    }

    /// Steps 1 to 3; whether anything was written.
    async fn write_rows(
        &self,
        batch: &[SlotWrite],
        tables: &[Rc<SlotTable>],
        intents: &dyn IntentLog,
    ) -> Result<bool, IoError> {
        let shape = |table: &SlotTable| {
            let layout = self.raid().sets().layout(table.home().set);
            let (pages, zeros) = (layout.row_pages() as u32, &self.shared.zero_page);
            RowShape { pages, zeros, has_parity: layout.parities() > 0 }
        };
        let rows: Vec<RowWrite<'_>> = batch
            .iter()
            .zip(tables)
            .flat_map(|(write, table)| {
                let plans = plan_rows(write, table, shape(table));
                plans.into_iter().map(move |plan| RowWrite { write, table, plan })
            })
            .collect();
        if rows.is_empty() {
            return Ok(false);
        }
        let prepared = try_join_all(rows.iter().map(|row| self.prepare(row))).await?;
        let with_parity = rows.iter().zip(&prepared).filter(|(row, _)| shape(row.table).has_parity);
        let logged: Vec<Intent> = with_parity.map(|(row, prepared)| row.intent(prepared)).collect();
        if !logged.is_empty() {
            intents.append(logged).await?;
        }
        // All rows are brought to their end even if one fails: what was written and its checksum belong together.
        let writes = rows.iter().zip(prepared).map(|(row, prepared)| self.write_row(row, prepared));
        join_all(writes).await.into_iter().collect::<Result<(), IoError>>()?;
        Ok(true)
    }

    async fn prepare(&self, row: &RowWrite<'_>) -> Result<Prepared, IoError> {
        let _permit = self.lane.rows.acquire(1).await;
        let set = row.table.home().set;
        let pages = row.plan.row_pages(&self.shared.zero_page);
        self.raid().prepare(set, row.plan.row, &pages, Rest::Kept, row.table).await
    }

    async fn write_row(&self, row: &RowWrite<'_>, prepared: Prepared) -> Result<(), IoError> {
        let _permit = self.lane.rows.acquire(1).await;
        let written = prepared.write().await?;
        row.plan.settle(row.table);
        drop(written);
        Ok(())
    }

    /// Steps 4 and 5: writes the tables that have changed, and makes everything stable.
    pub(super) async fn write_tables(
        &self,
        tables: &[Rc<SlotTable>],
        wrote_rows: bool,
    ) -> Result<(), IoError> {
        let changed: Vec<&Rc<SlotTable>> = tables.iter().filter(|table| table.is_dirty()).collect();
        if changed.is_empty() && !wrote_rows {
            return Ok(());
        }
        // All are brought to their end even if one fails: a table whose write is cut short would count as written.
        let written = join_all(changed.iter().map(|table| self.write_table(table))).await;
        written.into_iter().collect::<Result<(), IoError>>()?;
        if !planted(PlantedBug::SkipFlushBeforeRelease) {
            self.raid().flush_sets(tables.iter().map(|table| table.home().set)).await?;
        }
        changed.iter().for_each(|table| self.shared.tables.flushed(table));
        Ok(())
    }

    async fn write_table(&self, table: &SlotTable) -> Result<(), IoError> {
        let _permit = self.lane.rows.acquire(1).await;
        self.shared.tables.write(table).await
    }

    /// What is written anew is lost no more.
    fn forget_lost_pages(&self, batch: &[SlotWrite]) {
        for write in batch {
            self.counts().forget_unrecoverable(write.slot.slot, write.pages.iter().map(|(page, _)| *page));
        }
    }
}

impl RowWrite<'_> {
    fn intent(&self, prepared: &Prepared) -> Intent {
        let pieces =
            prepared.parity().map(|(column, lba, buf)| ParityPiece { column, lba, buf: buf.clone() });
        Intent {
            extent: self.write.extent,
            slot: self.write.slot,
            set: prepared.set(),
            row: prepared.row(),
            pages: self.plan.intent_pages(),
            parity: if self.plan.is_whole() { Vec::new() } else { pieces.collect() },
        }
    }
}

/// The pages that are to read as zeros.
fn zeroed_pages(write: &SlotWrite) -> impl Iterator<Item = u32> {
    write.pages.iter().filter(|(_, content)| matches!(content, PageContent::Zero)).map(|(page, _)| *page)
}
