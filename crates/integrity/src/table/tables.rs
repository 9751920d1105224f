//! The tables of one shard: in memory while they are used, read when they are first asked for, written in turn to the
//! two places of every copy.
//!
//! Invariants: a generation is written only when the one before it is stable on every live copy, so at any instant
//! each live copy has one whole generation, and the newest whole one of all is not older than what the log has
//! forgotten; a table that was changed and not written stays in memory.
//!
//! What it does not do: it keeps no two writers of a slot apart, [`SlotIo`](crate::SlotIo) does.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use futures_util::future::join_all;
use tier0_raid::io::{Members, RaidIo, Stake};
use tier0_raid::layout::{Column, ColumnMask};
use tier0_raid::set::{RaidSets, SetIndex, SlotMap};
use tier0_stats::{IoRecorder, IoStats, Op};
use tier0_units::{Lba, Nanos, PAGE_SECTORS, SECTOR_BYTES, SectorCount, SlotRef};
use tier0_world::sync::Notify;
use tier0_world::{Buf, BufMut, IoError, PayloadWidth};

use super::codec::{FoundTable, TableBlock, decode, encode};
use super::error::TableError;
use super::placement::{GENERATIONS, TableCopy, TablePlacement};
use super::slot_table::{SlotTable, TableHome, Usage, is_same};
use crate::counts::{IntegrityCounts, TableEvent, TableFault};

/// The tables of one shard and pool; clones share them.
#[derive(Clone)]
pub(crate) struct SlotTables(Rc<Inner>);

struct Inner {
    raid: RaidIo,
    slots: Arc<SlotMap>,
    /// The pool's short identity.
    pool: u64,
    /// Entries in memory, with what is left to others, beyond which unused tables are forgotten, bytes.
    memory_limit: usize,
    /// What is left to others, bytes.
    left: Cell<usize>,
    /// Whether others have half of what is left.
    shares: Cell<bool>,
    lookups: Cell<TableLookups>,
    loads: IoRecorder,
    usage: Usage,
    tables: RefCell<BTreeMap<u64, Rc<SlotTable>>>,
    /// The slot at which eviction goes on.
    hand: Cell<u64>,
    loading: RefCell<BTreeMap<u64, Rc<Loading>>>,
    counts: Rc<IntegrityCounts>,
    keeping: Keeping,
}

/// How often tables were asked for since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableLookups {
    /// In all.
    pub asked: u64,
    /// Those for which a table was read from its drives.
    pub read: u64,
}

/// The drive of a copy, and where a sector of its place lies there.
type PlaceOf = fn(&SlotTables, &SlotTable, TableCopy, u64) -> (usize, Lba);

/// What there is of tables at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// None: nothing is checked, and no page is known to be zeros.
    Nothing,
    /// The tables of all slots that have extents.
    Tables,
    /// The same, of a pool that was born full: where no table was ever written, every page has this checksum.
    TablesSince(u32),
}

/// A load under way, for all who wait for it.
#[derive(Default)]
struct Loading {
    /// None until it has ended, and when the task that began it was dropped.
    outcome: RefCell<Option<Result<Rc<SlotTable>, TableError>>>,
    has_ended: Cell<bool>,
    done: Notify,
}

/// What a copy of a table was found to hold.
struct FoundCopy {
    copy: TableCopy,
    /// The generations of this very allocation that are valid.
    valid: Vec<TableBlock>,
    too_new: Option<u32>,
    /// Places, of an odd generation or an even one, that cannot be read.
    unreadable: Vec<u64>,
    /// Places that hold neither a table nor zeros.
    damaged: Vec<u64>,
    /// Whether its drive was lost meanwhile, so that nothing is known of it.
    is_gone: bool,
}

/// The newest write of a table.
struct NewestWrite {
    generation: u64,
    /// None where memory has what no write has taken along: then copies of one generation may differ.
    entries: Option<Vec<u32>>,
}

impl NewestWrite {
    /// As memory has it.
    fn of(table: &SlotTable) -> NewestWrite {
        let entries = (!table.is_dirty()).then(|| table.snapshot());
        NewestWrite { generation: table.generation.get(), entries }
    }

    fn is(&self, block: &TableBlock) -> bool {
        let has = |entries: &Vec<u32>| is_same(entries, &block.entries);
        block.generation == self.generation && self.entries.as_ref().is_none_or(has)
    }
}

impl FoundCopy {
    fn has(&self, newest: &NewestWrite) -> bool {
        self.valid.iter().any(|block| newest.is(block))
    }

    /// Whether it could be read and holds nothing.
    fn is_blank(&self) -> bool {
        self.valid.is_empty() && self.unreadable.is_empty() && self.too_new.is_none()
    }

    /// What is wrong with it; none where nothing is.
    fn fault(&self, newest: &NewestWrite) -> Option<TableFault> {
        let (has, generation) = (self.has(newest), newest.generation);
        let place = generation % GENERATIONS;
        match () {
            () if has && !(generation > 1 && self.is_spoiled(generation)) => None,
            () if self.unreadable.contains(&place) || has => Some(TableFault::Unreadable),
            () if self.damaged.contains(&place) => Some(TableFault::Damaged),
            () => Some(TableFault::Stale),
        }
    }

    /// Whether what lies in the place of the generation after this one cannot be read.
    fn is_spoiled(&self, generation: u64) -> bool {
        self.unreadable.contains(&((generation + 1) % GENERATIONS))
    }
}

/// The newest generation that could be read.
fn newest(found: &[FoundCopy]) -> Option<&TableBlock> {
    found.iter().flat_map(|found| &found.valid).max_by_key(|block| block.generation)
}

/// Whether no copy shows what is newest: each live one has that whole, unless it is under way and in the log, but any may
/// have it where it cannot be read.
fn is_doubtful(found: &[FoundCopy]) -> bool {
    let shows = |copy: &FoundCopy| match newest(found) {
        _ if copy.is_gone => false,
        Some(newest) => !copy.is_spoiled(newest.generation),
        None => copy.unreadable.is_empty(),
    };
    !found.iter().any(shows) && found.iter().any(|copy| !copy.is_gone)
}

/// Where the tables of a set lie in it.
fn placement(sets: &RaidSets, slots: &SlotMap, set: SetIndex) -> TablePlacement {
    let pages = slots.slot_sectors_of(set) / PAGE_SECTORS;
    let pages = u32::try_from(pages).expect("a slot has fewer than 2^32 pages");
    TablePlacement::new(sets.layout(set), pages)
}

fn check_room(sets: &RaidSets, slots: &SlotMap, set: SetIndex) {
    let (count, room) = (slots.slots_per_set(set), sets.shape(set).table_sectors);
    let needed = placement(sets, slots, set).table_sectors(count);
    assert!(needed <= room, "the tables of {count} slots need {needed} sectors, not {room}");
}

impl SlotTables {
    pub(crate) fn new(
        raid: RaidIo,
        slots: Arc<SlotMap>,
        pool: u64,
        memory_limit: usize,
        counts: Rc<IntegrityCounts>,
        keeping: Keeping,
    ) -> SlotTables {
        if keeping != Keeping::Nothing {
            raid.sets().all().for_each(|set| check_room(raid.sets(), &slots, set));
        }
        SlotTables(Rc::new(Inner {
            raid,
            slots,
            pool,
            memory_limit,
            left: Cell::default(),
            shares: Cell::default(),
            lookups: Cell::default(),
            loads: IoRecorder::default(),
            usage: Usage::default(),
            tables: RefCell::default(),
            hand: Cell::new(0),
            loading: RefCell::default(),
            counts,
            keeping,
        }))
    }

    pub(crate) fn pages_per_slot(&self, slot: u64) -> u32 {
        (self.0.slots.slot_sectors(slot) / PAGE_SECTORS) as u32
    }

    /// Where the tables of a set lie in it.
    fn placement(&self, set: SetIndex) -> TablePlacement {
        placement(self.0.raid.sets(), &self.0.slots, set)
    }

    /// The slot was just allocated: every page reads as zeros, whatever its place on the drives holds.
    pub(crate) fn allocate(&self, slot: SlotRef) {
        self.forget(slot.slot);
        if self.0.keeping == Keeping::Nothing {
            return;
        }
        self.insert(self.zero(slot));
    }

    /// Forgets what memory has of a slot.
    pub(crate) fn forget(&self, slot: u64) {
        self.0.tables.borrow_mut().remove(&slot);
    }

    /// The tables that memory has changed and no write has taken along.
    pub(crate) fn dirty(&self) -> Vec<Rc<SlotTable>> {
        self.0.tables.borrow().values().filter(|table| table.is_dirty()).cloned().collect()
    }

    /// The table of a slot, if memory has it.
    #[inline]
    pub(crate) fn cached(&self, slot: SlotRef) -> Option<Rc<SlotTable>> {
        if self.0.keeping == Keeping::Nothing {
            return Some(Rc::new(SlotTable::untracked(
                self.home(slot),
                self.pages_per_slot(slot.slot),
                &self.0.usage,
            )));
        }
        let tables = self.0.tables.borrow();
        let table = tables.get(&slot.slot).filter(|table| table.home().slot == slot)?;
        table.referenced.set(true);
        let lookups = self.lookups();
        self.0.lookups.set(TableLookups { asked: lookups.asked + 1, ..lookups });
        Some(table.clone())
    }

    /// The table of a slot that is not newly allocated; read from its copies if memory has it not.
    pub(crate) async fn get(&self, slot: SlotRef) -> Result<Rc<SlotTable>, TableError> {
        loop {
            if let Some(table) = self.cached(slot) {
                return Ok(table);
            }
            let under_way = self.0.loading.borrow().get(&slot.slot).cloned();
            let Some(loading) = under_way else { return self.load_for_all(slot).await };
            while !loading.has_ended.get() {
                loading.done.wait().await;
            }
            let outcome = loading.outcome.borrow().clone();
            match outcome {
                Some(Ok(table)) if table.home().slot == slot => return Ok(table),
                Some(Err(error)) => return Err(error),
                _ => {}
            }
        }
    }

    async fn load_for_all(&self, slot: SlotRef) -> Result<Rc<SlotTable>, TableError> {
        let loading = Rc::new(Loading::default());
        self.0.loading.borrow_mut().insert(slot.slot, loading.clone());
        let end = EndOfLoad { tables: self, slot, loading: &loading };
        let began = IoRecorder::began(|| self.now());
        let outcome = Box::pin(self.load(slot)).await;
        let bytes = self.placement(self.home(slot).set).block_sectors() * SECTOR_BYTES;
        let took = || self.now().saturating_sub(began);
        self.0.loads.ended(Op::Read, bytes, took, outcome.is_ok());
        // A later tenant's table stays, and one that was begun anew meanwhile.
        let held = self.0.tables.borrow().get(&slot.slot).cloned();
        let outcome = match held {
            Some(held) if held.home().slot == slot => Ok(held),
            _ => outcome,
        };
        let newest = |allocation: u64| allocation <= slot.allocation;
        let held = self.0.tables.borrow().get(&slot.slot).map(|table| table.home().slot.allocation);
        if let Ok(table) = &outcome
            && held.is_none_or(newest)
        {
            self.insert(table.clone());
        }
        *loading.outcome.borrow_mut() = Some(outcome.clone());
        drop(end);
        outcome
    }

    /// The time of the drives; of a pool that has none left, none goes by.
    fn now(&self) -> Nanos {
        self.0.raid.members().any().map_or(Nanos::ZERO, |drive| drive.world().now())
    }

    async fn load(&self, slot: SlotRef) -> Result<Rc<SlotTable>, TableError> {
        let TableLookups { asked, read } = self.lookups();
        self.0.lookups.set(TableLookups { asked: asked + 1, read: read + 1 });
        let table = self.zero(slot);
        let found = self.find(&table).await?;
        let columns = found.iter().map(|found| found.copy.column).collect();
        let Some(newest) = newest(&found) else {
            if let Keeping::TablesSince(checksum) = self.0.keeping
                && found.iter().all(FoundCopy::is_blank)
            {
                table.load_full(checksum);
                return Ok(table);
            }
            if let Some(version) = found.iter().find_map(|found| found.too_new) {
                return Err(TableError::TooNew { slot, version });
            }
            if found.iter().any(|found| found.is_gone) {
                return Err(TableError::ColumnsLost { slot, set: table.home().set, columns });
            }
            self.0.raid.reported_to().table_lost(slot.slot);
            let read = found.iter().all(|found| found.unreadable.is_empty());
            return Err(TableError::Lost { slot, columns, read });
        };
        if is_doubtful(&found) {
            return Err(TableError::Lost { slot, columns, read: false });
        }
        table.load(newest.generation, &newest.entries);
        self.note(&table, &found, &NewestWrite::of(&table));
        // The table can be used as it is; a drive that fails meanwhile has been reported as lost.
        let _ = self.heal(&table).await;
        Ok(table)
    }

    /// Reads the live copies, again for a while where what cannot be read of them may be newer than all that can.
    ///
    /// # Errors
    /// Where no column with a copy is left.
    async fn find(&self, table: &SlotTable) -> Result<Vec<FoundCopy>, TableError> {
        let TableHome { slot, set, .. } = *table.home();
        let mut wait = self.0.raid.wait(Stake::Answer);
        loop {
            let (live, lost) = self.live_copies(table);
            if live.is_empty() {
                return Err(TableError::ColumnsLost { slot, set, columns: lost });
            }
            let found = join_all(live.iter().map(|copy| self.read_copy(table, *copy, Self::place))).await;
            if !is_doubtful(&found) {
                wait.succeeded();
                return Ok(found);
            }
            if !wait.again().await {
                return Ok(found);
            }
        }
    }

    /// The table of a slot that is to be written, its slot locked. Where no copy shows what is newest, it begins anew, and no
    /// page passes before it is written: what is lost must not keep others from being written. What can be read does not
    /// count where something that may be newer cannot. The new table is stable when this ends, in both places of every live
    /// copy.
    pub(crate) async fn get_or_begin(&self, slot: SlotRef) -> Result<Rc<SlotTable>, TableError> {
        let mut wait = self.0.raid.wait(Stake::Content);
        let lost = loop {
            let lost = match self.get(slot).await {
                Err(lost @ TableError::Lost { .. }) => lost,
                result => return result,
            };
            if let TableError::Lost { read: true, .. } = lost {
                break lost;
            }
            if !wait.again().await {
                break lost;
            }
        };
        let table = self.zero(slot);
        let found = self.find(&table).await?;
        match newest(&found) {
            Some(older) if is_doubtful(&found) => table.load_lost(older.generation),
            None if matches!(lost, TableError::Lost { read: true, .. }) => table.load_lost(1),
            _ => return Err(lost),
        }
        self.insert(table.clone());
        tracing::warn!(
            "{lost}; they begin anew, and every page of which nothing is known is lost until it is written"
        );
        for _ in 0..GENERATIONS {
            if self.write(&table).await.is_err() {
                return Err(lost);
            }
        }
        Ok(table)
    }

    /// Reads both generations of a copy, which lies where `at` says.
    async fn read_copy(&self, table: &SlotTable, copy: TableCopy, at: PlaceOf) -> FoundCopy {
        let mut found = FoundCopy {
            copy,
            valid: Vec::new(),
            too_new: None,
            unreadable: Vec::new(),
            damaged: Vec::new(),
            is_gone: false,
        };
        let placement = self.placement(table.home().set);
        let both = self.read_place(at(self, table, copy, 0), placement.place_sectors()).await;
        let blocks: Vec<(u64, Result<Buf, IoError>)> = match both {
            Ok(both) => {
                let sectors = placement.block_sectors() as u32;
                let block = |place: u64| Ok(both.slice(place as u32 * sectors, sectors));
                (0..GENERATIONS).map(|place| (place, block(place))).collect()
            }
            Err(_) => {
                let single = |place| async move {
                    let sectors = placement.block_sectors();
                    (place, self.read_place(at(self, table, copy, place * sectors), sectors).await)
                };
                join_all((0..GENERATIONS).map(single)).await
            }
        };
        for (place, block) in blocks {
            let block = match block {
                Ok(block) => block,
                Err(error) => {
                    found.is_gone |= error != IoError::Medium;
                    // An odd generation lies in front.
                    found.unreadable.push((place + 1) % GENERATIONS);
                    continue;
                }
            };
            match decode(block.as_slice()) {
                FoundTable::Valid(block) if self.is_of(&block, table.home()) => found.valid.push(block),
                FoundTable::TooNew(version) => found.too_new = Some(version),
                // Another tenant's, or of a slot that was never written.
                FoundTable::Valid(_) => {}
                FoundTable::None if block.as_slice().iter().all(|byte| *byte == 0) => {}
                FoundTable::Damaged | FoundTable::None => found.damaged.push((place + 1) % GENERATIONS),
            }
        }
        found
    }

    /// The newest write of a table that lies where a column is being rebuilt to, whose drive may have been taken back:
    /// generation and entries. None where there is none, or one of the two places is damaged, for that may have been newer.
    ///
    /// # Errors
    /// [`IoError::Medium`] where a place cannot be read, which may have been newer too; what else its drive fails with.
    pub(crate) async fn held_by_target(
        &self,
        table: &SlotTable,
        column: Column,
    ) -> Result<Option<(u64, Vec<u32>)>, IoError> {
        let mut copies = self.copies(table.home());
        let Some(copy) = copies.find(|copy| copy.column == column) else { return Ok(None) };
        let found = self.read_copy(table, copy, Self::target_place).await;
        if !found.unreadable.is_empty() {
            return Err(if found.is_gone { IoError::Gone } else { IoError::Medium });
        }
        let is_whole = found.damaged.is_empty() && found.too_new.is_none();
        let newest = newest(std::slice::from_ref(&found)).filter(|_| is_whole);
        Ok(newest.map(|block| (block.generation, block.entries.clone())))
    }

    async fn read_place(&self, (member, lba): (usize, Lba), sectors: u64) -> Result<Buf, IoError> {
        let members = self.0.raid.members();
        let (result, buf) = members.read(member, lba, BufMut::new(sectors as u32, PayloadWidth::REAL)).await;
        result.map(|()| buf.freeze())
    }

    fn is_of(&self, block: &TableBlock, home: &TableHome) -> bool {
        block.pool == self.0.pool
            && (block.set, block.slot) == (home.set, home.slot)
            && block.generation > 0
            && block.entries.len() == self.pages_per_slot(home.slot.slot) as usize
    }

    /// Writes the table's next generation to every live copy. It is stable when their drives have been flushed.
    ///
    /// # Errors
    /// [`IoError::RedundancyLost`] when no copy took it.
    pub(crate) async fn write(&self, table: &SlotTable) -> Result<(), IoError> {
        if !(self.live_columns(table) & table.lacking.get()).is_empty() {
            self.heal(table).await?;
        }
        // What is written now goes there.
        table.spoiled.set(ColumnMask::EMPTY);
        if table.unflushed.get() {
            self.0.raid.flush_sets([table.home().set]).await?;
            table.unflushed.set(false);
        }
        table.generation.set(table.generation.get() + 1);
        table.dirty.set(false);
        let (live, _) = self.live_copies(table);
        let result = self.write_copies(table, table.generation.get(), &live).await;
        if result.is_err() {
            table.dirty.set(true);
        }
        result
    }

    /// The drives were flushed after the table's newest write.
    pub(crate) fn flushed(&self, table: &SlotTable) {
        table.unflushed.set(false);
    }

    /// Writes the table as it is to the copies that lack its newest generation, and where a copy cannot be read. What
    /// memory has beyond that generation is in the log too, so a copy that has it early does no harm. What can be read in
    /// the other place is left alone: it is all that the copy has while the newest generation is on its way.
    pub(crate) async fn heal(&self, table: &SlotTable) -> Result<(), IoError> {
        let (live, _) = self.live_copies(table);
        let on = |columns: ColumnMask| -> Vec<TableCopy> {
            live.iter().filter(|copy| columns.contains(copy.column)).copied().collect()
        };
        let (lacking, spoiled) = (on(table.lacking.take()), on(table.spoiled.take()));
        if lacking.is_empty() && spoiled.is_empty() {
            return Ok(());
        }
        self.0.counts.count_table_copies((lacking.len() + spoiled.len()) as u64);
        tracing::debug!(home = ?table.home(), ?lacking, ?spoiled, "copies of a slot table are written again");
        let generation = table.generation.get();
        let results = [
            self.write_copies(table, generation, &lacking).await,
            self.write_copies(table, generation + 1, &spoiled).await,
        ];
        let written = [lacking, spoiled].into_iter().zip(results).filter(|(copies, _)| !copies.is_empty());
        written.map(|(_, result)| result).fold(Ok(()), Result::and)
    }

    /// Writes the newest generation, as memory has it, to the copies on these columns, lost or not: into both places,
    /// so that nothing older is left there. No task reads these copies yet; of a column that moves, those that it moves
    /// to.
    pub(crate) async fn write_columns(&self, table: &SlotTable, columns: ColumnMask) -> Result<(), IoError> {
        let copies = self.copies(table.home());
        let own: Vec<TableCopy> = copies.filter(|copy| columns.contains(copy.column)).collect();
        // What is evacuated may yet stay where it is.
        let set = table.home().set;
        let moved: ColumnMask =
            columns.iter().filter(|column| self.0.raid.sets().source(set, *column).is_none()).collect();
        table.lacking.set(table.lacking.get() - moved);
        table.spoiled.set(table.spoiled.get() - moved);
        if own.is_empty() || table.is_fresh() || !table.is_tracked() {
            return Ok(());
        }
        let generation = table.generation.get();
        self.write_blocks(table, generation, &own, Self::target_place).await?;
        self.write_blocks(table, generation + 1, &own, Self::target_place).await
    }

    /// Reads all live copies again and has those rewritten that lack the newest generation, or cannot be read; returns
    /// how many. A generation above it is none that this array wrote, as on a drive of a copy of the array: all copies are
    /// written anew then, above it, so that it does not count at the next load.
    pub(crate) async fn scrub(&self, table: &SlotTable) -> Result<u64, IoError> {
        if table.is_fresh() || !table.is_tracked() {
            return Ok(0);
        }
        let (live, _) = self.live_copies(table);
        let found = join_all(live.iter().map(|copy| self.read_copy(table, *copy, Self::place))).await;
        let newest = NewestWrite::of(table);
        self.note(table, &found, &newest);
        let has_strange =
            |found: &&FoundCopy| found.valid.iter().any(|block| block.generation > newest.generation);
        let strange: ColumnMask = found.iter().filter(has_strange).map(|found| found.copy.column).collect();
        let repaired = (table.lacking.get() | table.spoiled.get() | strange) & self.live_columns(table);
        if strange.is_empty() {
            self.heal(table).await?;
        } else {
            let above = found.iter().flat_map(|found| &found.valid).map(|block| block.generation).max();
            self.rise_above(table, above.expect("it was found")).await?;
        }
        Ok(repaired.len() as u64)
    }

    /// Writes all live copies anew, in both places, above a generation. The first of the writes spares the place of the
    /// newest one: a power cut in the middle of it leaves that.
    async fn rise_above(&self, table: &SlotTable, generation: u64) -> Result<(), IoError> {
        let own = table.generation.get();
        tracing::warn!(home = ?table.home(), own, generation, "a copy of a slot table is none that this array wrote");
        let spares_own = (generation + 1) % GENERATIONS != own % GENERATIONS;
        table.generation.set(if spares_own { generation } else { generation + 1 });
        // All of them are written in full.
        table.lacking.set(ColumnMask::EMPTY);
        for _ in 0..GENERATIONS {
            self.write(table).await?;
        }
        Ok(())
    }

    /// Writes the newest generation, as memory has it, where generation `place` lies: one copy must take it, and the others
    /// but for those that are lost by it.
    async fn write_copies(&self, table: &SlotTable, place: u64, copies: &[TableCopy]) -> Result<(), IoError> {
        self.write_blocks(table, place, copies, Self::place).await
    }

    /// Takes note of what the copies that were read lack, and tells of it.
    fn note(&self, table: &SlotTable, found: &[FoundCopy], newest: &NewestWrite) {
        table.note(found, newest);
        for found in found {
            if let Some(fault) = found.fault(newest) {
                let (member, lba) = self.place(table, found.copy, 0);
                self.0.counts.table_found(&TableEvent { member, lba, fault });
            }
        }
    }

    /// As [`SlotTables::write_copies`], each copy where `at` says.
    async fn write_blocks(
        &self,
        table: &SlotTable,
        place: u64,
        copies: &[TableCopy],
        at: PlaceOf,
    ) -> Result<(), IoError> {
        let block = self.encode(table);
        table.unflushed.set(true);
        let offset = self.placement(table.home().set).generation_offset(place);
        let write_one = |copy: &TableCopy| {
            let (member, lba) = at(self, table, *copy, offset);
            self.0.raid.members().write(member, lba, block.clone(), false)
        };
        Members::written(join_all(copies.iter().map(write_one)).await)
    }

    fn encode(&self, table: &SlotTable) -> Buf {
        let home = table.home();
        let mut buf = BufMut::new(self.placement(home.set).block_sectors() as u32, PayloadWidth::REAL);
        let block = TableBlock {
            pool: self.0.pool,
            set: home.set,
            slot: home.slot,
            generation: table.generation.get(),
            entries: table.snapshot(),
        };
        encode(&block, buf.as_mut_slice());
        buf.freeze()
    }

    /// The drive of a copy and where sector `offset` of its place lies there.
    fn place(&self, table: &SlotTable, copy: TableCopy, offset: u64) -> (usize, Lba) {
        let TableHome { set, first_row, .. } = *table.home();
        let (member, start) = self.0.raid.sets().table_place_of_row(set, copy.column, first_row);
        (member, start + SectorCount(copy.lba.0 + offset))
    }

    /// As [`SlotTables::place`], where the copy's column moves to.
    fn target_place(&self, table: &SlotTable, copy: TableCopy, offset: u64) -> (usize, Lba) {
        let (member, start) = self.0.raid.sets().table_place(table.home().set, copy.column);
        (member, start + SectorCount(copy.lba.0 + offset))
    }

    /// The copies of a table.
    fn copies(&self, home: &TableHome) -> impl Iterator<Item = TableCopy> + use<> {
        self.placement(home.set).copies(home.slot_in_set)
    }

    /// The copies whose columns are there, and the lost columns of the others.
    fn live_copies(&self, table: &SlotTable) -> (Vec<TableCopy>, ColumnMask) {
        let home = table.home();
        let lost = self.0.raid.lost_columns(home.set, home.first_row);
        let live = self.copies(home).filter(|copy| !lost.contains(copy.column));
        (live.collect(), self.placement(home.set).columns(home.slot_in_set) & lost)
    }

    fn live_columns(&self, table: &SlotTable) -> ColumnMask {
        self.live_copies(table).0.iter().map(|copy| copy.column).collect()
    }

    fn zero(&self, slot: SlotRef) -> Rc<SlotTable> {
        Rc::new(SlotTable::zero(self.home(slot), self.pages_per_slot(slot.slot), &self.0.usage))
    }

    fn home(&self, slot: SlotRef) -> TableHome {
        let (place, rows) = (self.0.slots.place(slot.slot), self.0.slots.rows(slot.slot));
        TableHome {
            slot,
            set: place.set,
            slot_in_set: place.first_sector / self.0.slots.slot_sectors(slot.slot),
            first_page: place.first_sector / PAGE_SECTORS,
            first_row: rows.start,
        }
    }

    /// Bytes that the tables in memory take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes_of(self.0.tables.borrow().len())
    }

    /// So many bytes of the memory are taken by others, about: looking for tables to forget takes time, so it is done in steps.
    pub(crate) fn leave_memory(&self, bytes: usize) {
        let step = (self.0.memory_limit / 64).max(1);
        let bytes = bytes.next_multiple_of(step);
        if self.0.left.replace(bytes) < bytes {
            self.evict();
        }
    }

    /// Others have half of what is left.
    pub(crate) fn share_memory(&self) {
        self.0.shares.set(true);
    }

    /// What is left beside the tables where others have `taken`, bytes.
    pub(crate) fn memory_left(&self, taken: usize) -> usize {
        self.0.memory_limit.saturating_sub(taken + self.memory_bytes())
    }

    pub(crate) fn lookups(&self) -> TableLookups {
        self.0.lookups.get()
    }

    /// Tables that were read: how many, and how long it took.
    pub(crate) fn loads(&self) -> IoStats {
        self.0.loads.snapshot()
    }

    /// What tables may take now.
    fn limit(&self) -> usize {
        let limit = self.0.memory_limit;
        let left = limit.saturating_sub(self.0.left.get());
        let own = if self.0.shares.get() { left / 2 } else { left };
        own.max(limit / 5)
    }

    fn bytes_of(&self, tables: usize) -> usize {
        self.0.usage.get() + tables * size_of::<SlotTable>()
    }

    fn insert(&self, table: Rc<SlotTable>) {
        self.0.tables.borrow_mut().insert(table.home().slot.slot, table);
        self.evict();
    }

    /// Forgets tables that are not in use and that the drives have, until the rest fits: those that were not asked for
    /// since the last time around first (CLOCK; Corbató, "A Paging Experiment with the Multics System", 1968).
    fn evict(&self) {
        let (mut tables, limit) = (self.0.tables.borrow_mut(), self.limit());
        for _ in 0..2 * tables.len() {
            if self.bytes_of(tables.len()) <= limit {
                return;
            }
            let next = tables.range(self.0.hand.get()..).chain(tables.iter()).next();
            let Some((&slot, table)) = next else { return };
            self.0.hand.set(slot + 1);
            let kept = table.referenced.replace(false)
                || Rc::strong_count(table) > 1
                || table.is_fresh()
                || table.is_dirty();
            if !kept {
                tables.remove(&slot);
            }
        }
    }
}

impl SlotTable {
    /// Takes note of what the copies that were read lack.
    fn note(&self, found: &[FoundCopy], newest: &NewestWrite) {
        let of = |wrong: &dyn Fn(&FoundCopy) -> bool| -> ColumnMask {
            found.iter().filter(|found| wrong(found)).map(|found| found.copy.column).collect()
        };
        self.lacking.set(self.lacking.get() | of(&|found| !found.has(newest)));
        // Before the second generation nothing of this slot lay in the other place.
        if newest.generation > 1 {
            self.spoiled.set(self.spoiled.get() | of(&|found| found.is_spoiled(newest.generation)));
        }
    }
}

/// Wakes who waits for a load, also if it was given up.
struct EndOfLoad<'a> {
    tables: &'a SlotTables,
    slot: SlotRef,
    loading: &'a Loading,
}

impl Drop for EndOfLoad<'_> {
    fn drop(&mut self) {
        self.tables.0.loading.borrow_mut().remove(&self.slot.slot);
        self.loading.has_ended.set(true);
        self.loading.done.notify_all();
    }
}
