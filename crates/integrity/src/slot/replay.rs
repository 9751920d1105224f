//! Recovery: rows whose write a power cut may have broken off are written again as their intents say.
//!
//! An intent has the parity that was right when it was made. If a drive had lied by then, a scrub may have made that parity
//! right since, and what was never logged is lost again: so these rows are scrubbed once more.

use std::collections::BTreeMap;

use tier0_raid::io::Rest;
use tier0_raid::layout::{Column, ColumnMask, Row, Unit};
use tier0_units::{ExtentId, Lba, PAGE_SECTORS, SlotRef};
use tier0_world::{Buf, IoError, PlantedBug, planted};

use super::SlotIo;
use crate::intent::{Intent, IntentPage};

/// A row whose parity recovery has taken from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplayedRow {
    /// The extent.
    pub extent: ExtentId,
    /// Its slot.
    pub slot: SlotRef,
    /// The row of the slot's set.
    pub row: Row,
}

impl SlotIo {
    /// Writes the rows of one extent as its intents say, in the order of the log: each with the contents of its
    /// [`IntentPage::Log`] pages, in order. This comes before anything else is written; the caller leaves out those
    /// whose allocation is no longer the extent's. Nothing of it is stable before [`SlotIo::sync`].
    ///
    /// An intent has no parity for a column that was lost when it was made. If that column is there again, it was rebuilt
    /// after the intent's write, and is right as it is: the parity that earlier intents have for it is left out.
    ///
    /// # Errors
    /// [`IoError::OutOfRange`] when an intent does not fit the pool or its pages; [`IoError::RedundancyLost`] when too
    /// many drives are lost. The intents before it were replayed.
    pub async fn replay_intents(&self, intents: &[(&Intent, &[Buf])]) -> Result<(), IoError> {
        if planted(PlantedBug::IgnoreIntents) {
            return Ok(());
        }
        let stale = self.stale_parity(intents.iter().map(|(intent, _)| *intent));
        for ((intent, pages), stale) in intents.iter().zip(stale) {
            self.replay_intent(intent, pages, stale).await?;
        }
        Ok(())
    }

    /// Per intent the columns whose parity a later intent of its row does without.
    fn stale_parity<'a>(&self, intents: impl DoubleEndedIterator<Item = &'a Intent>) -> Vec<ColumnMask> {
        let mut without: BTreeMap<(u32, u64), ColumnMask> = BTreeMap::new();
        let stale_of = |intent: &Intent| {
            let later = without.entry((intent.set.0, intent.row.0)).or_default();
            let stale = *later;
            *later = stale | self.parity_left_out(intent);
            stale
        };
        let mut stale: Vec<ColumnMask> = intents.rev().map(stale_of).collect();
        stale.reverse();
        stale
    }

    /// The parity columns of what an intent writes that it says nothing of: they were lost when it was made.
    fn parity_left_out(&self, intent: &Intent) -> ColumnMask {
        let layout = self.raid().sets().layout(intent.set);
        if intent.parity.is_empty() && intent.pages.len() == layout.row_pages() {
            return ColumnMask::EMPTY;
        }
        let row_pages = layout.row_pages() as u64;
        let group = |page: u32| {
            let unit = u64::from(page) % row_pages / layout.unit_pages() as u64;
            layout.group_of(Unit(unit as u8))
        };
        let needed = intent
            .pages
            .iter()
            .map(|(page, _)| layout.parity_columns(intent.row, group(*page)).mask())
            .fold(ColumnMask::EMPTY, |all, columns| all | columns);
        needed - intent.parity.iter().map(|piece| piece.column).collect()
    }

    async fn replay_intent(&self, intent: &Intent, pages: &[Buf], stale: ColumnMask) -> Result<(), IoError> {
        let contents = self.fit(intent, pages).ok_or(IoError::OutOfRange)?;
        let _guard = self.shared.locks.lock([intent.slot.slot].into()).await;
        self.recovered(intent.slot.slot);
        let table = self.table_to_write(intent.slot).await?;
        let layout = self.raid().sets().layout(intent.set);
        let written = if contents.len() == layout.row_pages() && layout.parities() > 0 {
            let mut prepared =
                self.raid().prepare(intent.set, intent.row, &contents, Rest::Kept, table.as_ref()).await?;
            prepared.leave_out_parity(stale);
            prepared.write().await?
        } else {
            let kept = intent.parity.iter().filter(|piece| !stale.contains(piece.column));
            let parity: Vec<(Column, Lba, Buf)> =
                kept.map(|piece| (piece.column, piece.lba, piece.buf.clone())).collect();
            if !parity.is_empty() {
                let (extent, slot, row) = (intent.extent, intent.slot, intent.row);
                self.shared.replayed.borrow_mut().insert(ReplayedRow { extent, slot, row });
            }
            self.raid().replay_row(intent.set, intent.row, &contents, &parity, Rest::Kept).await?
        };
        for ((page, source), (_, buf)) in intent.pages.iter().zip(&contents) {
            match source {
                IntentPage::Log(_) => table.set_stored(*page, buf.as_slice()),
                IntentPage::ZeroFill => table.set_zero(*page),
            }
        }
        drop(written);
        Ok(())
    }

    /// The rows whose parity recovery has taken from the log, each once, by extent; they are the caller's to scrub.
    pub fn take_replayed(&self) -> Vec<ReplayedRow> {
        self.shared.replayed.take().into_iter().collect()
    }

    /// Scrubs such a row; what is repaired is stable when it ends. One that lacks a column is left for later, for what is read
    /// from the others is no verdict on them: [`SlotIo::take_replayed`] gives it again.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when too many drives are lost; [`IoError::DataLost`] when the table is lost.
    pub async fn scrub_replayed(&self, replayed: ReplayedRow) -> Result<(), IoError> {
        let ReplayedRow { slot, row, .. } = replayed;
        let _guard = self.shared.locks.lock([slot.slot].into()).await;
        let table = self.table(slot).await?;
        let set = table.home().set;
        if !self.raid().lost_columns(set, row).is_empty() {
            self.shared.replayed.borrow_mut().insert(replayed);
            return Ok(());
        }
        let found = self.raid().scrub_rows(set, row..Row(row.0 + 1), table.as_ref()).await?;
        if found.repaired > 0 {
            self.raid().flush_sets([set]).await?;
        }
        Ok(())
    }

    /// Writes all tables that were changed and makes everything written so far stable: the end of recovery.
    pub async fn sync(&self) -> Result<(), IoError> {
        let tables = self.shared.tables.dirty();
        let _guard =
            self.shared.locks.lock(tables.iter().map(|table| table.home().slot.slot).collect()).await;
        tables.iter().for_each(|table| self.recovered(table.home().slot.slot));
        self.write_tables(&tables, true).await
    }

    /// The content of all pages of an intent by their place in the row; none if it does not fit the pool.
    fn fit(&self, intent: &Intent, pages: &[Buf]) -> Option<Vec<(u64, Buf)>> {
        let slots = self.slots();
        if intent.slot.slot >= slots.count() || slots.place(intent.slot.slot).set != intent.set {
            return None;
        }
        let rows = slots.rows(intent.slot.slot);
        let layout = self.raid().sets().layout(intent.set);
        let row_in_slot = intent.row.0.checked_sub(rows.start.0).filter(|_| intent.row < rows.end)?;
        let first_page = row_in_slot * layout.row_pages() as u64;
        let unit = layout.stripe_unit().0;
        let row_lbas = intent.row.0 * unit..(intent.row.0 + 1) * unit;
        let parity_fits = intent.parity.iter().all(|piece| {
            let end = piece.lba.0.checked_add(u64::from(piece.buf.sectors()));
            piece.column.index() < layout.columns()
                && row_lbas.contains(&piece.lba.0)
                && end.is_some_and(|end| end <= row_lbas.end)
        });
        if !parity_fits {
            return None;
        }
        let mut given = pages.iter();
        let content = |(page, source): &(u32, IntentPage)| {
            let buf = match source {
                IntentPage::Log(_) => given.next()?.clone(),
                IntentPage::ZeroFill => self.shared.zero_page.clone(),
            };
            let place = u64::from(*page).checked_sub(first_page)?;
            let fits = u64::from(buf.sectors()) == PAGE_SECTORS && place < layout.row_pages() as u64;
            fits.then_some((place, buf))
        };
        let contents: Option<Vec<(u64, Buf)>> = intent.pages.iter().map(content).collect();
        contents.filter(|_| given.next().is_none())
    }
}
