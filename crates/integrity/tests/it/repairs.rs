//! What is repaired stays repaired: after a power cut, and where a bad sector lies under nothing that is read often.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

use crate::bench::{Model, NoLog, Rack, SHAPES, SMALL, Shape, Shard, content, page};
use tier0_drive::sim::PowerCut;
use tier0_integrity::table::{self, FoundTable, TableBlock, TablePlacement};
use tier0_integrity::{Intent, IntentLog, LogPlace, PageContent, SlotIoOptions, SlotWrite};
use tier0_pool::ChunkletAddress;
use tier0_raid::layout::{Column, Group, RaidLevel, Unit};
use tier0_raid::set::SetIndex;
use tier0_units::{ExtentId, Lba, PAGE_SECTORS, SectorCount, SlotRef};
use tier0_world::{Buf, IoError, PayloadWidth, VirtualRuntime};

const SLOT: SlotRef = SlotRef { slot: 0, allocation: 1 };
const EXTENT: ExtentId = ExtentId { volume: 0, index: 0 };

/// Runs `work` in a world of its own.
pub(crate) fn run<F: Future<Output = ()> + 'static>(seed: u64, work: impl FnOnce(tier0_world::World) -> F) {
    let runtime = VirtualRuntime::new(seed, PayloadWidth::REAL);
    let world = runtime.world().clone();
    runtime.run(work(world));
}

fn batch(pages: impl IntoIterator<Item = (u32, u64)>) -> Vec<SlotWrite> {
    let place = LogPlace { position: 0, page: 0 };
    let pages = pages.into_iter().map(|(page, mark)| (page, content(PayloadWidth::REAL, mark, place)));
    vec![SlotWrite { extent: EXTENT, slot: SLOT, pages: pages.collect() }]
}

#[test]
fn a_power_cut_right_after_a_scrub_takes_back_no_repair() {
    for (n, shape) in SHAPES.into_iter().enumerate() {
        let rack = Rack::new(shape, n as u64, PayloadWidth::REAL);
        if rack.layout.tolerated_failures() == 0 {
            continue;
        }
        let first = rack.clone();
        run(1, |world| async move {
            let shard = first.open(&world, SlotIoOptions::default());
            let mut model = Model::allocate(&shard, 2);
            let mut random = world.random(9);
            while model.mapped.len() < 2 || random.chance(0.8) {
                model.write(&shard, &mut random).await.expect("a batch");
            }
            // A drive that has something of the first slot; the others may be spares.
            let (drive, _) = first.column_start(shard.io.slots().place(0).set, Column(0));
            for _ in 0..30 {
                let lba = first.media[drive].sample_written(&mut random).expect("the drive was written");
                first.media[drive].make_unreadable(lba.0..lba.0 + 1);
            }
            let (faults, tables) = model.scrub(&shard).await;
            assert!(faults + tables > 0, "{shape:?}: nothing was hit");
            assert_eq!(model.scrub(&shard).await, (0, 0), "{shape:?}");
        });
        rack.media.iter().for_each(|medium| medium.power_cut(PowerCut::KeepNothing));
        rack.switch.restore();
        let second = rack.clone();
        run(2, |world| async move {
            let shard = second.open(&world, SlotIoOptions::default());
            for slot in (0..2).map(|slot| SlotRef { slot, allocation: slot + 1 }) {
                let scrub = shard.io.scrub_slot(slot).await.expect("a scrub succeeds");
                assert_eq!(scrub.rows.repaired + scrub.tables_repaired, 0, "{shape:?} {slot:?}: {scrub:?}");
            }
        });
    }
}

#[test]
fn a_bad_sector_in_the_stale_place_of_a_table_is_repaired_once() {
    let rack = Rack::new(Shape(RaidLevel::Raid1, 2, SMALL), 3, PayloadWidth::REAL);
    run(1, |world| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        shard.io.allocate(SLOT);
        for mark in 1..3 {
            shard.io.write_batch(batch([(0, mark)]), &NoLog).await.expect("a batch");
        }
        let set = shard.io.slots().place(SLOT.slot).set;
        let placement = TablePlacement::new(&rack.layout, shard.io.pages_per_slot(0));
        let copy = placement.copies(0).next().expect("a table has copies");
        let (drive, start) = rack.column_start(set, copy.column);
        let stale = start + copy.lba.0 + placement.generation_offset(1);
        rack.media[drive].make_unreadable(stale..stale + 1);
        assert_eq!(shard.io.scrub_slot(SLOT).await.expect("a scrub succeeds").tables_repaired, 1);
        assert!(rack.media[drive].is_readable(stale..stale + 1), "it was written again");
        assert_eq!(shard.io.scrub_slot(SLOT).await.expect("a scrub succeeds").tables_repaired, 0);
        // The generation that counts was never touched.
        let shard = rack.open(&world, SlotIoOptions::default());
        let (result, read) = shard.io.read(SLOT, 0, world.buffer(8)).await;
        assert!(result.is_ok() && read.as_slice() == page(PayloadWidth::REAL, 2).as_slice());
    });
}

/// Changes what a copy of the first slot's table says, where its generation `place` lies.
async fn forge(rack: &Rack, shard: &Shard, copy: usize, place: u64, change: impl FnOnce(&mut TableBlock)) {
    let set = shard.io.slots().place(SLOT.slot).set;
    let placement = TablePlacement::new(&rack.layout, shard.io.pages_per_slot(0));
    let copy = placement.copies(0).nth(copy).expect("a table has copies");
    let (drive, start) = rack.column_start(set, copy.column);
    let at = |generation| Lba(start + copy.lba.0 + placement.generation_offset(generation));
    let drive = rack.media[drive].open(&shard.world);
    let (result, mut buf) = drive.read(at(2), shard.world.buffer(placement.block_sectors() as u32)).await;
    result.expect("a table can be read");
    let FoundTable::Valid(mut block) = table::decode(buf.as_slice()) else { panic!("it is valid") };
    change(&mut block);
    table::encode(&block, buf.as_mut_slice());
    drive.write(at(place), buf.freeze(), true).await.expect("it is written");
}

/// A drive of a copy of the array, served elsewhere, had newer tables of the same slots. A scrub that had the right one in
/// memory left them, and at the next start they counted.
#[test]
fn a_scrub_leaves_no_table_that_is_newer_than_the_arrays() {
    for (foreign, place) in [(7, 1), (8, 2), (9, 1), (2, 2)] {
        let rack = Rack::new(Shape(RaidLevel::Raid1, 2, SMALL), 5, PayloadWidth::REAL);
        run(1, |world| async move {
            let shard = rack.open(&world, SlotIoOptions::default());
            shard.io.allocate(SLOT);
            for mark in 1..3 {
                shard.io.write_batch(batch([(0, mark)]), &NoLog).await.expect("a batch");
            }
            forge(&rack, &shard, 1, place, |block| {
                block.generation = foreign;
                block.entries[0] ^= 1;
            })
            .await;
            assert_eq!(shard.io.scrub_slot(SLOT).await.expect("a scrub succeeds").tables_repaired, 1);
            assert_eq!(shard.io.scrub_slot(SLOT).await.expect("a scrub succeeds").tables_repaired, 0);
            let shard = rack.open(&world, SlotIoOptions::default());
            let (result, read) = shard.io.read(SLOT, 0, world.buffer(8)).await;
            assert_eq!(result, Ok(()), "generation {foreign}");
            assert_eq!(read.as_slice(), page(PayloadWidth::REAL, 2).as_slice());
            assert_eq!(shard.io.scrub_slot(SLOT).await.expect("a scrub succeeds").tables_repaired, 0);
        });
    }
}

/// A power cut may leave two copies of one generation that differ: one was healed with what was in the log. The log was
/// let go where memory had that one, and the other copy stayed behind.
#[test]
fn copies_of_one_generation_that_differ_are_made_one() {
    let rack = Rack::new(Shape(RaidLevel::Raid1, 2, SMALL), 6, PayloadWidth::REAL);
    run(1, |world| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        shard.io.allocate(SLOT);
        for mark in 1..3 {
            shard.io.write_batch(batch([(0, mark)]), &NoLog).await.expect("a batch");
        }
        forge(&rack, &shard, 0, 2, |block| block.entries[0] ^= 1).await;
        // The last one counts, and the first is written like it when they are loaded.
        let shard = rack.open(&world, SlotIoOptions::default());
        let (result, _) = shard.io.read(SLOT, 0, world.buffer(8)).await;
        assert_eq!(result, Ok(()));
        assert_eq!(shard.io.scrub_slot(SLOT).await.expect("a scrub succeeds").tables_repaired, 0);
        let set = shard.io.slots().place(SLOT.slot).set;
        lose(&rack, &shard, set, Column(1));
        let shard = rack.open(&world, SlotIoOptions::default());
        let (result, read) = shard.io.read(SLOT, 0, world.buffer(8)).await;
        assert_eq!(result, Ok(()), "it is what the other copy said");
        assert_eq!(read.as_slice(), page(PayloadWidth::REAL, 2).as_slice());
    });
}

#[test]
fn a_bad_sector_under_a_page_of_zeros_is_no_loss() {
    for shape in [Shape(RaidLevel::Raid1, 2, SMALL), Shape(RaidLevel::Raid10, 4, SMALL)] {
        let rack = Rack::new(shape, 4, PayloadWidth::REAL);
        run(1, |world| async move {
            let shard = rack.open(&world, SlotIoOptions::default());
            shard.io.allocate(SLOT);
            shard.io.write_batch(batch([(0, 7)]), &NoLog).await.expect("a batch");
            let set = shard.io.slots().place(SLOT.slot).set;
            let column = Column(0);
            lose(&rack, &shard, set, column);
            // Page 1 lies behind page 0 on the other copy, and holds nothing.
            let (drive, start) = rack.column_start(set, Column(1));
            let page = start + rack.plan.table_sectors + 8;
            rack.media[drive].make_unreadable(page..page + 1);
            rebuild(&rack, &shard, set, column).await;
            assert_eq!(shard.io.counts().unrecoverable(), 0, "{shape:?}");
        });
    }
}

/// A batch that failed for the sake of another slot gave up its load of a table, and readers that waited for it were told
/// that the table is lost.
#[test]
fn a_load_that_is_given_up_is_no_loss_to_those_who_wait_for_it() {
    let rack = Rack::new(Shape(RaidLevel::Raid1, 2, SMALL), 5, PayloadWidth::REAL);
    run(1, |world| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        shard.io.allocate(SLOT);
        shard.io.write_batch(batch([(0, 7)]), &NoLog).await.expect("a batch");
        let shard = rack.open(&world, SlotIoOptions::default());
        let mut given_up = Box::pin(shard.io.read(SLOT, 0, world.buffer(8)));
        let mut waiting = Box::pin(shard.io.read(SLOT, 0, world.buffer(8)));
        let begun = std::future::poll_fn(|context| {
            let begun = given_up.as_mut().poll(context).is_pending();
            Poll::Ready(begun && waiting.as_mut().poll(context).is_pending())
        });
        assert!(begun.await, "the table is being loaded");
        drop(given_up);
        let (result, read) = waiting.await;
        assert_eq!(result, Ok(()));
        assert_eq!(read.as_slice(), page(PayloadWidth::REAL, 7).as_slice());
    });
}

/// Declares the drive of a column lost.
fn lose(rack: &Rack, shard: &Shard, set: SetIndex, column: Column) {
    let (drive, _) = rack.column_start(set, column);
    rack.lost.borrow_mut().insert(drive);
    shard.io.raid().members().lost().set_lost(drive);
}

/// Rebuilds the slot's share of a column, and declares the column there.
async fn rebuild(rack: &Rack, shard: &Shard, set: SetIndex, column: Column) {
    let sets = shard.io.raid().sets();
    sets.start_rebuild(set, column, rack.take_spare(set, column));
    assert!(shard.io.rebuild_slot(SLOT, column, None).await.expect("a rebuild").declare_present());
    sets.finish_rebuild(set, column);
}

/// Keeps intents.
#[derive(Default)]
struct Kept(RefCell<Vec<Intent>>);

impl IntentLog for Kept {
    fn append(&self, intents: Vec<Intent>) -> Pin<Box<dyn Future<Output = Result<(), IoError>> + '_>> {
        self.0.borrow_mut().extend(intents);
        Box::pin(async { Ok(()) })
    }
}

#[test]
fn old_parity_is_not_replayed_over_a_column_that_was_rebuilt_since() {
    for shape in SHAPES {
        let rack = Rack::new(shape, 5, PayloadWidth::REAL);
        if rack.layout.parities() == 0 {
            continue;
        }
        run(1, |world| async move {
            let shard = rack.open(&world, SlotIoOptions::default());
            shard.io.allocate(SLOT);
            let set = shard.io.slots().place(SLOT.slot).set;
            let row = shard.io.slots().rows(SLOT.slot).start;
            let all = (0..rack.layout.row_pages() as u32).map(|page| (page, 1 + u64::from(page)));
            shard.io.write_batch(batch(all), &NoLog).await.expect("a batch");
            let log = Kept::default();
            shard.io.write_batch(batch([(0, 100)]), &log).await.expect("a batch");
            let parity = rack.layout.parity_columns(row, Group(0)).p.expect("a level with parity");
            lose(&rack, &shard, set, parity);
            shard.io.write_batch(batch([(0, 200)]), &log).await.expect("a batch");
            rebuild(&rack, &shard, set, parity).await;
            // The process dies; the log still has both intents.
            let shard = rack.open(&world, SlotIoOptions::default());
            let intents = log.0.borrow().clone();
            assert_eq!(intents.len(), 2);
            let pages: Vec<[Buf; 1]> = [100, 200].map(|mark| [page(PayloadWidth::REAL, mark)]).to_vec();
            let replays: Vec<(&Intent, &[Buf])> =
                intents.iter().zip(&pages).map(|(intent, pages)| (intent, pages.as_slice())).collect();
            shard.io.replay_intents(&replays).await.expect("a replay");
            shard.io.sync().await.expect("a sync");
            let scrub = shard.io.scrub_slot(SLOT).await.expect("a scrub succeeds");
            assert_eq!(scrub.rows.parity_different, 0, "{shape:?}: {scrub:?}");
        });
    }
}

/// A drive lied about a parity, a write modified that and logged it, and a scrub made it right, which is not logged. The log's
/// comes back when the server is killed: recovery knows the row, and scrubs it once more.
#[test]
fn a_row_whose_parity_came_back_from_the_log_is_scrubbed() {
    let mut came_back = 0;
    for shape in SHAPES {
        let rack = Rack::new(shape, 7, PayloadWidth::REAL);
        if rack.layout.parities() == 0 {
            continue;
        }
        let different = std::rc::Rc::new(std::cell::Cell::new(0));
        let found = different.clone();
        run(1, |world| async move {
            let shard = rack.open(&world, SlotIoOptions::default());
            shard.io.allocate(SLOT);
            let (set, row) = (shard.io.slots().place(SLOT.slot).set, shard.io.slots().rows(SLOT.slot).start);
            let all = (0..rack.layout.row_pages() as u32).map(|page| (page, 1 + u64::from(page)));
            shard.io.write_batch(batch(all), &NoLog).await.expect("a batch");
            let parity = rack.layout.parity_columns(row, Group(0)).p.expect("a level with parity");
            let (drive, start) = rack.column_start(set, parity);
            let lba = start + rack.plan.table_sectors + rack.layout.column_lba(row, SectorCount(0)).0;
            let lie = page(PayloadWidth::REAL, 66);
            rack.media[drive].open(&world).write(Lba(lba), lie, false).await.expect("it lies");
            let log = Kept::default();
            shard.io.write_batch(batch([(0, 100)]), &log).await.expect("a batch");
            shard.io.scrub_slot(SLOT).await.expect("a scrub");
            assert_eq!(shard.io.take_replayed(), []);
            // The process dies; the log still has the intent.
            let shard = rack.open(&world, SlotIoOptions::default());
            let intents = log.0.borrow().clone();
            let pages = [page(PayloadWidth::REAL, 100)];
            shard.io.replay_intents(&[(&intents[0], &pages)]).await.expect("a replay");
            shard.io.sync().await.expect("a sync");
            let replayed = shard.io.take_replayed();
            // It waits for a column that it lacks.
            let column = rack.layout.data_column(row, Unit(0));
            let (member, _) = rack.column_start(set, column);
            shard.io.raid().members().lost().set_lost(member);
            shard.io.scrub_replayed(replayed[0]).await.expect("it is left alone");
            assert_eq!(shard.io.take_replayed(), replayed);
            let shard = rack.open(&world, SlotIoOptions::default());
            assert_eq!(replayed.iter().map(|one| (one.slot, one.row)).collect::<Vec<_>>(), [(SLOT, row)]);
            for row in replayed {
                shard.io.scrub_replayed(row).await.expect("a scrub");
            }
            found.set(shard.io.counts().repaired_parity());
            let scrub = shard.io.scrub_slot(SLOT).await.expect("a scrub");
            assert_eq!(scrub.rows.parity_different, 0, "{shape:?}: {scrub:?}");
        });
        came_back += different.get();
    }
    assert!(came_back > 0, "no write has modified a parity");
}

/// A page that was given up still holds what it held, and parity counts it. Where a drive has forgotten it, as one does
/// whose file was cut short, the page cannot be told from one that was zeros all along.
#[test]
fn what_a_drive_forgot_of_a_page_without_data_does_not_get_into_parity() {
    for shape in SHAPES {
        let rack = Rack::new(shape, 6, PayloadWidth::REAL);
        if rack.layout.parities() == 0 {
            continue;
        }
        run(1, |world| async move {
            let shard = rack.open(&world, SlotIoOptions::default());
            shard.io.allocate(SLOT);
            let all = (0..rack.layout.row_pages() as u32).map(|page| (page, 1 + u64::from(page)));
            shard.io.write_batch(batch(all), &NoLog).await.expect("a batch");
            let zero = SlotWrite { extent: EXTENT, slot: SLOT, pages: vec![(0, PageContent::Zero)] };
            shard.io.write_batch(vec![zero], &NoLog).await.expect("a batch");
            // The table is read from the drives again.
            let shard = rack.open(&world, SlotIoOptions::default());
            let (set, row) = (shard.io.slots().place(SLOT.slot).set, shard.io.slots().rows(SLOT.slot).start);
            let column = rack.layout.data_column(row, Unit(0));
            let (drive, start) = rack.column_start(set, column);
            let lba = start + rack.plan.table_sectors + rack.layout.column_lba(row, SectorCount(0)).0;
            rack.media[drive].open(&world).discard(Lba(lba), PAGE_SECTORS).await.expect("it forgets");
            shard.io.write_batch(batch([(0, 77)]), &NoLog).await.expect("a batch");
            lose(&rack, &shard, set, column);
            let (result, read) = shard.io.read(SLOT, 0, world.buffer(8)).await;
            assert_eq!(result, Ok(()), "{shape:?}");
            assert_eq!(read.as_slice(), page(PayloadWidth::REAL, 77).as_slice(), "{shape:?}");
        });
    }
}

#[test]
fn a_slot_that_has_all_its_columns_again_has_not_changed_for_the_next_drive() {
    let rack = Rack::new(Shape(RaidLevel::Raid1, 3, SMALL), 6, PayloadWidth::REAL);
    run(1, |world| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        shard.io.allocate(SLOT);
        shard.io.write_batch(batch([(0, 1)]), &NoLog).await.expect("a batch");
        let set = shard.io.slots().place(SLOT.slot).set;
        // How many rows a drive needs that returns with what it held when it was lost.
        let sets = shard.io.raid().sets();
        let return_column = async |column: Column, place: ChunkletAddress| {
            sets.start_rebuild(set, column, place);
            let rebuilt = shard.io.rebuild_slot(SLOT, column, Some(place)).await.expect("a rebuild");
            let rows = rebuilt.rows_written();
            assert!(rebuilt.declare_present());
            sets.finish_rebuild(set, column);
            rows
        };
        lose(&rack, &shard, set, Column(0));
        shard.io.write_batch(batch([(0, 2)]), &NoLog).await.expect("a batch");
        let spare = rack.take_spare(set, Column(0));
        assert_ne!(return_column(Column(0), spare).await, 0, "it was written without its first column");
        shard.io.write_batch(batch([(0, 3)]), &NoLog).await.expect("a batch");
        // The first drive stays a lost member for good, and no longer counts.
        lose(&rack, &shard, set, Column(1));
        let other = ChunkletAddress { index: spare.index, ..sets.chunklet(set, Column(2)) };
        assert_eq!(return_column(Column(1), other).await, 0, "all that was written was on all columns");
    });
}

/// A rebuild that had a column move on to another drive under way went on there as if that drive held it.
#[test]
fn what_returns_to_one_chunklet_is_not_believed_to_be_in_another() {
    let rack = Rack::new(Shape(RaidLevel::Raid1, 2, SMALL), 7, PayloadWidth::REAL);
    run(1, |world| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        shard.io.allocate(SLOT);
        shard.io.write_batch(batch([(0, 1)]), &NoLog).await.expect("a batch");
        let set = shard.io.slots().place(SLOT.slot).set;
        let before = shard.io.raid().sets().chunklet(set, Column(0));
        lose(&rack, &shard, set, Column(0));
        shard.io.raid().sets().start_rebuild(set, Column(0), rack.take_spare(set, Column(0)));
        let rebuilt = shard.io.rebuild_slot(SLOT, Column(0), Some(before)).await.expect("a rebuild");
        assert_ne!(rebuilt.rows_written(), 0);
    });
}
