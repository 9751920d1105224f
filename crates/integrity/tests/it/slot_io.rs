//! Slots against a model of pages: every level, healthy and without drives, with rot and lies of one drive.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use crate::bench::{Model, NoLog, Rack, SHAPES, Shard, TIGHT, content, is_noticed};
use tier0_drive::{Fault, FaultPlan};
use tier0_integrity::table::TablePlacement;
use tier0_integrity::{LogPlace, PageContent, SlotIoOptions, SlotWrite, TableFault};
use tier0_raid::layout::Column;
use tier0_raid::set::SetIndex;
use tier0_units::{ExtentId, Lba, PAGE_SECTORS, SlotRef};
use tier0_world::{IoError, PayloadWidth, PlantedBug, Random, VirtualRuntime, World};

const SEEDS: u64 = 3;

/// Runs a test on every shape under some seeds, each in a world of its own.
fn on_each_shape<F: Future<Output = ()> + 'static>(test: impl Fn(Rack, World, Random) -> F) {
    for (n, shape) in SHAPES.into_iter().enumerate() {
        for seed in (0..SEEDS).map(|seed| seed << 8 | n as u64) {
            println!("{shape:?}, seed {seed}");
            let rack = Rack::new(shape, seed, PayloadWidth::REAL);
            let runtime = VirtualRuntime::new(seed, PayloadWidth::REAL);
            let random = runtime.world().random(7);
            runtime.run(test(rack, runtime.world().clone(), random));
        }
    }
}

fn redundant(rack: &Rack) -> bool {
    rack.layout.tolerated_failures() > 0
}

#[test]
fn slots_hold_what_was_written_and_zeros_elsewhere() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, TIGHT);
        let mut model = Model::allocate(&shard, shard.io.slots().count().min(7));
        model.check(&shard).await;
        for _ in 0..25 {
            model.write(&shard, &mut random).await.expect("a batch");
            model.check_some(&shard, &mut random).await;
        }
        model.check(&shard).await;
        assert_eq!(model.scrub(&shard).await, (0, 0), "nothing is wrong");
        assert!(shard.io.counts().pages_verified() > 0);
        assert_eq!(shard.io.counts().unrecoverable(), 0);
        // Another process finds the tables.
        let shard = model.reopen(&rack, &world, SlotIoOptions::default());
        model.check(&shard).await;
        assert_eq!(shard.io.counts().repaired_tables(), 0);
    });
}

#[test]
fn zero_pages_are_read_without_a_drive_and_a_slot_of_zeros_says_so() {
    on_each_shape(|rack, world, _| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        let slot = SlotRef { slot: 0, allocation: 9 };
        shard.io.allocate(slot);
        let extent = ExtentId { volume: 1, index: 0 };
        let write = |mark| {
            let pages = vec![(3, content(PayloadWidth::REAL, mark, LogPlace { position: 1, page: 0 }))];
            vec![SlotWrite { extent, slot, pages }]
        };
        let before = rack.switch.changes();
        let zeros = shard.io.write_batch(write(0), &NoLog).await.expect("a batch");
        assert!(zeros[0].all_zero && rack.switch.changes() == before, "zeros over zeros write nothing");
        assert!(!shard.io.write_batch(write(5), &NoLog).await.expect("a batch")[0].all_zero);
        assert!(shard.io.write_batch(write(0), &NoLog).await.expect("a batch")[0].all_zero);
        rack.media.iter().for_each(|medium| medium.disconnect());
        let buf = world.buffer(8 * shard.io.pages_per_slot(0));
        let (result, buf) = shard.io.read(slot, 0, buf).await;
        assert!(result.is_ok() && buf.as_slice().iter().all(|byte| *byte == 0), "zeros need no drive");
    });
}

#[test]
fn lost_drives_cost_nothing_that_the_level_survives() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, TIGHT);
        let mut model = Model::allocate(&shard, shard.io.slots().count().min(6));
        for _ in 0..8 {
            model.write(&shard, &mut random).await.expect("a batch");
        }
        while let Some(drive) = rack.draw_loss(&mut random) {
            rack.media[drive].disconnect();
            model.check(&shard).await;
            for _ in 0..8 {
                model.write(&shard, &mut random).await.expect("a batch");
                model.check_some(&shard, &mut random).await;
            }
            rack.lost.borrow_mut().insert(drive);
        }
        model.check(&model.reopen(&rack, &world, TIGHT)).await;
    });
}

#[test]
fn rot_on_one_drive_is_found_and_repaired() {
    rot_on_one_drive();
}

#[test]
fn a_checksum_that_is_not_checked_is_noticed() {
    assert!(is_noticed(PlantedBug::IgnoreChecksum, rot_on_one_drive));
}

fn rot_on_one_drive() {
    on_each_shape(|rack, world, mut random| async move {
        if !redundant(&rack) {
            return;
        }
        let shard = rack.open(&world, TIGHT);
        let mut model = Model::allocate(&shard, shard.io.slots().count().min(6));
        for _ in 0..6 {
            model.write(&shard, &mut random).await.expect("a batch");
        }
        let mut repaired = 0;
        for round in 0..4 {
            let drive = random.below(rack.media.len() as u64) as usize;
            for sector in 0..rack.media[drive].options().info.sectors.0 {
                if random.chance(0.2) {
                    rack.media[drive].scramble(Lba(sector));
                }
            }
            // Sometimes read first, sometimes written first: nothing wrong may flow into parity.
            if round % 2 == 0 {
                let reader = model.reopen(&rack, &world, TIGHT);
                model.check(&reader).await;
                repaired += repairs(&reader);
            }
            model.write(&shard, &mut random).await.expect("a batch");
            model.check(&shard).await;
            model.scrub(&shard).await;
            assert_eq!(model.scrub(&shard).await, (0, 0), "a second scrub finds nothing");
        }
        repaired += repairs(&shard);
        assert!(repaired > 0, "a fifth of a drive was scrambled four times");
        assert_eq!(shard.io.counts().unrecoverable(), 0);
        assert!(shard.io.counts().unrecoverable_pages().is_empty());
        lose_any_drive(&rack, &world, &model, &mut random).await;
    });
}

/// What was found wrong and made right.
fn repairs(shard: &Shard) -> u64 {
    let counts = shard.io.counts();
    let data = counts.repaired_by_copy() + counts.repaired_by_parity();
    data + counts.repaired_parity() + counts.repaired_tables()
}

/// All redundancy is whole again: everything can be read without any one drive.
async fn lose_any_drive(rack: &Rack, world: &World, model: &Model, random: &mut Random) {
    if let Some(drive) = rack.draw_loss(random) {
        rack.lost.borrow_mut().insert(drive);
        model.check(&model.reopen(rack, world, TIGHT)).await;
    }
}

#[test]
fn lies_of_one_drive_are_found_and_repaired() {
    for fault in [Fault::LostWrite, Fault::TornWrite, Fault::MisdirectedWrite, Fault::BitRot] {
        on_each_shape(move |rack, world, mut random| async move {
            if !redundant(&rack) {
                return;
            }
            let shard = rack.open(&world, TIGHT);
            let mut model = Model::allocate(&shard, shard.io.slots().count().min(6));
            for _ in 0..4 {
                model.write(&shard, &mut random).await.expect("a batch");
            }
            let liar = random.below(rack.media.len() as u64) as usize;
            rack.media[liar].inject(FaultPlan::share(fault, 0.3));
            for _ in 0..6 {
                model.write(&shard, &mut random).await.expect("a batch");
                model.check_some(&shard, &mut random).await;
            }
            rack.media[liar].clear_plans();
            model.check(&shard).await;
            model.scrub(&shard).await;
            assert_eq!(model.scrub(&shard).await, (0, 0), "a second scrub finds nothing");
            assert_eq!(shard.io.counts().unrecoverable(), 0, "{fault:?}");
            lose_any_drive(&rack, &world, &model, &mut random).await;
        });
    }
}

#[test]
fn what_cannot_be_repaired_is_an_error_until_it_is_written_anew() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        let mut model = Model::allocate(&shard, 1);
        let slot = model.slots[0].0;
        while model.slots[0].1[2] == 0 {
            model.write(&shard, &mut random).await.expect("a batch");
        }
        // Behind the tables everything rots, on every drive.
        for column in (0..rack.layout.columns() as u8).map(Column) {
            let (drive, start) = rack.column_start(SetIndex(0), column);
            for sector in start + rack.plan.table_sectors..start + rack.chunklet_sectors {
                rack.media[drive].scramble(Lba(sector));
            }
        }
        let (result, _) = shard.io.read(slot, 16, world.buffer(8)).await;
        assert_eq!(result, Err(IoError::DataLost));
        let lost = shard.io.counts().unrecoverable_pages();
        assert!(lost.iter().any(|page| (page.slot, page.page) == (0, 2)), "{lost:?}");
        let pages = vec![(2, content(PayloadWidth::REAL, 77, LogPlace { position: 0, page: 0 }))];
        let write = SlotWrite { extent: ExtentId { volume: 0, index: 0 }, slot, pages };
        shard.io.write_batch(vec![write], &NoLog).await.expect("a write over what is lost succeeds");
        model.slots[0].1[2] = 77;
        model.check_range(&shard, 0, 16, 8).await;
        assert!(shard.io.counts().unrecoverable_pages().iter().all(|page| page.page != 2));
    });
}

/// Pages stayed on the list of lost ones when a scrub had found them right again.
#[test]
fn a_scrub_takes_what_is_right_again_off_the_list_of_lost_pages() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        let model = Model::stored(&shard, &mut random).await;
        shard.io.raid().flush().await.expect("a flush");
        let slot = model.slots[0].0;
        let images: Vec<_> = rack.media.iter().map(|medium| medium.image()).collect();
        for column in (0..rack.layout.columns() as u8).map(Column) {
            let (drive, start) = rack.column_start(SetIndex(0), column);
            for sector in start + rack.plan.table_sectors..start + rack.chunklet_sectors {
                rack.media[drive].scramble(Lba(sector));
            }
        }
        let of_slot = |shard: &Shard| {
            let lost = shard.io.counts().unrecoverable_pages();
            lost.into_iter().filter(|page| page.slot == slot.slot).map(|page| page.page).collect::<Vec<u32>>()
        };
        let mut found = shard.io.scrub_slot(slot).await.expect("a scrub");
        found.lost_pages.sort_unstable();
        assert!(!found.lost_pages.is_empty());
        assert_eq!(of_slot(&shard), found.lost_pages);
        rack.media.iter().zip(&images).for_each(|(medium, image)| medium.restore(image));
        let found = shard.io.scrub_slot(slot).await.expect("a scrub");
        assert_eq!(found.lost_pages, [0; 0]);
        assert_eq!(of_slot(&shard), [0; 0]);
        model.check(&shard).await;
    });
}

/// A slot whose table was lost was told of nowhere but in the log: the pool seemed whole.
#[test]
fn a_lost_table_counts_as_the_loss_of_all_its_pages_once() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, TIGHT);
        let model = Model::stored(&shard, &mut random).await;
        shard.io.raid().flush().await.expect("a flush");
        scramble_table(&rack, 0, |_| true);
        let shard = rack.open(&world, TIGHT);
        let (slot, all) = (model.slots[0].0, u64::from(shard.io.pages_per_slot(0)));
        for _ in 0..2 {
            shard.io.scrub_slot(slot).await.expect_err("nothing vouches for any page");
            assert_eq!(shard.io.counts().unrecoverable(), all);
        }
    });
}

/// A write to such a slot could not be destaged, and held up the log of all others until the extent was discarded.
#[test]
fn what_is_written_to_a_slot_whose_table_is_lost_is_right_and_the_rest_stays_lost() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, TIGHT);
        let model = Model::stored(&shard, &mut random).await;
        shard.io.raid().flush().await.expect("a flush");
        let slot = model.slots[0].0;
        scramble_table(&rack, 0, |_| true);
        let new = |page| content(world.width(), 1_000 + u64::from(page), LogPlace { position: 0, page });
        for last in 0..2 {
            let shard = rack.open(&world, TIGHT);
            let extent = ExtentId { volume: 0, index: 0 };
            let batch = vec![SlotWrite { extent, slot, pages: vec![(last, new(last))] }];
            shard.io.write_batch(batch, &NoLog).await.expect("a batch");
            for page in 0..shard.io.pages_per_slot(0) {
                let (result, buf) =
                    shard.io.read(slot, u64::from(page) * PAGE_SECTORS, world.buffer(8)).await;
                if page > last {
                    assert_eq!(result, Err(IoError::DataLost), "page {page}");
                    continue;
                }
                assert_eq!(result, Ok(()), "page {page}");
                let PageContent::Data { buf: written, .. } = new(page) else { panic!("no zeros") };
                assert_eq!(buf.as_slice(), written.as_slice());
            }
            let found = shard.io.scrub_slot(slot).await.expect("there is a table");
            assert_eq!(found.lost_pages.len() as u32, shard.io.pages_per_slot(0) - 1 - last);
        }
    });
}

/// Errors of reads that passed made a write begin the table anew, and the other pages of the slot were lost for good.
#[test]
fn a_table_that_cannot_be_read_for_a_while_is_not_begun_anew() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, TIGHT);
        let model = Model::stored(&shard, &mut random).await;
        shard.io.raid().flush().await.expect("a flush");
        let slot = model.slots[0].0;
        let shard = rack.open(&world, TIGHT);
        rack.media.iter().for_each(|medium| medium.inject(FaultPlan::share(Fault::ReadError, 1.0)));
        let page = (0, content(world.width(), 1_000, LogPlace { position: 0, page: 0 }));
        let batch = vec![SlotWrite { extent: ExtentId { volume: 0, index: 0 }, slot, pages: vec![page] }];
        shard.io.write_batch(batch, &NoLog).await.expect_err("nobody knows what the slot holds");
        rack.media.iter().for_each(|medium| medium.clear_plans());
        model.check(&shard).await;
    });
}

/// Errors at the newest generation of all copies made an older one count: what was written first after it read as zeros,
/// and the next write of the slot made that last.
#[test]
fn an_older_table_does_not_count_while_a_newer_one_may_be_unreadable() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, TIGHT);
        let model = Model::stored(&shard, &mut random).await;
        shard.io.raid().flush().await.expect("a flush");
        let slot = model.slots[0].0;
        let placement = TablePlacement::new(&rack.layout, rack.plan.pages_per_slot);
        for generation in 0..2 {
            placement.copies(0).for_each(|copy| {
                let (drive, start) = rack.column_start(SetIndex(0), copy.column);
                let first = start + copy.lba.0 + placement.generation_offset(generation);
                let sectors = first..first + placement.block_sectors();
                rack.media[drive].inject(FaultPlan::always_in(Fault::ReadError, sectors));
            });
            let shard = rack.open(&world, TIGHT);
            for first in
                (0..u64::from(rack.plan.pages_per_slot) * PAGE_SECTORS).step_by(PAGE_SECTORS as usize)
            {
                let (result, buf) = shard.io.read(slot, first, world.buffer(PAGE_SECTORS as u32)).await;
                let right = model.bytes(world.width(), 0, first, PAGE_SECTORS);
                assert!(
                    result == Err(IoError::DataLost) || buf.as_slice() == right,
                    "sector {first}: {result:?}, and the content is another one"
                );
            }
            rack.media.iter().for_each(|medium| medium.clear_plans());
            model.check(&shard).await;
        }
    });
}

/// Scrambles the copies of a slot's table on these columns.
fn scramble_table(rack: &Rack, slot_in_set: u64, columns: impl Fn(usize) -> bool) {
    let placement = TablePlacement::new(&rack.layout, rack.plan.pages_per_slot);
    for (n, copy) in placement.copies(slot_in_set).enumerate().filter(|(n, _)| columns(*n)) {
        let (drive, start) = rack.column_start(SetIndex(0), copy.column);
        let first = start + copy.lba.0;
        (first..first + placement.place_sectors()).for_each(|sector| {
            assert!(rack.media[drive].scramble(Lba(sector)), "copy {n} is stable");
        });
    }
}

#[test]
fn a_table_survives_in_any_one_copy_and_its_loss_is_an_error() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, TIGHT);
        let model = Model::stored(&shard, &mut random).await;
        let copies = TablePlacement::new(&rack.layout, rack.plan.pages_per_slot).copies_per_slot();
        for kept in 0..copies {
            let shard = rack.open(&world, TIGHT);
            let told = Rc::new(RefCell::new(Vec::new()));
            let listener = told.clone();
            shard.io.counts().tell_tables(move |event| listener.borrow_mut().push(*event));
            scramble_table(&rack, 0, |copy| copy != kept);
            model.check(&shard).await;
            assert_eq!(shard.io.counts().repaired_tables(), copies as u64 - 1);
            let told: Vec<(usize, TableFault)> =
                told.borrow().iter().map(|event| (event.member, event.fault)).collect();
            let placement = TablePlacement::new(&rack.layout, rack.plan.pages_per_slot);
            let wrong = placement.copies(0).enumerate().filter(|(copy, _)| *copy != kept);
            let wrong: Vec<(usize, TableFault)> = wrong
                .map(|(_, copy)| (rack.column_start(SetIndex(0), copy.column).0, TableFault::Damaged))
                .collect();
            assert_eq!(told, wrong, "who has a wrong copy is told");
            shard.io.raid().flush().await.expect("a flush");
        }
        scramble_table(&rack, 0, |_| true);
        let shard = rack.open(&world, TIGHT);
        let (result, _) = shard.io.read(model.slots[0].0, 0, world.buffer(8)).await;
        assert_eq!(result, Err(IoError::DataLost));
        // The next tenant of the slot does not care.
        let next = SlotRef { slot: 0, allocation: 99 };
        shard.io.allocate(next);
        let (result, buf) = shard.io.read(next, 0, world.buffer(8)).await;
        assert!(result.is_ok() && buf.as_slice().iter().all(|byte| *byte == 0));
    });
}

#[test]
fn a_former_tenants_table_is_never_believed() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, TIGHT);
        Model::stored(&shard, &mut random).await;
        let other = SlotRef { slot: 0, allocation: 1_000 };
        let shard = rack.open(&world, TIGHT);
        let (result, _) = shard.io.read(other, 0, world.buffer(8)).await;
        assert_eq!(result, Err(IoError::DataLost), "a table that must exist is not made up");
    });
}

#[test]
fn tables_that_nobody_uses_give_way() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        let mut model = Model::allocate(&shard, shard.io.slots().count());
        while model.mapped.len() < model.slots.len() {
            model.write(&shard, &mut random).await.expect("a batch");
        }
        let all = shard.io.table_memory_bytes();
        let limit = all / 2;
        let tight = SlotIoOptions { memory_bytes: limit, rows_in_flight: 8, ..SlotIoOptions::default() };
        let shard = rack.open(&world, tight);
        for slot in 0..model.slots.len() {
            model.check_range(&shard, slot, 0, 8).await;
            assert!(shard.io.table_memory_bytes() <= limit, "slot {slot}: more than {limit} of {all} bytes");
        }
        assert!(shard.io.table_memory_bytes() > 0, "not everything is forgotten");
        let before = shard.io.table_lookups();
        assert!(before.read > 0 && before.asked >= before.read, "{before:?}");
        // Dirty pages take it all but for a fifth, and give it back.
        shard.io.leave_memory(limit);
        let least = (limit / 5).max(all / model.slots.len());
        assert!(shard.io.table_memory_bytes() <= least, "{} of {limit}", shard.io.table_memory_bytes());
        shard.io.leave_memory(0);
        model.check(&shard).await;
        assert!(shard.io.table_memory_bytes() > least || all <= 2 * least);
    });
}

#[test]
fn many_readers_share_one_load_of_a_table() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, SlotIoOptions::default());
        let mut model = Model::allocate(&shard, 1);
        while model.mapped.is_empty() {
            model.write(&shard, &mut random).await.expect("a batch");
        }
        let shard = rack.open(&world, SlotIoOptions::default());
        let slot = model.slots[0].0;
        let before = world.pending_count();
        let readers: Vec<_> = (0..20)
            .map(|_| {
                let shard = shard.clone();
                world.spawn(async move { shard.io.read(slot, 0, shard.world.buffer(8)).await.0 })
            })
            .collect();
        world.sleep(tier0_units::Nanos(1)).await;
        let copies = TablePlacement::new(&rack.layout, rack.plan.pages_per_slot).copies_per_slot();
        // One read per copy and this sleeper's slot, which is free again.
        let under_way = world.pending_count() - before;
        assert!(under_way <= copies, "{under_way} reads for {copies} copies");
        for reader in readers {
            assert_eq!(reader.await, Ok(()));
        }
    });
}

#[test]
fn batches_with_a_slot_in_common_go_one_after_the_other() {
    on_each_shape(|rack, world, mut random| async move {
        let shard = rack.open(&world, TIGHT);
        let mut model = Model::allocate(&shard, 2);
        // Each writer has its own pages, in rows that all writers share.
        const WRITERS: u32 = 4;
        let slots: Vec<SlotRef> = model.slots.iter().map(|(slot, _)| *slot).collect();
        let mut tasks = Vec::new();
        for writer in 0..WRITERS {
            let batches: Vec<Vec<SlotWrite>> = (0..4)
                .map(|_| {
                    let mut write = |slot: &SlotRef| {
                        let own = (0..model.pages).filter(|page| page % WRITERS == writer);
                        let pages = own.map(|page| {
                            let mark = random.bits() | 1;
                            model.slots[slot.slot as usize].1[page as usize] = mark;
                            (page, content(PayloadWidth::REAL, mark, LogPlace { position: 0, page }))
                        });
                        let extent = ExtentId { volume: 0, index: slot.slot as u32 };
                        SlotWrite { extent, slot: *slot, pages: pages.collect() }
                    };
                    slots.iter().map(&mut write).collect()
                })
                .collect();
            let shard = shard.clone();
            tasks.push(world.spawn(async move {
                for batch in batches {
                    shard.io.write_batch(batch, &NoLog).await.expect("a batch");
                }
            }));
        }
        for task in tasks {
            task.await;
        }
        model.mapped.extend([0, 1]);
        model.check(&shard).await;
        assert_eq!(model.scrub(&shard).await, (0, 0));
        model.check(&model.reopen(&rack, &world, TIGHT)).await;
    });
}

#[test]
fn a_lost_column_is_rebuilt_with_its_tables() {
    on_each_shape(|rack, world, mut random| async move {
        if !redundant(&rack) {
            return;
        }
        let shard = rack.open(&world, TIGHT);
        let mut model = Model::allocate(&shard, shard.io.slots().count());
        for _ in 0..4 {
            model.write(&shard, &mut random).await.expect("a batch");
        }
        let lost = random.below(rack.media.len() as u64) as usize;
        rack.media[lost].disconnect();
        model.check(&shard).await;
        model.write(&shard, &mut random).await.expect("a batch");
        model.rebuild(&rack, &shard, lost, &mut random).await;
        model.check(&shard).await;
        assert_eq!(model.scrub(&shard).await, (0, 0), "all is as if nothing had been lost");
        shard.io.raid().flush().await.expect("a flush");
        lose_any_drive(&rack, &world, &model, &mut random).await;
    });
}

#[test]
fn without_payload_the_same_commands_go_to_the_drives() {
    for shape in SHAPES {
        let changes = |width: PayloadWidth| {
            let rack = Rack::new(shape, 3, width);
            let runtime = VirtualRuntime::new(3, width);
            let world = runtime.world().clone();
            let switch = rack.switch.clone();
            runtime.run(async move {
                let shard: Shard = rack.open(&world, TIGHT);
                let mut model = Model::allocate(&shard, 4);
                let mut random = world.random(1);
                for _ in 0..10 {
                    model.write(&shard, &mut random).await.expect("a batch");
                    let (result, _) = shard.io.read(model.slots[0].0, 3, world.buffer(20)).await;
                    assert_eq!(result, Ok(()));
                }
            });
            switch.changes()
        };
        assert_eq!(changes(PayloadWidth::NONE), changes(PayloadWidth::REAL), "{shape:?}");
    }
}
