//! What plans cost, and which operations are refused.

use tier0_raid::layout::{
    Column, ColumnExtent, ColumnMask, Layout, Piece, RaidConfig, RaidLevel, Row, WriteMethod, WritePlan,
};
use tier0_units::{Lba, SectorCount};

use WriteMethod::{DataOnly, FullStripe, ReadModifyWrite, ReconstructWrite, RecoverAndReconstruct};

const UNIT: u64 = 128;

fn layout(level: RaidLevel, set_size: usize) -> Layout {
    Layout::new(&RaidConfig::new(level, set_size, SectorCount(UNIT))).expect("a shape that exists")
}

/// The one piece of a range within a row.
fn piece(layout: &Layout, lba: u64, sectors: u64) -> Piece {
    let mut pieces = layout.pieces(Lba(lba), SectorCount(sectors));
    let piece = pieces.next().expect("a piece");
    assert_eq!(pieces.next(), None, "the range leaves the row");
    piece
}

fn plan(layout: &Layout, lba: u64, sectors: u64, lost: &[u8]) -> WritePlan {
    let lost = lost.iter().copied().map(Column).collect();
    layout.plan_write(&piece(layout, lba, sectors), lost).expect("a survivable loss")
}

/// Method of each band, drive reads, drive writes.
fn summary(plan: &WritePlan) -> (Vec<WriteMethod>, usize, usize) {
    let methods = plan.bands().iter().map(|band| band.method).collect();
    (methods, plan.reads().count(), plan.writes().count())
}

#[test]
fn a_small_write_takes_the_cheaper_way() {
    // (level, columns) -> method, reads, writes of a write within one unit.
    for (level, columns, method, reads, writes) in [
        (RaidLevel::Raid0, 4, DataOnly, 0, 1),
        (RaidLevel::Raid1, 3, DataOnly, 0, 3),
        (RaidLevel::Raid10, 4, DataOnly, 0, 2),
        (RaidLevel::Raid5, 3, ReconstructWrite, 1, 2),
        (RaidLevel::Raid5, 4, ReconstructWrite, 2, 2),
        (RaidLevel::Raid5, 5, ReadModifyWrite, 2, 2),
        (RaidLevel::Raid5, 12, ReadModifyWrite, 2, 2),
        (RaidLevel::Raid50, 6, ReconstructWrite, 1, 2),
        (RaidLevel::Raid50, 12, ReadModifyWrite, 2, 2),
        (RaidLevel::Raid6, 4, ReconstructWrite, 1, 3),
        (RaidLevel::Raid6, 6, ReconstructWrite, 3, 3),
        (RaidLevel::Raid6, 7, ReadModifyWrite, 3, 3),
    ] {
        let plan = plan(&layout(level, columns), 16, 16, &[]);
        assert_eq!(summary(&plan), (vec![method], reads, writes), "{level} of {columns}");
    }
}

#[test]
fn a_full_row_is_written_without_a_read() {
    for (level, columns) in [(RaidLevel::Raid5, 6), (RaidLevel::Raid6, 8), (RaidLevel::Raid5, 3)] {
        let layout = layout(level, columns);
        let healthy = plan(&layout, 0, layout.row_sectors().0, &[]);
        assert_eq!(summary(&healthy), (vec![FullStripe], 0, columns));
        let degraded = plan(&layout, 0, layout.row_sectors().0, &[0]);
        assert_eq!(summary(&degraded), (vec![FullStripe], 0, columns - 1));
    }
}

#[test]
fn bands_of_a_long_write_are_joined_per_drive() {
    // 5+1, row 0: units 0 and 1 in full and half of unit 2. Both bands are reconstructed: units 3 and 4 are
    // read whole and unit 2 by half, where a read-modify-write of the second band would read five columns.
    let layout = layout(RaidLevel::Raid5, 6);
    let plan = plan(&layout, 0, 2 * UNIT + UNIT / 2, &[]);
    assert_eq!(summary(&plan), (vec![ReconstructWrite; 2], 3, 4));
    let whole =
        |column| ColumnExtent { column: Column(column), offset: SectorCount(0), sectors: SectorCount(UNIT) };
    let half = |column, offset| ColumnExtent {
        column: Column(column),
        offset: SectorCount(offset),
        sectors: SectorCount(UNIT / 2),
    };
    assert_eq!(plan.reads().collect::<Vec<_>>(), [half(2, UNIT / 2), whole(3), whole(4)]);
    assert_eq!(plan.writes().collect::<Vec<_>>(), [whole(0), whole(1), half(2, 0), whole(5)]);
}

#[test]
fn extents_that_do_not_touch_stay_apart() {
    // The end of unit 0 and the start of unit 1: two bands, and the middle of the parity is left alone.
    let layout = layout(RaidLevel::Raid5, 12);
    let plan = plan(&layout, UNIT - 8, 16, &[]);
    let extent = |column, offset| ColumnExtent {
        column: Column(column),
        offset: SectorCount(offset),
        sectors: SectorCount(8),
    };
    let expected = [extent(0, UNIT - 8), extent(1, 0), extent(11, 0), extent(11, UNIT - 8)];
    assert_eq!(plan.reads().collect::<Vec<_>>(), expected);
    assert_eq!(plan.writes().collect::<Vec<_>>(), expected);
}

#[test]
fn lost_columns_change_the_way() {
    // Row 0 of n columns: P on the last, at RAID 6 Q on column 0 and unit u on column u + 1.
    let raid5 = layout(RaidLevel::Raid5, 6);
    let raid6 = layout(RaidLevel::Raid6, 8);
    for (what, layout, lost, expected) in [
        ("the written unit", &raid5, &[0][..], (vec![ReconstructWrite], 4, 1)),
        ("another unit", &raid5, &[3], (vec![ReadModifyWrite], 2, 2)),
        ("P", &raid5, &[5], (vec![DataOnly], 0, 1)),
        ("the written unit", &raid6, &[1], (vec![ReconstructWrite], 5, 2)),
        ("P and the written unit", &raid6, &[7, 1], (vec![ReconstructWrite], 5, 1)),
        ("P and another unit", &raid6, &[7, 4], (vec![ReadModifyWrite], 2, 2)),
        ("Q alone", &raid6, &[0], (vec![ReadModifyWrite], 2, 2)),
        ("P and Q", &raid6, &[7, 0], (vec![DataOnly], 0, 1)),
        ("two other units", &raid6, &[4, 5], (vec![ReadModifyWrite], 3, 3)),
        ("the written and another unit", &raid6, &[1, 4], (vec![RecoverAndReconstruct], 6, 2)),
    ] {
        let plan = plan(layout, 0, 16, lost);
        assert_eq!(summary(&plan), expected, "{} without {what}", layout.level());
    }
}

#[test]
fn a_degraded_read_reads_the_rest_of_the_row_once() {
    let layout = layout(RaidLevel::Raid6, 8);
    let reads = |lba, sectors, lost: &[u8]| {
        let lost: ColumnMask = lost.iter().copied().map(Column).collect();
        let never = |_| panic!("there is no copy to choose");
        let plan = layout.plan_read(&piece(&layout, lba, sectors), lost, never).expect("survivable");
        plan.reads().map(|extent| extent.column.0).collect::<Vec<_>>()
    };
    assert_eq!(reads(0, 16, &[]), [1]);
    assert_eq!(reads(0, 16, &[4]), [1], "another unit is lost");
    assert_eq!(reads(0, 16, &[1]), [2, 3, 4, 5, 6, 7], "by P");
    assert_eq!(reads(0, 16, &[1, 7]), [0, 2, 3, 4, 5, 6], "by Q");
    assert_eq!(reads(0, 16, &[1, 2]), [0, 3, 4, 5, 6, 7], "by both");
    assert_eq!(reads(0, layout.row_sectors().0, &[1]), [2, 3, 4, 5, 6, 7], "a whole row costs no more");
}

#[test]
fn what_cannot_be_had_is_refused_and_nothing_else() {
    let any = |mask: ColumnMask| mask.first().expect("a copy");
    for (level, columns, lost) in [
        (RaidLevel::Raid0, 4, &[1][..]),
        (RaidLevel::Raid1, 2, &[0, 1]),
        (RaidLevel::Raid10, 4, &[2, 3]),
        (RaidLevel::Raid5, 4, &[1, 2]),
        (RaidLevel::Raid50, 6, &[0, 1]),
        (RaidLevel::Raid6, 6, &[1, 2, 3]),
    ] {
        let layout = layout(level, columns);
        let lost: ColumnMask = lost.iter().copied().map(Column).collect();
        let mut refused = 0;
        for unit in 0..layout.data_units_per_row() as u64 {
            let piece = piece(&layout, unit * UNIT, UNIT);
            let place = layout.map(piece.lba);
            let gone = layout.copies(place.row, place.unit).is_subset(lost);
            let read = layout.plan_read(&piece, lost, any);
            assert_eq!(read.is_err(), gone, "{level}: unit {unit} without {lost:?}");
            let write = layout.plan_write(&piece, lost);
            let group_lost = (layout.group_column_mask(piece.group) & lost).len();
            let broken = if layout.parities() > 0 { group_lost > layout.parities() } else { gone };
            assert_eq!(write.is_err(), broken, "{level}: write of unit {unit} without {lost:?}");
            refused += usize::from(gone);
        }
        assert!(refused > 0, "{level}: the case loses nothing");
        let column = lost.first().expect("a lost column");
        let error = layout.plan_rebuild(Row(0), column, lost).expect_err("nothing to rebuild from");
        assert!(error.to_string().contains(level.name()), "{error}");
        assert!(error.to_string().contains("restore from a backup"), "{error}");
    }
}
