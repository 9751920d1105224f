//! Where the copies of a slot's table lie: at the front of the columns of the slot's own set.
//!
//! The columns of a set fall into *loss groups* of neighbouring columns, in each of which the level survives the loss
//! of some number t of columns, whichever they are: all columns of RAID 0 (t = 0), RAID 1 (t = n − 1), RAID 5 (1) and
//! RAID 6 (2), the pairs of RAID 10 (1), the RAID 5 parts of RAID 50 (1). A slot's table has t + 1 copies on different
//! columns of one loss group: whatever the level survives leaves one of them. The groups take slots in turn, and within
//! a group the copies go around its columns, so all columns carry the same share:
//!
//! slot s of the set → group s mod g, number i = s div g in it → copy j at linear index i·(t + 1) + j → column index
//! mod c of the group, place index div c on it.
//!
//! A place has room for two generations, which are written in turn: an odd one in front, an even one behind it.

use tier0_raid::layout::{Column, ColumnMask, Layout, RaidLevel};
use tier0_units::{Lba, PAGE_SECTORS};

use super::codec::block_sectors;

/// Generations that a place holds.
pub(crate) const GENERATIONS: u64 = 2;

/// The arithmetic from a slot of a set to the places of its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TablePlacement {
    groups: u64,
    group_columns: u64,
    copies: u64,
    block_sectors: u64,
}

/// One copy of a table: both its generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableCopy {
    /// The column.
    pub column: Column,
    /// The first sector of the place, counted from the start of the column.
    pub lba: Lba,
}

impl TablePlacement {
    /// The tables of slots of `pages_per_slot` pages in sets of this layout.
    pub fn new(layout: &Layout, pages_per_slot: u32) -> TablePlacement {
        let columns = layout.columns() as u64;
        let groups = match layout.level() {
            RaidLevel::Raid0 | RaidLevel::Raid1 | RaidLevel::Raid5 | RaidLevel::Raid6 => 1,
            RaidLevel::Raid10 => columns / layout.copies_per_unit() as u64,
            RaidLevel::Raid50 => layout.groups() as u64,
        };
        TablePlacement {
            groups,
            group_columns: columns / groups,
            copies: layout.tolerated_failures() as u64 + 1,
            block_sectors: block_sectors(pages_per_slot),
        }
    }

    /// Copies of each table.
    pub fn copies_per_slot(&self) -> usize {
        self.copies as usize
    }

    /// Sectors of one generation of a table.
    pub fn block_sectors(&self) -> u64 {
        self.block_sectors
    }

    /// Sectors of a place: two generations.
    pub fn place_sectors(&self) -> u64 {
        GENERATIONS * self.block_sectors
    }

    /// The copies of the table of slot number `slot_in_set` of a set.
    pub fn copies(&self, slot_in_set: u64) -> impl Iterator<Item = TableCopy> + use<> {
        let TablePlacement { groups, group_columns, copies, .. } = *self;
        let place_sectors = self.place_sectors();
        let (group, number) = (slot_in_set % groups, slot_in_set / groups);
        (0..copies).map(move |copy| {
            let index = number * copies + copy;
            let column = Column((group * group_columns + index % group_columns) as u8);
            TableCopy { column, lba: Lba(index / group_columns * place_sectors) }
        })
    }

    /// The columns that have a copy of a slot's table.
    pub fn columns(&self, slot_in_set: u64) -> ColumnMask {
        self.copies(slot_in_set).map(|copy| copy.column).collect()
    }

    /// Where in its place a generation lies, counted from the place's first sector.
    pub fn generation_offset(&self, generation: u64) -> u64 {
        (generation + 1) % GENERATIONS * self.block_sectors
    }

    /// Sectors that the tables of `slots_per_set` slots take at the front of each column.
    pub fn table_sectors(&self, slots_per_set: u64) -> u64 {
        let slots_of_group = slots_per_set.div_ceil(self.groups);
        (slots_of_group * self.copies).div_ceil(self.group_columns) * self.place_sectors()
    }
}

/// Sectors that the tables of `slots_per_set` slots of `pages_per_slot` pages take at the front of each column.
pub fn table_sectors(layout: &Layout, slots_per_set: u64, pages_per_slot: u32) -> u64 {
    TablePlacement::new(layout, pages_per_slot).table_sectors(slots_per_set)
}

/// How a column is divided into tables and rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnPlan {
    /// Sectors at the front that the tables take.
    pub table_sectors: u64,
    /// Slots whose rows fit behind them.
    pub slots_per_set: u64,
    /// Pages of a slot.
    pub pages_per_slot: u32,
}

impl ColumnPlan {
    /// The most slots for extents of `extent_sectors` that columns of `column_sectors` hold with their tables. Exactly
    /// as many whole slots fit behind the tables: what is left over is given to the tables.
    pub fn new(layout: &Layout, column_sectors: u64, extent_sectors: u64) -> ColumnPlan {
        let row_sectors = layout.row_sectors().0;
        let rows_per_slot = extent_sectors.div_ceil(row_sectors);
        let pages_per_slot = u32::try_from(rows_per_slot * row_sectors / PAGE_SECTORS)
            .expect("a slot has fewer than 2^32 pages");
        let placement = TablePlacement::new(layout, pages_per_slot);
        // A slot's share of one column.
        let slot_sectors = rows_per_slot * layout.stripe_unit().0;
        let mut slots = column_sectors / slot_sectors;
        while slots > 0 && placement.table_sectors(slots) + slots * slot_sectors > column_sectors {
            slots -= 1;
        }
        // As long as the tables must be, and so long that no further slot fits, whose table would have no place.
        let no_further = (column_sectors + 1).saturating_sub((slots + 1) * slot_sectors);
        let table_sectors = placement.table_sectors(slots).max(no_further.next_multiple_of(PAGE_SECTORS));
        ColumnPlan { table_sectors, slots_per_set: slots, pages_per_slot }
    }

    /// The same where slots have no tables.
    pub fn without_tables(layout: &Layout, column_sectors: u64, extent_sectors: u64) -> ColumnPlan {
        let row_sectors = layout.row_sectors().0;
        let rows_per_slot = extent_sectors.div_ceil(row_sectors);
        let pages_per_slot = u32::try_from(rows_per_slot * row_sectors / PAGE_SECTORS)
            .expect("a slot has fewer than 2^32 pages");
        let slots_per_set = column_sectors / (rows_per_slot * layout.stripe_unit().0);
        ColumnPlan { table_sectors: 0, slots_per_set, pages_per_slot }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tier0_raid::layout::RaidConfig;
    use tier0_units::SectorCount;

    use super::*;

    fn layouts() -> Vec<Layout> {
        let shapes = [
            (RaidLevel::Raid0, 1, 0),
            (RaidLevel::Raid0, 4, 0),
            (RaidLevel::Raid1, 2, 0),
            (RaidLevel::Raid1, 3, 0),
            (RaidLevel::Raid10, 2, 0),
            (RaidLevel::Raid10, 6, 0),
            (RaidLevel::Raid5, 3, 0),
            (RaidLevel::Raid5, 8, 0),
            (RaidLevel::Raid50, 6, 2),
            (RaidLevel::Raid50, 12, 3),
            (RaidLevel::Raid6, 4, 0),
            (RaidLevel::Raid6, 7, 0),
        ];
        let layout = |(level, size, groups)| {
            let config =
                RaidConfig { raid50_groups: groups, ..RaidConfig::new(level, size, SectorCount(16)) };
            Layout::new(&config).expect("valid")
        };
        shapes.map(layout).to_vec()
    }

    #[test]
    fn places_never_overlap_and_stay_inside() {
        for layout in layouts() {
            let placement = TablePlacement::new(&layout, 1024);
            let end = table_sectors(&layout, 100, 1024);
            let mut taken = BTreeSet::new();
            for copy in (0..100).flat_map(|slot| placement.copies(slot)) {
                assert!(
                    copy.lba.0 + placement.place_sectors() <= end,
                    "{layout:?} {copy:?} ends behind {end}"
                );
                assert!(copy.lba.0.is_multiple_of(placement.place_sectors()));
                assert!(taken.insert((copy.column, copy.lba)), "{layout:?} {copy:?} is taken twice");
                assert!(copy.column.index() < layout.columns());
            }
        }
    }

    #[test]
    fn whatever_the_level_survives_leaves_a_copy() {
        for layout in layouts() {
            let placement = TablePlacement::new(&layout, 256);
            let survivable = (0..1_u64 << layout.columns()).map(ColumnMask::from_bits);
            for lost in survivable.filter(|lost| layout.survives(*lost)) {
                for slot in 0..30 {
                    let left = placement.columns(slot) - lost;
                    assert!(!left.is_empty(), "{layout:?}: slot {slot} without columns {lost}");
                }
            }
        }
    }

    #[test]
    fn no_copy_is_superfluous() {
        for layout in layouts() {
            let placement = TablePlacement::new(&layout, 256);
            for slot in 0..30 {
                let columns = placement.columns(slot);
                assert_eq!(columns.len(), placement.copies_per_slot(), "copies lie on different columns");
                let but_one = columns.iter().map(|kept| columns.without(kept));
                assert!(but_one.into_iter().all(|lost| layout.survives(lost)), "{layout:?} {columns}");
            }
        }
    }

    #[test]
    fn the_generations_of_a_place_alternate() {
        let placement = TablePlacement::new(&layouts()[6], 256);
        assert_eq!([1, 2, 3].map(|generation| placement.generation_offset(generation)), [0, 8, 0]);
    }

    #[test]
    fn a_column_is_divided_so_that_every_slot_has_a_table() {
        for layout in layouts() {
            for extent_sectors in [16, 64, 2048] {
                for column_sectors in [8, 40, 2048, 4096, 131_072, 131_080] {
                    let plan = ColumnPlan::new(&layout, column_sectors, extent_sectors);
                    let rows = (column_sectors - plan.table_sectors) / layout.stripe_unit().0;
                    let rows_per_slot = extent_sectors.div_ceil(layout.row_sectors().0);
                    assert_eq!(
                        rows / rows_per_slot,
                        plan.slots_per_set,
                        "{layout:?} {column_sectors} {plan:?}"
                    );
                    let needed = table_sectors(&layout, plan.slots_per_set, plan.pages_per_slot);
                    assert!(needed <= plan.table_sectors);
                    let more = table_sectors(&layout, plan.slots_per_set + 1, plan.pages_per_slot);
                    let slot_sectors = rows_per_slot * layout.stripe_unit().0;
                    assert!(
                        more + (plan.slots_per_set + 1) * slot_sectors > column_sectors,
                        "one more would fit"
                    );
                }
            }
        }
    }
}
