//! Rows written in two phases and read verified, against a flat model: healthy, degraded, rebuilding, with rot and
//! unreadable sectors within what the redundancy makes up for.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::farm::{Farm, PAGE_BYTES, RowPages, SET, UNIT_PAGES, on_each_shape};
use tier0_drive::{Fault, FaultPlan};
use tier0_raid::io::{Expected, PageFault, RepairSource};
use tier0_raid::layout::{Column, ColumnMask, Group, PagePlace, RaidLevel, Role, Row, Unit};
use tier0_units::Nanos;
use tier0_world::{IoError, Random};

/// Harms a page of every offset of every row and group, with a chance of one half each, on one column.
async fn harm(farm: &Farm, random: &mut Random) {
    for row in farm.all_rows().filter(|row| !farm.is_unwritten(*row)) {
        let lost = farm.io.lost_columns(SET, row);
        for group in (0..farm.layout.groups() as u8).map(Group) {
            for offset in 0..UNIT_PAGES {
                let columns: Vec<Column> = (farm.layout.group_column_mask(group) - lost).iter().collect();
                if random.chance(0.5) {
                    let victim = columns[random.below(columns.len() as u64) as usize];
                    farm.rot(victim, row, offset, random).await;
                }
            }
        }
    }
}

#[test]
fn every_level_lives_through_the_losses_it_tolerates() {
    on_each_shape(1, |farm, mut random| async move {
        farm.fill_with_noise(&mut random).await;
        farm.live(200, &mut random).await;
        farm.check_redundancy().await;
        for loss in 0..farm.layout.tolerated_failures() {
            farm.lose(Column(loss as u8 * 2));
            farm.live(200, &mut random).await;
            farm.check_all().await;
            farm.check_redundancy().await;
        }
        assert!(farm.events.0.borrow().is_empty(), "nothing was wrong: {:?}", farm.events.0.borrow());
    });
}

#[test]
fn rot_never_reaches_a_reader_nor_a_parity() {
    on_each_shape(2, |farm, mut random| async move {
        if farm.layout.tolerated_failures() == 0 {
            return;
        }
        farm.fill_with_noise(&mut random).await;
        farm.live(100, &mut random).await;
        // What is left tolerates one wrong page per offset, beside the columns lost.
        for loss in 0..farm.layout.tolerated_failures() {
            for _ in 0..10 {
                harm(&farm, &mut random).await;
                farm.live(60, &mut random).await;
                let outcome = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
                assert_eq!((outcome.lost_pages.len(), outcome.unreadable), (0, 0), "{outcome:?}");
                farm.check_redundancy().await;
                let again = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
                assert_eq!(again.repaired, 0, "{again:?}");
            }
            farm.check_all().await;
            farm.lose(Column((loss * 2 + 1) as u8 % farm.layout.columns() as u8));
        }
        farm.check_all().await;
        assert!(farm.events.0.borrow().iter().all(|event| event.source.is_some()), "nothing was lost");
    });
}

/// The row's parity must be right at once, before any scrub could make it so: a second loss would need it.
#[test]
fn the_difference_to_rotten_content_never_goes_into_a_parity() {
    on_each_shape(8, |farm, mut random| async move {
        if farm.layout.parities() == 0 {
            return;
        }
        for round in 0..40 {
            let row = Row(random.below(8));
            let all: RowPages =
                (0..farm.row_pages()).map(|page| (page, Some(vec![page as u8 + round; 32]))).collect();
            farm.destage(row, &all, &mut random).await.expect("written");
            let page = random.below(farm.row_pages());
            if round % 2 == 0 {
                // Reads as zeros from now on; what is stored stays, and parity counts it.
                farm.destage(row, &[(page, None)].into_iter().collect(), &mut random).await.expect("written");
            }
            let place = farm.layout.page_place(page as usize);
            let column = farm.layout.data_column(row, place.unit);
            farm.rot(column, row, place.offset, &mut random).await;
            let new = [(page, Some(vec![200 + round; 32]))].into_iter().collect();
            farm.destage(row, &new, &mut random).await.expect("written");
            farm.check_redundancy().await;
            let events = std::mem::take(&mut *farm.events.0.borrow_mut());
            assert!(
                events.iter().all(|event| event.page == Some(row.0 * farm.row_pages() + page)),
                "{events:?}"
            );
        }
    });
}

#[test]
fn unreadable_sectors_are_answered_from_the_rest() {
    on_each_shape(3, |farm, mut random| async move {
        if farm.layout.tolerated_failures() == 0 {
            return;
        }
        farm.live(100, &mut random).await;
        for loss in 0..farm.layout.tolerated_failures() {
            for _ in 0..8 {
                // One page per row: the drive reports it unreadable, whatever is written there.
                for row in farm.all_rows() {
                    let lost = farm.io.lost_columns(SET, row);
                    let columns: Vec<Column> = (farm.layout.all_columns() - lost).iter().collect();
                    let victim = columns[random.below(columns.len() as u64) as usize];
                    let (drive, sectors) =
                        farm.sectors_of(victim, row, random.below(UNIT_PAGES as u64) as usize);
                    farm.faults[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
                }
                farm.live(60, &mut random).await;
                farm.check_all().await;
                farm.faults.iter().for_each(|fault| fault.clear());
                farm.check_redundancy().await;
            }
            farm.lose(Column((loss * 2 + 1) as u8 % farm.layout.columns() as u8));
        }
        assert!(farm.events.0.borrow().iter().any(|event| event.fault == PageFault::Unreadable));
    });
}

/// All drives fail all reads of data for some seconds: longer than their guards try, and shorter than a host waits.
fn fail_reads_for_a_while(farm: &Rc<Farm>, random: &mut Random) -> tier0_world::Task<()> {
    for fault in &farm.faults {
        fault.inject(FaultPlan::always_in(Fault::ReadError, tier0_pool::DATA_START_SECTORS..u64::MAX));
    }
    let lasts = Nanos::from_millis(50 + random.below(4_000));
    let farm = farm.clone();
    let world = farm.world.clone();
    world.spawn(async move {
        farm.world.sleep(lasts).await;
        farm.faults.iter().for_each(|fault| fault.clear());
    })
}

#[test]
fn errors_of_more_drives_than_the_level_survives_pass() {
    on_each_shape(13, |farm, mut random| async move {
        farm.fill_with_noise(&mut random).await;
        farm.live(100, &mut random).await;
        for _ in 0..8 {
            let passing = fail_reads_for_a_while(&farm, &mut random);
            farm.live(10, &mut random).await;
            farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await.expect("a scrub");
            passing.await;
            farm.live(10, &mut random).await;
            farm.check_all().await;
            farm.check_redundancy().await;
        }
        if farm.layout.tolerated_failures() == 0 {
            return;
        }
        let column = Column(1);
        farm.lose(column);
        farm.sets.start_rebuild(SET, column, spare_of(&farm));
        let passing = fail_reads_for_a_while(&farm, &mut random);
        let rebuilt = farm.io.rebuild_rows(SET, column, farm.rows(), &*farm.table).await.expect("rebuilt");
        assert_eq!(rebuilt.lost_pages, [0; 0]);
        farm.sets.set_rebuilt(SET, column, farm.rows());
        drop(rebuilt);
        passing.await;
        farm.sets.finish_rebuild(SET, column);
        farm.check_all().await;
        farm.check_redundancy().await;
    });
}

#[test]
fn a_lost_column_is_rebuilt_while_the_set_is_in_use() {
    on_each_shape(4, |farm, mut random| async move {
        if farm.layout.tolerated_failures() == 0 {
            return;
        }
        farm.fill_with_noise(&mut random).await;
        farm.live(100, &mut random).await;
        // Each drive in turn, so that later rebuilds read what earlier ones wrote.
        for round in 0..super::farm::SPARE_DRIVES as u8 {
            let column = Column(round % farm.layout.columns() as u8);
            farm.lose(column);
            farm.live(30, &mut random).await;
            let spare = spare_of(&farm);
            farm.sets.start_rebuild(SET, column, spare);
            harm_one_offset(&farm, &mut random).await;
            for row in farm.all_rows() {
                let rows = row..Row(row.0 + 1);
                let rebuilt =
                    farm.io.rebuild_rows(SET, column, rows.clone(), &*farm.table).await.expect("rebuilt");
                assert_eq!(rebuilt.rows_written, u64::from(!farm.is_unwritten(row)));
                assert!(rebuilt.lost_pages.is_empty());
                farm.sets.set_rebuilt(SET, column, rows);
                drop(rebuilt);
                farm.live(20, &mut random).await;
            }
            assert!(farm.io.lost_columns(SET, Row(3)).is_empty());
            farm.sets.finish_rebuild(SET, column);
            farm.check_all().await;
            farm.check_redundancy().await;
        }
    });
}

/// A rebuild wrote zeros over what was right on a drive that had been taken back, and nowhere else.
#[test]
fn what_is_right_on_the_target_alone_is_not_written_over() {
    on_each_shape(14, |farm, mut random| async move {
        let layout = farm.layout;
        if layout.tolerated_failures() == 0 {
            return;
        }
        let all = (0..farm.row_pages()).map(|page| (page, Some(vec![page as u8 + 1; PAGE_BYTES])));
        farm.destage(Row(0), &all.collect(), &mut random).await.expect("written");
        let (row, unit, right_at, wrong_at) = (Row(0), Unit(0), 1, 2);
        let column = layout.copies(row, unit).first().expect("it is stored");
        let right = farm.stored(column, row, right_at).await;
        farm.lose(column);
        let target = tier0_pool::ChunkletAddress { drive: layout.columns() as u32, index: 0 };
        farm.sets.start_rebuild(SET, column, target);
        farm.plant(column, row, right_at, &right).await;
        farm.plant(column, row, wrong_at, &[0xee; PAGE_BYTES]).await;
        let holders = match layout.parities() {
            0 => layout.copies(row, unit),
            _ => layout.group_column_mask(layout.group_of(unit)),
        };
        let others = holders - ColumnMask::only(column);
        for victim in others.iter().take(layout.tolerated_failures()) {
            farm.rot(victim, row, right_at, &mut random).await;
            farm.rot(victim, row, wrong_at, &mut random).await;
        }
        let rebuilt = farm.io.rebuild_rows(SET, column, farm.rows(), &*farm.table).await.expect("rebuilt");
        let page = |offset| layout.page_of_set(row, PagePlace { unit, offset });
        assert!(!rebuilt.lost_pages.contains(&page(right_at)), "{:?}", rebuilt.lost_pages);
        assert!(rebuilt.lost_pages.contains(&page(wrong_at)), "{:?}", rebuilt.lost_pages);
        farm.sets.set_rebuilt(SET, column, farm.rows());
        drop(rebuilt);
        farm.sets.finish_rebuild(SET, column);
        assert_eq!(farm.stored(column, row, right_at).await, right);
        farm.check(page(right_at), 1).await;
    });
}

/// Where more redundancy is left than the rebuild needs, rot must not stop it either.
async fn harm_one_offset(farm: &Rc<Farm>, random: &mut Random) {
    if farm.layout.tolerated_failures() < 2 {
        return;
    }
    harm(farm, random).await;
}

fn spare_of(farm: &Farm) -> tier0_pool::ChunkletAddress {
    let rooms: Vec<_> = (0..farm.faults.len() as u32)
        .filter(|drive| !farm.io.members().lost().is_lost(*drive as usize))
        .map(|drive| tier0_raid::set::SpareRoom { drive, chunklets: 3 })
        .collect();
    let lost = (0..farm.layout.columns() as u8)
        .map(|column| farm.sets.chunklet(SET, Column(column)).drive)
        .find(|drive| farm.io.members().lost().is_lost(*drive as usize));
    let plan =
        tier0_raid::set::plan_spares(&farm.sets, &rooms, &BTreeSet::new(), lost.expect("a lost drive"));
    plan.moves[0].target
}

#[test]
fn what_nothing_can_make_right_is_an_error_and_not_wrong_data() {
    on_each_shape(5, |farm, mut random| async move {
        let every_page = (0..farm.row_pages()).map(|page| (page, Some(vec![page as u8 + 1; 32]))).collect();
        farm.destage(Row(0), &every_page, &mut random).await.expect("written");
        // One page more than the level tolerates, at one offset; for mirrors all copies.
        let victims = match farm.layout.level() {
            RaidLevel::Raid10 => 2,
            _ => farm.layout.tolerated_failures() + 1,
        };
        let columns: Vec<Column> = (0..farm.layout.columns() as u8).map(Column).collect();
        let is_data =
            |column: &&Column| !matches!(farm.layout.role(Row(0), **column), Role::P(_) | Role::Q(_));
        let data: Vec<Column> = columns.iter().filter(is_data).copied().collect();
        // With two data columns alone the third that rots is a parity: the data are lost all the same.
        let mut rotten: Vec<Column> = data.iter().copied().take(victims).collect();
        rotten.extend(columns.iter().filter(|column| !data.contains(column)).take(victims - rotten.len()));
        for column in &rotten {
            farm.rot(*column, Row(0), 2, &mut random).await;
        }
        let read = |page: u64| {
            let farm = farm.clone();
            async move {
                let buf = farm.world.buffer(8);
                farm.io.read_verified(SET, tier0_units::Lba(page * 8), buf, &*farm.table).await.0
            }
        };
        let unit = match farm.layout.role(Row(0), rotten[0]) {
            Role::Data(unit) | Role::Mirror(unit, _) => unit,
            other => panic!("{other:?}"),
        };
        let page = unit.index() as u64 * UNIT_PAGES as u64 + 2;
        assert_eq!(read(page).await, Err(IoError::DataLost));
        // The others of the row are what they were, and the row can still be written and serves what is written.
        farm.check(page - 1, 1).await;
        farm.check(page + 1, 1).await;
        let outcome = farm.io.scrub_rows(SET, Row(0)..Row(1), &*farm.table).await.expect("a scrub");
        assert!(outcome.lost_pages.contains(&page), "{outcome:?}");
        let around: RowPages =
            (0..farm.row_pages()).filter(|p| p % 4 != 2).map(|p| (p, Some(vec![77 + p as u8; 32]))).collect();
        farm.destage(Row(0), &around, &mut random).await.expect("written");
        assert_eq!(read(page).await, Err(IoError::DataLost));
        let everything: RowPages = (0..farm.row_pages()).map(|p| (p, Some(vec![99 - p as u8; 32]))).collect();
        farm.destage(Row(0), &everything, &mut random).await.expect("written");
        farm.check_all().await;
        farm.check_redundancy().await;
    });
}

#[test]
fn a_repair_says_what_was_wrong_and_what_was_right() {
    on_each_shape(6, |farm, mut random| async move {
        if farm.layout.tolerated_failures() == 0 {
            return;
        }
        let all = (0..farm.row_pages()).map(|page| (page, Some(vec![page as u8 + 1; 32]))).collect();
        farm.destage(Row(1), &all, &mut random).await.expect("written");
        let first = farm.layout.data_column(Row(1), tier0_raid::layout::Unit(0));
        farm.rot(first, Row(1), 3, &mut random).await;
        let page = farm.row_pages() + 3;
        farm.check(page, 1).await;
        // A mirror's other copy may have been read instead; a scrub finds it then.
        farm.io.scrub_rows(SET, Row(1)..Row(2), &*farm.table).await.expect("a scrub");
        let events = farm.events.0.borrow();
        assert_eq!(events.len(), 1, "{events:?}");
        let event = events[0];
        assert_eq!((event.column, event.page, event.fault), (first, Some(page), PageFault::Rot));
        assert_eq!(event.column_page, UNIT_PAGES as u64 + 3);
        match farm.layout.parities() {
            0 => assert!(matches!(event.source, Some(RepairSource::Copy(copy)) if copy != first)),
            _ => assert_eq!(event.source, Some(RepairSource::P)),
        }
    });
}

#[test]
fn pages_of_zeros_are_answered_without_a_drive() {
    on_each_shape(7, |farm, mut random| async move {
        farm.fill_with_noise(&mut random).await;
        farm.check_all().await;
        assert_eq!(farm.counts.borrow().reads, 0);
        let one = [(1, Some(vec![7; 32]))].into_iter().collect();
        farm.destage(Row(2), &one, &mut random).await.expect("written");
        farm.check(2 * farm.row_pages() + 4, 4).await;
        assert_eq!(farm.counts.borrow().reads, 0, "a row's first write and its pages of zeros read nothing");
        farm.check(2 * farm.row_pages(), farm.row_pages()).await;
        assert_eq!(farm.counts.borrow().reads, 1);
        assert!(farm.table.0.borrow().contains(&Expected::Zero));
    });
}

#[test]
fn a_drive_that_fails_a_write_or_falls_silent_is_lost_and_nothing_else() {
    on_each_shape(9, |farm, mut random| async move {
        for loss in 0..farm.layout.tolerated_failures() {
            farm.live(40, &mut random).await;
            let victim = (loss * 2 + 1) % farm.layout.columns();
            match loss {
                0 => farm.faults[victim].inject(FaultPlan::once(Fault::WriteError)),
                _ => farm.faults[victim].set_gone(true),
            }
            for row in farm.all_rows() {
                let all = (0..farm.row_pages()).map(|page| (page, Some(vec![page as u8 + 1; 32]))).collect();
                farm.destage(row, &all, &mut random).await.expect("the others make up for it");
            }
            assert!(farm.io.members().lost().is_lost(victim));
            farm.live(40, &mut random).await;
            farm.check_all().await;
            farm.check_redundancy().await;
        }
    });
}

#[test]
fn one_drive_too_many_is_an_error_for_reader_and_writer() {
    on_each_shape(10, |farm, mut random| async move {
        let all: RowPages =
            (0..farm.row_pages()).map(|page| (page, Some(vec![page as u8 + 1; 32]))).collect();
        farm.destage(Row(0), &all, &mut random).await.expect("written");
        for column in 0..farm.layout.columns() as u8 {
            farm.lose(Column(column));
        }
        for page in 0..farm.row_pages() {
            let buf = farm.world.buffer(8);
            let read = farm.io.read_verified(SET, tier0_units::Lba(page * 8), buf, &*farm.table).await.0;
            assert_eq!(read, Err(IoError::RedundancyLost));
        }
        assert_eq!(farm.destage(Row(0), &all, &mut random).await, Err(IoError::RedundancyLost));
        let scrub = farm.io.scrub_rows(SET, farm.rows(), &*farm.table).await;
        assert_eq!(scrub.err(), Some(IoError::RedundancyLost));
    });
}
