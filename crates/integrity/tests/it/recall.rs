//! A drive that is taken back has the only right copy of a slot's table.

use tier0_integrity::table::TablePlacement;
use tier0_integrity::{LogPlace, SlotIoOptions, SlotWrite};
use tier0_raid::layout::{Column, ColumnMask, RaidLevel};
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

/// Loses a column, and every other copy of the table; a drive is taken back in its place that holds `image`.
async fn come_back(rack: &Rack, world: &World, column: Column, image: Buf, returned: bool) -> Shard {
    // Its tables are read from the drives again.
    let shard = rack.open(world, SlotIoOptions::default());
    let placement = TablePlacement::new(&rack.layout, shard.io.pages_per_slot());
    for copy in placement.copies(0).filter(|copy| copy.column != column) {
        let (drive, start) = rack.column_start(SET, copy.column);
        for sector in 0..placement.place_sectors() {
            rack.media[drive].rot(Lba(start + copy.lba.0 + sector));
        }
    }
    let (drive, _) = rack.column_start(SET, column);
    rack.lost.borrow_mut().insert(drive);
    shard.io.raid().members().lost().set_lost(drive);
    let sets = shard.io.raid().sets();
    sets.start_rebuild(SET, column, rack.take_spare(SET, column));
    let (drive, start) = rack.column_start(SET, column);
    rack.media[drive].open(world).write(Lba(start), image, false).await.expect("it holds that");
    let rebuilt = shard.io.rebuild_slot(SLOT, column, returned).await.expect("a rebuild");
    assert!(rebuilt.declare_present());
    sets.finish_rebuild(SET, column);
    shard
}

fn table_column(rack: &Rack, shard: &Shard) -> Column {
    let placement = TablePlacement::new(&rack.layout, shard.io.pages_per_slot());
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
                let row = shard.io.slots().rows(SLOT.slot).start;
                let shard = come_back(&rack, &world, column, image, returned).await;
                for number in (0..pages).filter(|number| *number != 1) {
                    let found = mark(&shard, number, &[1 + u64::from(number)]).await;
                    let unit = rack.layout.page_place(number as usize).unit;
                    let is_elsewhere = rack.layout.copies(row, unit) != ColumnMask::only(column);
                    // What lies on the drive alone may be old where others may have written since.
                    let expected = if returned || is_elsewhere {
                        Ok(1 + u64::from(number))
                    } else {
                        Err(IoError::DataLost)
                    };
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
