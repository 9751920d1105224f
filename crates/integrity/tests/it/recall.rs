//! A drive that is taken back has the only right copy of a slot's table.

use tier0_integrity::table::TablePlacement;
use tier0_integrity::{LogPlace, SlotIoOptions, SlotWrite};
use tier0_pool::ChunkletAddress;
use tier0_raid::layout::{Column, RaidLevel};
use tier0_raid::set::SetIndex;
use tier0_units::{ExtentId, Lba, SlotRef};
use tier0_world::{Buf, IoError, PayloadWidth, World};

use crate::bench::{NoLog, Rack, SMALL, Shape, Shard, content, page};
use crate::repairs::run;

const SLOT: SlotRef = SlotRef { slot: 0, allocation: 1 };
const EXTENT: ExtentId = ExtentId { volume: 1, index: 0 };
const SET: SetIndex = SetIndex(0);
const SHAPES: [Shape; 4] = [
    Shape(RaidLevel::Raid1, 2, SMALL),
    Shape(RaidLevel::Raid1, 3, SMALL),
    Shape(RaidLevel::Raid5, 5, SMALL),
    Shape(RaidLevel::Raid6, 5, SMALL),
];

async fn write(shard: &Shard, pages: impl Iterator<Item = (u32, u64)>) {
    let log = LogPlace { position: 0, page: 0 };
    let pages = pages.map(|(page, mark)| (page, content(PayloadWidth::REAL, mark, log))).collect();
    let write = SlotWrite { extent: EXTENT, slot: SLOT, pages };
    shard.io.write_batch(vec![write], &NoLog).await.expect("a batch");
}

/// What a page holds: the mark it was written with, of these.
async fn mark(shard: &Shard, number: u32, marks: &[u64]) -> Result<u64, IoError> {
    let (result, read) = shard.io.read(SLOT, u64::from(number) * 8, shard.world.buffer(8)).await;
    result?;
    let is_it = |mark: &&u64| page(PayloadWidth::REAL, **mark).as_slice() == read.as_slice();
    Ok(*marks.iter().find(is_it).expect("it is what was written at some time"))
}

/// All of a column's chunklet.
async fn image(rack: &Rack, world: &World, column: Column) -> Buf {
    let (drive, start) = rack.column_start(SET, column);
    let buf = world.buffer(rack.chunklet_sectors as u32);
    let (result, buf) = rack.media[drive].open(world).read(Lba(start), buf).await;
    result.expect("it is read");
    buf.freeze()
}

/// Opens the slot where the copies of its table on other columns are lost; its tables are read from the drives again.
fn open_with_tables_lost(rack: &Rack, world: &World, kept: &[Column]) -> Shard {
    let shard = rack.open(world, SlotIoOptions::default());
    let placement = TablePlacement::new(&rack.layout, shard.io.pages_per_slot(0));
    for copy in placement.copies(0).filter(|copy| !kept.contains(&copy.column)) {
        let (drive, start) = rack.column_start(SET, copy.column);
        for sector in 0..placement.place_sectors() {
            rack.media[drive].rot(Lba(start + copy.lba.0 + sector));
        }
    }
    shard
}

fn lose(rack: &Rack, shard: &Shard, column: Column) {
    let (drive, _) = rack.column_start(SET, column);
    rack.lost.borrow_mut().insert(drive);
    shard.io.raid().members().lost().set_lost(drive);
}

/// A drive is taken back that holds `image` of a column, and lies at `place` from now on.
async fn take_back(
    rack: &Rack,
    shard: &Shard,
    column: Column,
    place: ChunkletAddress,
    image: Buf,
    returned: bool,
) {
    let sets = shard.io.raid().sets();
    sets.start_rebuild(SET, column, place);
    let start = u64::from(place.index) * rack.chunklet_sectors;
    let drive = rack.media[place.drive as usize].open(&shard.world);
    drive.write(Lba(start), image, false).await.expect("it holds that");
    let rebuilt = shard.io.rebuild_slot(SLOT, column, returned.then_some(place)).await.expect("a rebuild");
    assert!(rebuilt.declare_present());
    sets.finish_rebuild(SET, column);
}

/// Loses a column, and every other copy of the table; a drive is taken back in its place that holds `image`.
async fn come_back(rack: &Rack, world: &World, column: Column, image: Buf, returned: bool) -> Shard {
    let shard = open_with_tables_lost(rack, world, &[column]);
    lose(rack, &shard, column);
    let place = rack.take_spare(SET, column);
    take_back(rack, &shard, column, place, image, returned).await;
    shard
}

fn table_column(rack: &Rack, shard: &Shard) -> Column {
    let placement = TablePlacement::new(&rack.layout, shard.io.pages_per_slot(0));
    placement.copies(0).next().expect("a table has copies").column
}

/// The table was begun anew, with no page known, and written over the copy that was right.
#[test]
fn a_table_that_only_a_drive_has_that_is_taken_back_is_read() {
    for shape in SHAPES {
        for returned in [true, false] {
            let rack = Rack::new(shape, 21, PayloadWidth::REAL);
            run(1, |world| async move {
                let shard = rack.open(&world, SlotIoOptions::default());
                shard.io.allocate(SLOT);
                let pages = rack.layout.row_pages() as u32;
                write(&shard, (0..pages).map(|page| (page, 1 + u64::from(page)))).await;
                write(&shard, [(1, 0)].into_iter()).await;
                let column = table_column(&rack, &shard);
                let image = image(&rack, &world, column).await;
                let shard = come_back(&rack, &world, column, image, returned).await;
                for number in (0..pages).filter(|number| *number != 1) {
                    let found = mark(&shard, number, &[1 + u64::from(number)]).await;
                    // It may be old where others may have written since.
                    let expected = if returned { Ok(1 + u64::from(number)) } else { Err(IoError::DataLost) };
                    assert_eq!(found, expected, "{shape:?}, {returned}, page {number}");
                }
                if returned {
                    let (result, read) = shard.io.read(SLOT, 8, world.buffer(8)).await;
                    assert_eq!((result, read.as_slice().iter().all(|byte| *byte == 0)), (Ok(()), true));
                }
            });
        }
    }
}

/// What was written after the drive was lost is lost with the tables, or what was written last; never what the drive has.
#[test]
fn an_old_table_vouches_for_nothing_old() {
    for shape in SHAPES {
        let rack = Rack::new(shape, 22, PayloadWidth::REAL);
        run(1, |world| async move {
            let shard = rack.open(&world, SlotIoOptions::default());
            shard.io.allocate(SLOT);
            let pages = rack.layout.row_pages() as u32;
            write(&shard, (0..pages).map(|page| (page, 1 + u64::from(page)))).await;
            let column = table_column(&rack, &shard);
            let old = image(&rack, &world, column).await;
            let changed = |page: &u32| page.is_multiple_of(2);
            write(&shard, (0..pages).filter(changed).map(|page| (page, 100 + u64::from(page)))).await;
            let shard = come_back(&rack, &world, column, old, false).await;
            for number in 0..pages {
                let marks = [1 + u64::from(number), 100 + u64::from(number)];
                match mark(&shard, number, &marks).await {
                    Ok(found) => {
                        assert_eq!(found, marks[usize::from(changed(&number))], "{shape:?}, page {number}")
                    }
                    Err(error) => assert_eq!(error, IoError::DataLost),
                }
            }
        });
    }
}

/// The newest write of the table on the drive has rotted, and the one before it knows nothing of the last batch. It does not
/// count either when the tables are read again: it had a higher number than the one that was begun anew.
#[test]
fn an_older_write_of_the_table_is_not_believed() {
    for shape in SHAPES {
        let rack = Rack::new(shape, 23, PayloadWidth::REAL);
        run(1, |world| async move {
            let shard = rack.open(&world, SlotIoOptions::default());
            shard.io.allocate(SLOT);
            for mark in 1..20 {
                write(&shard, [(0, mark), (2, 2)].into_iter()).await;
            }
            write(&shard, [(1, 3), (2, 0)].into_iter()).await;
            let column = table_column(&rack, &shard);
            let placement = TablePlacement::new(&rack.layout, shard.io.pages_per_slot(0));
            let copy = placement.copies(0).next().expect("a table has copies");
            let (drive, start) = rack.column_start(SET, column);
            rack.media[drive].rot(Lba(start + copy.lba.0 + placement.generation_offset(20)));
            let image = image(&rack, &world, column).await;
            let shard = come_back(&rack, &world, column, image, true).await;
            let again = rack.open(&world, SlotIoOptions::default());
            for (number, shard) in (0..3).flat_map(|number| [(number, &shard), (number, &again)]) {
                let found = mark(shard, number, &[]).await;
                assert_eq!(found, Err(IoError::DataLost), "{shape:?}, page {number}");
            }
            write(&shard, [(0, 100)].into_iter()).await;
            let again = rack.open(&world, SlotIoOptions::default());
            assert_eq!(mark(&again, 0, &[19, 100]).await, Ok(100), "{shape:?}");
        });
    }
}

/// The newest write of the table, number `generation`, cannot be read on any column but `kept`.
fn spoil_newest(rack: &Rack, shard: &Shard, generation: u64, kept: Column) {
    let placement = TablePlacement::new(&rack.layout, shard.io.pages_per_slot(0));
    for copy in placement.copies(0).filter(|copy| copy.column != kept) {
        let (drive, start) = rack.column_start(SET, copy.column);
        let first = start + copy.lba.0 + placement.generation_offset(generation);
        rack.media[drive].make_unreadable(first..first + placement.block_sectors());
    }
}

/// A page was zeroed, and the newest write of the table, which says that, is lost. The write before has the checksum of what
/// still lies there: it passed when a host had written another page of the slot.
#[test]
fn what_was_zeroed_does_not_come_back_with_an_older_table() {
    for shape in SHAPES {
        let rack = Rack::new(shape, 25, PayloadWidth::REAL);
        run(1, |world| async move {
            let shard = rack.open(&world, SlotIoOptions::default());
            shard.io.allocate(SLOT);
            let pages = shard.io.pages_per_slot(0);
            write(&shard, (0..pages).map(|page| (page, 1 + u64::from(page)))).await;
            write(&shard, [(1, 0)].into_iter()).await;
            let column = table_column(&rack, &shard);
            let shard = rack.open(&world, SlotIoOptions::default());
            lose(&rack, &shard, column);
            spoil_newest(&rack, &shard, 2, column);
            assert_eq!(mark(&shard, 1, &[2]).await, Err(IoError::DataLost), "{shape:?}");
            write(&shard, [(4, 150)].into_iter()).await;
            assert_eq!(mark(&shard, 1, &[2]).await, Err(IoError::DataLost), "{shape:?}");
            assert_eq!(mark(&shard, 4, &[5, 150]).await, Ok(150), "{shape:?}");
        });
    }
}

/// The drive that has the newest write of the table is taken back as it was, and all is right. Where every page was stored, it
/// was not asked.
#[test]
fn a_table_is_recalled_where_the_others_have_an_older_one() {
    for (shape, is_full) in SHAPES.into_iter().flat_map(|shape| [(shape, true), (shape, false)]) {
        let rack = Rack::new(shape, 26, PayloadWidth::REAL);
        run(1, |world| async move {
            let shard = rack.open(&world, SlotIoOptions::default());
            shard.io.allocate(SLOT);
            let pages = shard.io.pages_per_slot(0);
            let end = if is_full { pages } else { pages - 1 };
            write(&shard, (0..end).map(|page| (page, 1 + u64::from(page)))).await;
            write(&shard, [(1, 0), (2, 150)].into_iter()).await;
            let column = table_column(&rack, &shard);
            let image = image(&rack, &world, column).await;
            let shard = rack.open(&world, SlotIoOptions::default());
            lose(&rack, &shard, column);
            spoil_newest(&rack, &shard, 2, column);
            let place = rack.take_spare(SET, column);
            take_back(&rack, &shard, column, place, image, true).await;
            assert_eq!(mark(&shard, 0, &[1]).await, Ok(1), "{shape:?}");
            assert_eq!(mark(&shard, 2, &[3, 150]).await, Ok(150), "{shape:?}");
            let (result, read) = shard.io.read(SLOT, 8, world.buffer(8)).await;
            let is_zeros = read.as_slice().iter().all(|byte| *byte == 0);
            assert_eq!((result, is_zeros), (Ok(()), true), "{shape:?}");
        });
    }
}

/// Two drives were taken back. The table that one of them still has counts less than what is written from then on.
#[test]
fn a_recalled_table_is_newer_than_the_copies_it_came_from() {
    let rack = Rack::new(Shape(RaidLevel::Raid1, 3, SMALL), 24, PayloadWidth::REAL);
    run(1, |world| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        shard.io.allocate(SLOT);
        for mark in 1..20 {
            write(&shard, [(0, mark)].into_iter()).await;
        }
        let images = [image(&rack, &world, Column(0)).await, image(&rack, &world, Column(1)).await];
        let shard = open_with_tables_lost(&rack, &world, &[Column(0), Column(1)]);
        lose(&rack, &shard, Column(0));
        let sets = shard.io.raid().sets();
        // The second one's drive is back already, and has everything where it was.
        let own = sets.chunklet(SET, Column(1));
        sets.start_rebuild(SET, Column(1), own);
        let spare = rack.take_spare(SET, Column(0));
        for (column, place, image) in [(0, spare, &images[0]), (1, own, &images[1])] {
            take_back(&rack, &shard, Column(column), place, image.clone(), true).await;
        }
        write(&shard, [(0, 100)].into_iter()).await;
        shard.io.raid().flush().await.expect("it is stable");
        let again = rack.open(&world, SlotIoOptions::default());
        assert_eq!(mark(&again, 0, &[19, 100]).await, Ok(100));
    });
}
