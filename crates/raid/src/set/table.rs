//! The chunklet table: where the columns of every set lie, and which of them are being rebuilt.
//!
//! One table is shared by all shards. What changes while the array runs (a lost column moves to a spare chunklet and
//! fills row by row; sets join behind those that are there) is kept in atomics, so the data path takes no lock. A
//! column moves only after its drive was declared lost, and is declared rebuilding before its new place is visible: I/O
//! that still goes to the old place finds the drive lost, I/O that goes to the new one finds the row missing
//! ([`RaidSets::is_missing`]) until it was rebuilt.
//!
//! A column whose drive serves moves as well, when the drive is to leave: it is *evacuated*. Every row of it is at one
//! place, at the old one until it was copied and declared present, then at the new one ([`RaidSets::place_of_row`]), so
//! redundancy is never less, and nothing is written twice. The thread that has a slot copies it, so no other thread
//! reads or writes a row while it changes places.
//!
//! What it does not do: it decides on no spare ([`super::plan_spares`]) and remembers nothing across a restart; the
//! pool's metadata does.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::PoisonError;

use thiserror::Error;
use tier0_pool::{ChunkletAddress, DATA_START_SECTORS};
use tier0_units::Lba;
use tier0_world::sync::shared::{AtomicU64, Flaw, Mutex, MutexGuard, Ordering, flawed};

use crate::layout::{Column, ColumnMask, Layout, Row};
use crate::set::grow_list::GrowList;
use crate::set::rebuilding::Rebuilding;
use crate::set::shape::{SetShape, Stretches};

/// A set's number in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SetIndex(pub u32);

/// Why a chunklet table cannot be one.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TableError {
    /// The last set lacks columns.
    #[error("{chunklets} chunklets do not make whole sets of {columns}; restore the pool's metadata")]
    Incomplete {
        /// Chunklets in the table.
        chunklets: usize,
        /// Columns of a set.
        columns: usize,
    },
    /// A chunklet belongs to two columns.
    #[error("chunklet {} of drive {} belongs to two columns; restore the pool's metadata", chunklet.index, chunklet.drive)]
    Twice {
        /// The chunklet.
        chunklet: ChunkletAddress,
    },
    /// A set has two columns on one drive.
    #[error("set {} has two columns on drive {drive}; restore the pool's metadata", set.0)]
    SameDrive {
        /// The set.
        set: SetIndex,
        /// The drive's place in the pool.
        drive: u32,
    },
}

/// Where the columns of sets lie that are gone: in a table, each of them has this.
pub const NOWHERE: ChunkletAddress = ChunkletAddress { drive: u32::MAX, index: u32::MAX };

/// All sets of a pool.
#[derive(Debug)]
pub struct RaidSets {
    stretches: Stretches,
    /// Where the first chunklet starts on every drive.
    data_start_sectors: u64,
    chunklet_sectors: u64,
    /// By set and column: [`pack`]ed.
    places: GrowList<AtomicU64>,
    rebuilding: Rebuilding,
    /// Held while a column moves or rows are declared rebuilt: a shard's word for the old place must not be taken for
    /// the new one. The data path never asks for it.
    moving: Mutex<()>,
}

impl RaidSets {
    /// The sets of a table that was stored, all of one shape: the chunklets of all sets, column by column.
    ///
    /// # Errors
    /// When the table contradicts itself.
    pub fn from_table(
        shape: SetShape,
        chunklet_sectors: u64,
        table: &[ChunkletAddress],
    ) -> Result<RaidSets, TableError> {
        let columns = shape.layout.columns();
        if !table.len().is_multiple_of(columns) {
            return Err(TableError::Incomplete { chunklets: table.len(), columns });
        }
        RaidSets::from_runs(&[(shape, (table.len() / columns) as u32)], chunklet_sectors, table)
    }

    /// As [`RaidSets::from_table`], of sets that were formed in these runs, the first ones first: shape and number. At least
    /// one run says a shape.
    ///
    /// # Errors
    /// As [`RaidSets::from_table`].
    pub fn from_runs(
        runs: &[(SetShape, u32)],
        chunklet_sectors: u64,
        table: &[ChunkletAddress],
    ) -> Result<RaidSets, TableError> {
        check(runs, table)?;
        let places = GrowList::new(table.iter().map(|chunklet| AtomicU64::new(pack(*chunklet))));
        let rebuilding = Rebuilding::new(runs.iter().map(|(_, sets)| *sets as usize).sum());
        let data_start_sectors = DATA_START_SECTORS;
        Ok(RaidSets {
            stretches: Stretches::new(runs, chunklet_sectors),
            data_start_sectors,
            chunklet_sectors,
            places,
            rebuilding,
            moving: Mutex::new(()),
        })
    }

    /// The same sets on drives whose first chunklet starts at this sector.
    pub fn with_data_start(self, data_start_sectors: u64) -> RaidSets {
        RaidSets { data_start_sectors, ..self }
    }

    /// Sets of a shape join behind those that are there: the chunklets of all of them, column by column. Called by one thread
    /// at a time, the one that moves columns; other threads may use a set as soon as they are told of it.
    ///
    /// # Errors
    /// When the grown table would contradict itself: nothing has joined.
    pub fn append(&self, shape: &SetShape, columns: &[ChunkletAddress]) -> Result<(), TableError> {
        let width = shape.layout.columns();
        if !columns.len().is_multiple_of(width) {
            return Err(TableError::Incomplete { chunklets: columns.len(), columns: width });
        }
        check_chunklets(self.table().iter().chain(columns))?;
        check_drives(columns.chunks(width), self.count())?;
        self.stretches.go_on(shape, self.count(), self.places.len());
        for _ in 0..columns.len() / width {
            self.rebuilding.add_set();
        }
        for chunklet in columns {
            self.places.append(|place| place.store(pack(*chunklet), Ordering::Release));
        }
        Ok(())
    }

    /// The table as it stands: the chunklets of all sets, column by column.
    pub fn table(&self) -> Vec<ChunkletAddress> {
        self.places.iter().map(|place| unpack(place.load(Ordering::Acquire))).collect()
    }

    /// The layout of a set.
    #[inline]
    pub fn layout(&self, set: SetIndex) -> &Layout {
        &self.shape(set).layout
    }

    /// What a set has in common with others of its group.
    #[inline]
    pub fn shape(&self, set: SetIndex) -> &SetShape {
        &self.stretches.of(set).shape
    }

    /// The shapes that sets have, and those that join next; one may come several times.
    pub fn shapes(&self) -> impl Iterator<Item = &SetShape> {
        self.stretches.iter().map(|stretch| &stretch.shape)
    }

    /// All columns of a set; none if it is gone.
    pub fn columns(&self, set: SetIndex) -> impl Iterator<Item = Column> + use<> {
        let count = if self.is_gone(set) { 0 } else { self.layout(set).columns() };
        (0..count as u8).map(Column)
    }

    /// Whether a set has no columns any more.
    pub fn is_gone(&self, set: SetIndex) -> bool {
        self.chunklet(set, Column(0)) == NOWHERE
    }

    /// A set has no columns any more, and keeps its number. Called by the thread that moves columns, when none of the set does and
    /// nothing lies in its slots.
    pub fn give_up(&self, set: SetIndex) {
        let _turn = self.turn();
        for column in self.columns(set) {
            self.places.get(self.index(set, column)).store(pack(NOWHERE), Ordering::Release);
        }
    }

    /// All sets.
    pub fn all(&self) -> impl Iterator<Item = SetIndex> + use<> {
        (0..self.count()).map(SetIndex)
    }

    /// Sectors of a chunklet, which is a column of a set.
    #[inline]
    pub fn chunklet_sectors(&self) -> u64 {
        self.chunklet_sectors
    }

    /// Rows of a set.
    #[inline]
    pub fn rows(&self, set: SetIndex) -> u64 {
        self.stretches.of(set).rows
    }

    /// How many there are.
    #[inline]
    pub fn count(&self) -> u32 {
        // A stretch begins before its first set is there.
        let (last, columns) = (self.stretches.last(), self.places.len());
        last.first_set + ((columns - last.first_column) / last.shape.layout.columns()) as u32
    }

    /// The drive of a row of a column, as its place in the pool, and where the column's rows start on it.
    #[inline]
    pub fn place_of_row(&self, set: SetIndex, column: Column, row: Row) -> (usize, Lba) {
        let (drive, start) = self.table_place_of_row(set, column, row);
        (drive, Lba(start.0 + self.shape(set).table_sectors))
    }

    /// As [`RaidSets::table_place`], for the table of a slot that begins with `row`.
    #[inline]
    pub fn table_place_of_row(&self, set: SetIndex, column: Column, row: Row) -> (usize, Lba) {
        let chunklet = self.chunklet(set, column);
        if !self.rebuilding.any() || !self.rebuilding.is_unfilled(self.stretches.of(set), set, column, row.0)
        {
            return self.start_of(chunklet);
        }
        self.start_of(self.source(set, column).unwrap_or(chunklet))
    }

    /// The drive of a column, as its place in the pool, and where the column's rows start on it; while the column moves,
    /// those that it moves to.
    #[inline]
    pub fn place(&self, set: SetIndex, column: Column) -> (usize, Lba) {
        let (drive, start) = self.table_place(set, column);
        (drive, Lba(start.0 + self.shape(set).table_sectors))
    }

    /// The drive of a column and where its share of the slot tables starts on it; while the column moves, those that it
    /// moves to.
    #[inline]
    pub fn table_place(&self, set: SetIndex, column: Column) -> (usize, Lba) {
        self.start_of(self.chunklet(set, column))
    }

    #[inline]
    fn start_of(&self, chunklet: ChunkletAddress) -> (usize, Lba) {
        let start = self.data_start_sectors + u64::from(chunklet.index) * self.chunklet_sectors;
        (chunklet.drive as usize, Lba(start))
    }

    /// Where a column that is being evacuated has what was not yet copied; none where no column is.
    #[inline]
    pub fn source(&self, set: SetIndex, column: Column) -> Option<ChunkletAddress> {
        if !self.rebuilding.any() {
            return None;
        }
        self.rebuilding.source(set, column).map(unpack)
    }

    /// The chunklet of a column; while it moves, the one it moves to.
    #[inline]
    pub fn chunklet(&self, set: SetIndex, column: Column) -> ChunkletAddress {
        unpack(self.places.get(self.index(set, column)).load(Ordering::Acquire))
    }

    /// Moves a column whose drive is lost to `target`; all its rows are missing from now on. Also restarts a rebuild
    /// whose target was lost in its turn. Called by one thread at a time.
    pub fn start_rebuild(&self, set: SetIndex, column: Column, target: ChunkletAddress) {
        let _turn = self.turn();
        if flawed(Flaw::PlaceBeforeMissing) {
            self.places.get(self.index(set, column)).store(pack(target), Ordering::Release);
        }
        self.rebuilding.start(self.stretches.of(set), set, column);
        self.places.get(self.index(set, column)).store(pack(target), Ordering::Release);
    }

    /// Moves a column whose drive serves to `target`; all its rows are at the old place until they are declared rebuilt.
    /// If the drive is lost meanwhile, those that are left are rebuilt from the others. Called by one thread at a time,
    /// while the column does not move.
    pub fn start_evacuation(&self, set: SetIndex, column: Column, target: ChunkletAddress) {
        let _turn = self.turn();
        let place = self.places.get(self.index(set, column));
        self.rebuilding.start_from(self.stretches.of(set), set, column, place.load(Ordering::Acquire));
        place.store(pack(target), Ordering::Release);
    }

    /// Declares rows of a column rebuilt: its chunklet holds them, stable. Called under the rows' locks
    /// ([`crate::io::Rebuilt`] has them), or before the pool is in use.
    pub fn set_rebuilt(&self, set: SetIndex, column: Column, rows: Range<Row>) {
        let _turn = self.turn();
        self.rebuilding.set_present(self.stretches.of(set), set, column, rows.start.0..rows.end.0);
    }

    /// As [`RaidSets::set_rebuilt`], if the column still lies at `target`; else it has moved on, nothing is declared, and
    /// the result is false.
    pub fn set_rebuilt_at(
        &self,
        set: SetIndex,
        column: Column,
        target: ChunkletAddress,
        rows: Range<Row>,
    ) -> bool {
        let _turn = self.turn();
        let current = self.chunklet(set, column) == target;
        if current {
            self.rebuilding.set_present(self.stretches.of(set), set, column, rows.start.0..rows.end.0);
        }
        current
    }

    fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        let locked = || self.moving.lock().unwrap_or_else(PoisonError::into_inner);
        (!flawed(Flaw::MoveWithoutTurn)).then(locked)
    }

    /// Declares a column rebuilt in all rows.
    pub fn finish_rebuild(&self, set: SetIndex, column: Column) {
        self.rebuilding.finish(set, column);
    }

    /// The columns of a set that some rows must do without: they are being rebuilt, and not evacuated.
    #[inline]
    pub fn lacking_columns(&self, set: SetIndex) -> ColumnMask {
        self.rebuilding.lacking(set)
    }

    /// Whether a column is being rebuilt or evacuated, and its new place does not hold this row yet.
    #[inline]
    pub fn is_unfilled(&self, set: SetIndex, column: Column, row: Row) -> bool {
        self.rebuilding.is_unfilled(self.stretches.of(set), set, column, row.0)
    }

    /// The columns of a set that are being rebuilt or evacuated.
    #[inline]
    pub fn rebuilding_columns(&self, set: SetIndex) -> ColumnMask {
        self.rebuilding.columns(set)
    }

    /// The columns of a set that no chunklet holds this row of yet.
    #[inline]
    pub fn missing_columns(&self, set: SetIndex, row: Row) -> ColumnMask {
        self.rebuilding.missing(self.stretches.of(set), set, row.0)
    }

    /// Whether no chunklet holds this row of a column yet.
    #[inline]
    pub fn is_missing(&self, set: SetIndex, column: Column, row: Row) -> bool {
        self.missing_columns(set, row).contains(column)
    }

    /// Whether any column is being rebuilt or evacuated.
    #[inline]
    pub fn any_rebuilding(&self) -> bool {
        self.rebuilding.any()
    }

    #[inline]
    fn index(&self, set: SetIndex, column: Column) -> usize {
        let stretch = self.stretches.of(set);
        let sets_before = (set.0 - stretch.first_set) as usize;
        stretch.first_column + sets_before * stretch.shape.layout.columns() + column.index()
    }
}

fn check(runs: &[(SetShape, u32)], table: &[ChunkletAddress]) -> Result<(), TableError> {
    check_chunklets(table.iter())?;
    let (mut left, mut first_set) = (table, 0);
    for (shape, sets) in runs {
        let columns = shape.layout.columns();
        let own = left.split_at_checked(*sets as usize * columns);
        let (own, others) = own.ok_or(TableError::Incomplete { chunklets: left.len(), columns })?;
        check_drives(own.chunks(columns), first_set)?;
        (left, first_set) = (others, first_set + sets);
    }
    assert!(left.is_empty(), "{} chunklets are in no set", left.len());
    Ok(())
}

/// No chunklet belongs to two columns.
fn check_chunklets<'a>(mut table: impl Iterator<Item = &'a ChunkletAddress>) -> Result<(), TableError> {
    let mut seen = BTreeSet::new();
    match table.find(|chunklet| **chunklet != NOWHERE && !seen.insert(**chunklet)) {
        Some(chunklet) => Err(TableError::Twice { chunklet: *chunklet }),
        None => Ok(()),
    }
}

/// No set has two columns on one drive.
fn check_drives<'a>(
    sets: impl Iterator<Item = &'a [ChunkletAddress]>,
    first_set: u32,
) -> Result<(), TableError> {
    for (set, chunklets) in (first_set..).zip(sets) {
        let mut drives = BTreeSet::new();
        let mut there = chunklets.iter().filter(|chunklet| **chunklet != NOWHERE);
        if let Some(second) = there.find(|chunklet| !drives.insert(chunklet.drive)) {
            return Err(TableError::SameDrive { set: SetIndex(set), drive: second.drive });
        }
    }
    Ok(())
}

#[inline]
fn pack(chunklet: ChunkletAddress) -> u64 {
    u64::from(chunklet.drive) << 32 | u64::from(chunklet.index)
}

#[inline]
fn unpack(packed: u64) -> ChunkletAddress {
    ChunkletAddress { drive: (packed >> 32) as u32, index: packed as u32 }
}

#[cfg(all(test, tier0_loom))]
#[path = "table_models.rs"]
mod models;

#[cfg(all(test, not(tier0_loom)))]
mod tests {
    use tier0_units::SectorCount;

    use super::*;
    use crate::layout::{RaidConfig, RaidLevel};

    fn chunklet(drive: u32, index: u32) -> ChunkletAddress {
        ChunkletAddress { drive, index }
    }

    fn mirrors(table: &[ChunkletAddress], table_sectors: u64) -> Result<RaidSets, TableError> {
        let layout = Layout::new(&RaidConfig::new(RaidLevel::Raid1, 2, SectorCount(8))).expect("valid");
        RaidSets::from_table(SetShape { layout, table_sectors }, 1024, table)
    }

    #[test]
    fn rows_come_after_the_tables() {
        let table = [chunklet(0, 3), chunklet(1, 0)];
        let sets = mirrors(&table, 64).expect("valid");
        assert_eq!(sets.table(), table);
        assert_eq!(sets.table_place(SetIndex(0), Column(0)), (0, Lba(DATA_START_SECTORS + 3 * 1024)));
        assert_eq!(sets.place(SetIndex(0), Column(0)), (0, Lba(DATA_START_SECTORS + 3 * 1024 + 64)));
        assert_eq!(sets.rows(SetIndex(0)), (1024 - 64) / 8);
    }

    #[test]
    fn a_set_that_is_gone_has_no_columns_and_keeps_its_number() {
        let sets =
            mirrors(&[chunklet(0, 0), chunklet(1, 0), chunklet(2, 0), chunklet(3, 0)], 0).expect("valid");
        sets.give_up(SetIndex(0));
        assert!(sets.is_gone(SetIndex(0)) && !sets.is_gone(SetIndex(1)));
        assert_eq!((sets.count(), sets.columns(SetIndex(0)).count()), (2, 0));
        assert_eq!(sets.chunklet(SetIndex(1), Column(1)), chunklet(3, 0));
        // Its chunklets can be another set's, and its table reads back.
        sets.append(&sets.shape(SetIndex(0)).clone(), &[chunklet(0, 0), chunklet(2, 1)]).expect("free");
        let again = mirrors(&sets.table(), 0).expect("valid");
        assert_eq!((again.table(), again.is_gone(SetIndex(0))), (sets.table(), true));
    }

    #[test]
    fn a_table_that_contradicts_itself_is_refused() {
        let refused = |table: &[ChunkletAddress]| mirrors(table, 0).expect_err("refused");
        assert_eq!(refused(&[chunklet(0, 0)]), TableError::Incomplete { chunklets: 1, columns: 2 });
        assert_eq!(
            refused(&[chunklet(0, 0), chunklet(1, 0), chunklet(2, 0), chunklet(0, 0)]),
            TableError::Twice { chunklet: chunklet(0, 0) }
        );
        assert_eq!(
            refused(&[chunklet(4, 0), chunklet(4, 1)]),
            TableError::SameDrive { set: SetIndex(0), drive: 4 }
        );
    }

    #[test]
    fn sets_join_behind_those_that_are_there() {
        let sets = mirrors(&[chunklet(0, 0), chunklet(1, 0)], 64).expect("valid");
        let shape = *sets.shape(SetIndex(0));
        let twice = sets.append(&shape, &[chunklet(2, 0), chunklet(1, 0)]);
        assert_eq!(twice, Err(TableError::Twice { chunklet: chunklet(1, 0) }));
        assert_eq!((sets.count(), sets.table().len()), (1, 2));
        for index in 1..200 {
            sets.append(&shape, &[chunklet(0, index), chunklet(1, index)]).expect("free");
        }
        assert_eq!(sets.count(), 200);
        let last = SetIndex(199);
        assert_eq!(sets.chunklet(last, Column(1)), chunklet(1, 199));
        sets.start_rebuild(last, Column(0), chunklet(2, 5));
        assert!(sets.is_missing(last, Column(0), Row(3)) && !sets.is_missing(last, Column(1), Row(3)));
        sets.finish_rebuild(last, Column(0));
        assert_eq!(sets.chunklet(last, Column(0)), chunklet(2, 5));
    }

    #[test]
    fn a_rebuilding_column_is_missing_until_its_rows_are_rebuilt() {
        let sets =
            mirrors(&[chunklet(0, 0), chunklet(1, 0), chunklet(2, 0), chunklet(3, 0)], 0).expect("valid");
        let set = SetIndex(1);
        assert!(!sets.any_rebuilding());
        sets.start_rebuild(set, Column(1), chunklet(0, 7));
        assert_eq!(sets.chunklet(set, Column(1)), chunklet(0, 7));
        assert!(sets.is_missing(set, Column(1), Row(0)) && !sets.is_missing(set, Column(0), Row(0)));
        assert!(sets.missing_columns(SetIndex(0), Row(0)).is_empty());
        sets.set_rebuilt(set, Column(1), Row(60)..Row(70));
        let missing: Vec<u64> =
            (0..sets.rows(set)).filter(|row| sets.is_missing(set, Column(1), Row(*row))).collect();
        let expected: Vec<u64> = (0..60).chain(70..sets.rows(set)).collect();
        assert_eq!(missing, expected);
        sets.start_rebuild(set, Column(1), chunklet(1, 7));
        assert!(sets.is_missing(set, Column(1), Row(65)), "a restarted rebuild starts from nothing");
        sets.finish_rebuild(set, Column(1));
        assert!(!sets.any_rebuilding() && !sets.is_missing(set, Column(1), Row(0)));
        assert!(sets.rebuilding_columns(set).is_empty());
    }
}
