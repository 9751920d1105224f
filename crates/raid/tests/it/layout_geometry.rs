//! The address arithmetic of every level and width, by exhaustion and by random shapes.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tier0_raid::layout::{
    Column, ColumnMask, Group, Layout, RaidConfig, RaidLevel, Role, Row, Unit, UnitMask,
};
use tier0_units::{Lba, SectorCount};

const UNIT: SectorCount = SectorCount(8);

/// Every set of 1 to 12 columns that can exist, RAID 50 in every number of groups.
fn all_layouts() -> Vec<Layout> {
    let mut layouts = Vec::new();
    for level in RaidLevel::ALL {
        for set_size in 1..=12 {
            let groups = if level == RaidLevel::Raid50 { 2..=4 } else { 2..=2 };
            for raid50_groups in groups {
                let config = RaidConfig { raid50_groups, ..RaidConfig::new(level, set_size, UNIT) };
                layouts.extend(Layout::new(&config));
            }
        }
    }
    assert_eq!(layouts.len(), 12 + 11 + 6 + 10 + 9 + (4 + 2 + 1), "shapes that exist");
    layouts
}

fn units(layout: &Layout) -> impl Iterator<Item = Unit> + use<> {
    (0..layout.data_units_per_row() as u8).map(Unit)
}

fn columns(layout: &Layout) -> impl Iterator<Item = Column> + use<> {
    layout.all_columns().iter()
}

/// Rows enough for two rounds of the rotation.
fn rows(layout: &Layout) -> impl Iterator<Item = Row> + use<> {
    (0..2 * layout.columns() as u64).map(Row)
}

#[test]
fn roles_and_columns_are_inverse() {
    for layout in all_layouts() {
        for row in rows(&layout) {
            for column in columns(&layout) {
                let back = match layout.role(row, column) {
                    Role::Data(unit) => layout.copies(row, unit),
                    Role::Mirror(unit, copy) => {
                        let nth = layout.copies(row, unit).iter().nth(copy.into());
                        nth.into_iter().collect()
                    }
                    Role::P(group) => layout.parity_columns(row, group).p.into_iter().collect(),
                    Role::Q(group) => layout.parity_columns(row, group).q.into_iter().collect(),
                };
                assert_eq!(back, ColumnMask::only(column), "{layout:?}, {row:?}, {column:?}");
            }
        }
    }
}

#[test]
fn a_row_uses_every_column_once() {
    for layout in all_layouts() {
        for row in rows(&layout) {
            let mut used = ColumnMask::EMPTY;
            let mut take = |mask: ColumnMask, what: &str| {
                assert!((used & mask).is_empty(), "{what} overlaps in {layout:?}, {row:?}");
                used = used | mask;
            };
            for unit in units(&layout) {
                let copies = layout.copies(row, unit);
                assert_eq!(copies.len(), layout.copies_per_unit());
                assert_eq!(copies.first(), Some(layout.data_column(row, unit)));
                take(copies, "data");
            }
            for group in (0..layout.groups() as u8).map(Group) {
                let parity = layout.parity_columns(row, group).mask();
                assert_eq!(parity.len(), layout.parities());
                assert!(parity.is_subset(layout.group_column_mask(group)));
                take(parity, "parity");
            }
            assert_eq!(used, layout.all_columns(), "{layout:?}, {row:?}");
        }
    }
}

#[test]
fn addresses_map_one_to_one() {
    for layout in all_layouts() {
        let column_sectors = SectorCount(5 * UNIT.0 + 3);
        let data = layout.data_sectors(column_sectors);
        assert_eq!(data.0, 5 * layout.data_units_per_row() as u64 * UNIT.0);
        let mut places = BTreeSet::new();
        for lba in (0..data.0).map(Lba) {
            let at = layout.map(lba);
            assert_eq!(layout.lba(at), lba, "{layout:?}");
            let column_lba = layout.column_lba(at.row, at.offset);
            assert!(column_lba.0 < column_sectors.0, "{layout:?}: {lba:?} lies beyond its column");
            for column in layout.copies(at.row, at.unit) {
                assert!(places.insert((column, column_lba)), "{layout:?}: {lba:?} lies on another sector");
            }
        }
    }
}

#[test]
fn parity_rotates_evenly() {
    for layout in all_layouts().into_iter().filter(|layout| layout.parities() > 0) {
        let n = layout.columns() / layout.groups();
        for first in [0, 1, 1000] {
            let mut held = vec![(0, 0); layout.columns()];
            for row in (first..first + n as u64).map(Row) {
                for column in columns(&layout) {
                    match layout.role(row, column) {
                        Role::P(_) => held[usize::from(column.0)].0 += 1,
                        Role::Q(_) => held[usize::from(column.0)].1 += 1,
                        Role::Data(_) | Role::Mirror(..) => {}
                    }
                }
            }
            let each = (1, layout.parities() - 1);
            assert!(held.iter().all(|&count| count == each), "{layout:?}: {held:?}, not {each:?} each");
        }
    }
}

/// What makes left-symmetric layouts good at long reads.
#[test]
fn consecutive_units_keep_all_drives_busy() {
    for layout in all_layouts() {
        let spread = match layout.level() {
            RaidLevel::Raid5 => layout.columns(),
            RaidLevel::Raid6 => layout.columns() - 1,
            _ => continue,
        };
        let on: Vec<Column> = (0..200)
            .map(|i| layout.map(Lba(i * UNIT.0)))
            .map(|at| layout.data_column(at.row, at.unit))
            .collect();
        for window in on.windows(spread) {
            let distinct: ColumnMask = window.iter().copied().collect();
            assert_eq!(distinct.len(), spread, "{layout:?}: {window:?}");
        }
    }
}

#[test]
fn survival_follows_from_the_columns_of_each_unit() {
    for layout in all_layouts() {
        for lost in (0..1_u64 << layout.columns()).map(ColumnMask::from_bits) {
            let expected = match layout.level() {
                RaidLevel::Raid0 => lost.is_empty(),
                RaidLevel::Raid1 => lost != layout.all_columns(),
                RaidLevel::Raid10 => (0..layout.columns()).step_by(2).all(|c| lost.bits() >> c & 3 != 3),
                RaidLevel::Raid5 => lost.len() <= 1,
                RaidLevel::Raid6 => lost.len() <= 2,
                RaidLevel::Raid50 => {
                    let n = layout.columns() / layout.groups();
                    (0..layout.groups()).all(|g| (lost.bits() >> (g * n) & ((1 << n) - 1)).count_ones() <= 1)
                }
            };
            assert_eq!(layout.survives(lost), expected, "{layout:?} without {lost:?}");
            assert!(expected || lost.len() > layout.tolerated_failures(), "{layout:?} without {lost:?}");
        }
    }
}

/// Any valid shape, up to the widest.
fn any_layout() -> impl Strategy<Value = Layout> {
    (0..RaidLevel::ALL.len(), 1_usize..=64, 2_usize..=21, 3_u32..=11)
        .prop_map(|(level, set_size, raid50_groups, shift)| {
            let level = RaidLevel::ALL[level];
            RaidConfig { level, set_size, stripe_unit: SectorCount(1 << shift), raid50_groups }
        })
        .prop_filter_map("a shape that cannot exist", |config| Layout::new(&config).ok())
}

proptest! {
    #[test]
    fn pieces_and_extents_tile_any_range(layout in any_layout(), first in 0_u64..1 << 40, length in 0_u64..40_000) {
        let mut at = Lba(first);
        for piece in layout.pieces(Lba(first), SectorCount(length)) {
            prop_assert_eq!(piece.lba, at);
            let mut position = SectorCount(0);
            for extent in layout.extents(&piece) {
                let place = layout.map(at);
                prop_assert_eq!((place.row, place.unit, place.offset), (piece.row, extent.unit, extent.offset));
                prop_assert_eq!(layout.group_of(extent.unit), piece.group);
                prop_assert!(extent.offset.0 + extent.sectors.0 <= layout.stripe_unit().0);
                prop_assert_eq!(layout.position_in(&piece, extent.unit, extent.offset), position);
                position = position + extent.sectors;
                at += extent.sectors;
            }
            prop_assert_eq!(position, piece.sectors);
        }
        prop_assert_eq!(at, Lba(first + length));
    }

    #[test]
    fn unit_masks_map_to_columns_and_back(layout in any_layout(), row: u64, bits: u64, group: u8) {
        let (row, group) = (Row(row >> 12), Group(group % layout.groups() as u8));
        let units = UnitMask::from_bits(bits) & layout.group_unit_mask(group);
        let columns = layout.unit_columns(row, group, units);
        let one_by_one = units.iter().map(|unit| layout.copies(row, unit)).fold(ColumnMask::EMPTY, |a, b| a | b);
        prop_assert_eq!(columns, one_by_one);
        prop_assert_eq!(layout.units_on(row, group, columns), units);
        for (unit, column) in layout.units_of_columns(row, group, columns) {
            prop_assert!(units.contains(unit) && layout.copies(row, unit).contains(column));
        }
    }
}
