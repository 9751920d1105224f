//! Which columns are being rebuilt or evacuated, and which of their rows are at the new place: one bit per row, in atomics.
//!
//! The shape of a set is told with each question. Nothing is allocated for a set before its first rebuild. Bits are set with
//! release and read with acquire: a thread that sees a row present also sees what was done before it was declared so.

use std::ops::Range;

use tier0_world::sync::shared::{AtomicU32, AtomicU64, OnceLock, Ordering};

use crate::layout::{Column, ColumnMask};
use crate::set::SetIndex;
use crate::set::grow_list::GrowList;
use crate::set::shape::Stretch;

#[derive(Debug)]
pub(super) struct Rebuilding {
    /// How many columns are being rebuilt in all sets.
    columns_under_way: AtomicU32,
    sets: GrowList<SetState>,
}

#[derive(Debug, Default)]
struct SetState {
    /// A bit per column that is being rebuilt or evacuated.
    columns: AtomicU64,
    /// A bit per column that is being evacuated: what is not at its new place is whole at the old one.
    whole: AtomicU64,
    /// By column: the old place of what is being evacuated, as the table has it.
    sources: OnceLock<Box<[AtomicU64]>>,
    /// By column and row: whether the row is present.
    present: OnceLock<Box<[AtomicU64]>>,
}

impl Rebuilding {
    pub(super) fn new(sets: usize) -> Rebuilding {
        let sets = GrowList::new((0..sets).map(|_| SetState::default()));
        Rebuilding { columns_under_way: AtomicU32::new(0), sets }
    }

    /// One more set, of which nothing is being rebuilt. Called by one thread at a time.
    pub(super) fn add_set(&self) {
        self.sets.append(|_| {});
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        self.columns_under_way.load(Ordering::Acquire) > 0
    }

    #[inline]
    pub(super) fn columns(&self, set: SetIndex) -> ColumnMask {
        if !self.any() {
            return ColumnMask::EMPTY;
        }
        ColumnMask::from_bits(self.sets.get(set.0 as usize).columns.load(Ordering::Acquire))
    }

    /// The columns that are being rebuilt and have no whole source.
    #[inline]
    pub(super) fn lacking(&self, set: SetIndex) -> ColumnMask {
        let columns = self.columns(set);
        if columns.is_empty() {
            return columns;
        }
        columns - ColumnMask::from_bits(self.sets.get(set.0 as usize).whole.load(Ordering::Acquire))
    }

    /// The old place of a column that is being evacuated.
    pub(super) fn source(&self, set: SetIndex, column: Column) -> Option<u64> {
        if !(self.columns(set) - self.lacking(set)).contains(column) {
            return None;
        }
        let sources = self.sets.get(set.0 as usize).sources.get()?;
        Some(sources[column.index()].load(Ordering::Acquire))
    }

    /// Whether the column is in motion and its new place does not hold this row.
    pub(super) fn is_unfilled(&self, of: &Stretch, set: SetIndex, column: Column, row: u64) -> bool {
        self.columns(set).contains(column) && !self.is_present(of, set, column, row)
    }

    #[inline]
    pub(super) fn missing(&self, of: &Stretch, set: SetIndex, row: u64) -> ColumnMask {
        let columns = self.lacking(set);
        if columns.is_empty() {
            return columns;
        }
        columns.iter().filter(|column| !self.is_present(of, set, *column, row)).collect()
    }

    /// All rows of the column are missing from now on.
    pub(super) fn start(&self, of: &Stretch, set: SetIndex, column: Column) {
        self.empty(of, set, column);
        let bit = ColumnMask::only(column).bits();
        self.sets.get(set.0 as usize).whole.fetch_and(!bit, Ordering::AcqRel);
        self.set_out(set, bit);
    }

    /// All rows of the column are at `source`, whole, until they are declared present.
    pub(super) fn start_from(&self, of: &Stretch, set: SetIndex, column: Column, source: u64) {
        self.empty(of, set, column);
        let bit = ColumnMask::only(column).bits();
        let state = self.sets.get(set.0 as usize);
        let fresh = || (0..of.shape.layout.columns()).map(|_| AtomicU64::new(0)).collect();
        state.sources.get_or_init(fresh)[column.index()].store(source, Ordering::Release);
        state.whole.fetch_or(bit, Ordering::AcqRel);
        self.set_out(set, bit);
    }

    fn empty(&self, of: &Stretch, set: SetIndex, column: Column) {
        for word in self.words(of, set, column) {
            word.store(0, Ordering::Release);
        }
    }

    fn set_out(&self, set: SetIndex, bit: u64) {
        let before = self.sets.get(set.0 as usize).columns.fetch_or(bit, Ordering::AcqRel);
        if before & bit == 0 {
            self.columns_under_way.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(super) fn set_present(&self, of: &Stretch, set: SetIndex, column: Column, rows: Range<u64>) {
        assert!(rows.end <= of.rows, "rows {rows:?} reach behind the set's {}", of.rows);
        let words = self.words(of, set, column);
        for row in rows {
            words[(row / 64) as usize].fetch_or(1 << (row % 64), Ordering::Release);
        }
    }

    pub(super) fn finish(&self, set: SetIndex, column: Column) {
        let bit = ColumnMask::only(column).bits();
        let state = self.sets.get(set.0 as usize);
        let before = state.columns.fetch_and(!bit, Ordering::AcqRel);
        if before & bit != 0 {
            self.columns_under_way.fetch_sub(1, Ordering::AcqRel);
        }
        // In this order: a column that is in motion and has no source would be missing.
        state.whole.fetch_and(!bit, Ordering::AcqRel);
    }

    fn is_present(&self, of: &Stretch, set: SetIndex, column: Column, row: u64) -> bool {
        let word = &self.words(of, set, column)[(row / 64) as usize];
        word.load(Ordering::Acquire) >> (row % 64) & 1 == 1
    }

    fn words(&self, of: &Stretch, set: SetIndex, column: Column) -> &[AtomicU64] {
        let per_column = of.rows.div_ceil(64) as usize;
        let fresh = || (0..of.shape.layout.columns() * per_column).map(|_| AtomicU64::new(0)).collect();
        let words = self.sets.get(set.0 as usize).present.get_or_init(fresh);
        &words[column.index() * per_column..(column.index() + 1) * per_column]
    }
}
