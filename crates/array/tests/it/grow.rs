//! Pools that grow while they serve, and power cuts in between.

use crate::rig::{
    Drives, GROW, MIB, create_volume, done, expect, expect_filled, pool, refused, volume, write,
};
use tier0_api::{AdminRequest, DriveState, Health};
use tier0_array::engine::Engine;
use tier0_units::{ByteCount, Nanos};
use tier0_world::World;

async fn add(world: &World, engine: &Engine, drives: &Drives, number: usize) {
    let drive = drives.media[number].open(world);
    engine.add_drive(0, &format!("d{number}"), drive).await.expect("it joins");
}

/// Fills a new thin volume to the last slot of the pool, a MiB after the other, each with its own value.
async fn fill(world: &World, engine: &Engine, name: &str) -> u64 {
    done(engine, create_volume(name, ByteCount::mib(400), true)).await;
    crate::rig::fill(world, engine, name).await
}

#[test]
fn a_full_pool_grows_by_what_joins_it_and_everything_is_found_again() {
    for (raid, width, shards) in
        [("raid1", 2, 1), ("raid10", 4, 2), ("raid5", 4, 3), ("raid6", 5, 2), ("raid0", 2, 2)]
    {
        let mut array = Drives::founded(raid, width, width, shards, 41);
        (0..width).for_each(|_| drop(array.plug_in()));
        let (early, late) = array.life(1, move |world, engine, drives| async move {
            let early = fill(&world, &engine, "early").await;
            let before = pool(&engine).await;
            for number in width..2 * width {
                add(&world, &engine, &drives, number).await;
            }
            let text = done(&engine, GROW).await;
            assert!(text.contains("has grown"), "{text}");
            let after = pool(&engine).await;
            // The new drives hold no log: they give a little more than the old ones.
            assert!(after.space.usable_bytes >= 2 * before.space.usable_bytes, "{raid}: {text}");
            assert_eq!(after.health, Health::Healthy, "{raid}: {:?}", after.problems);
            assert!(after.drives.iter().all(|drive| drive.chunklets_used > 0));
            settled(&world, &engine).await;
            let late = fill(&world, &engine, "late").await;
            assert!(late >= early, "{raid}: {late} extents after {early}");
            expect_filled(&world, &engine, "early", early).await;
            assert!(refused(&engine, GROW).await.contains("drive add"));
            (early, late)
        });
        array.life(2, move |world, engine, drives| async move {
            expect_filled(&world, &engine, "early", early).await;
            expect_filled(&world, &engine, "late", late).await;
            engine.drain().await.expect("destaged");
            if raid != "raid0" {
                // A drive of the new sets is as dispensable as one of the old.
                drives.media[width].unplug();
                expect_filled(&world, &engine, "late", late).await;
                expect_filled(&world, &engine, "early", early).await;
            }
        });
    }
}

#[test]
fn a_set_takes_chunklets_of_as_many_drives_as_it_has_columns() {
    let mut array = Drives::founded("raid5", 3, 3, 2, 42);
    (0..3).for_each(|_| drop(array.plug_in()));
    array.life(1, |world, engine, drives| async move {
        let before = pool(&engine).await.sets.count;
        assert!(refused(&engine, GROW).await.contains("tier0 drive add"));
        for number in 3..6 {
            add(&world, &engine, &drives, number).await;
        }
        done(&engine, GROW).await;
        assert!(pool(&engine).await.sets.count > before);
    });
}

/// A drive was added to a pool that was full, and it had to be told that two or three more were needed.
#[test]
fn a_single_drive_more_becomes_space_and_its_share_of_the_old_sets_moves_to_it() {
    for (raid, width, shards) in [("raid1", 2, 1), ("raid5", 3, 2), ("raid6", 5, 2), ("raid0", 2, 2)] {
        let mut array = Drives::founded(raid, width, width, shards, 44);
        array.plug_in();
        let (early, late) = array.life(1, move |world, engine, drives| async move {
            let early = fill(&world, &engine, "early").await;
            let before = pool(&engine).await;
            add(&world, &engine, &drives, width).await;
            let text = done(&engine, GROW).await;
            assert!(text.contains("to other drives first"), "{raid}: {text}");
            moved(&world, &engine).await;
            let after = pool(&engine).await;
            // The new drive's chunklets, less what does not make a set.
            let wanted = (before.sets.count * (width as u64 + 1)).div_ceil(width as u64);
            assert!(after.sets.count >= wanted, "{raid}: {} sets of {}", after.sets.count, before.sets.count);
            assert_eq!(after.sets.degraded, 0, "{raid}: {:?}", after.problems);
            settled(&world, &engine).await;
            let late = fill(&world, &engine, "late").await;
            assert!(late > 0, "{raid}: there is room");
            expect_filled(&world, &engine, "early", early).await;
            assert!(refused(&engine, GROW).await.contains("drive add"));
            (early, late)
        });
        array.life(2, move |world, engine, drives| async move {
            expect_filled(&world, &engine, "early", early).await;
            expect_filled(&world, &engine, "late", late).await;
            engine.drain().await.expect("destaged");
            if raid != "raid0" {
                drives.media[width].unplug();
                expect_filled(&world, &engine, "late", late).await;
                expect_filled(&world, &engine, "early", early).await;
            }
        });
    }
}

#[test]
fn growing_that_is_stopped_or_cut_off_leaves_what_has_moved_and_can_be_asked_for_again() {
    for moment in 0..12u64 {
        let mut array = Drives::founded("raid5", 3, 3, 2, 300 + moment);
        array.plug_in();
        let early = array.life(moment, move |world, engine, drives| async move {
            let early = fill(&world, &engine, "early").await;
            add(&world, &engine, &drives, 3).await;
            done(&engine, GROW).await;
            world.sleep(Nanos::from_millis(moment * moment * 20)).await;
            if moment % 3 == 0 {
                engine.administer(AdminRequest::PoolGrow { pool: None, stop: true }).await;
            }
            early
        });
        array.life(1000 + moment, move |world, engine, _| async move {
            expect_filled(&world, &engine, "early", early).await;
            moved(&world, &engine).await;
            // It may have grown before the cut.
            engine.administer(GROW).await;
            moved(&world, &engine).await;
            settled(&world, &engine).await;
            let late = fill(&world, &engine, "late").await;
            assert!(late > 0, "moment {moment}");
            assert_eq!(pool(&engine).await.sets.degraded, 0, "moment {moment}");
            expect_filled(&world, &engine, "early", early).await;
            expect_filled(&world, &engine, "late", late).await;
        });
    }
}

/// A drive that took the place of a lost one stayed empty, and the others had no spare chunklets any more.
#[test]
fn spares_return_when_a_drive_joins() {
    let mut array = Drives::with_spares("raid5", 5, 1, 2, 45);
    array.plug_in();
    array.life(1, |world, engine, drives| async move {
        let early = fill(&world, &engine, "early").await;
        let kept = least_free(&engine).await;
        assert!(kept > 0);
        drives.media[1].unplug();
        expect_filled(&world, &engine, "early", early).await;
        done(&engine, AdminRequest::DriveRemove { drive: "d1".into(), force: false, stop: false }).await;
        moved(&world, &engine).await;
        assert!(least_free(&engine).await < kept, "the rebuild took spares");
        add(&world, &engine, &drives, 5).await;
        moved(&world, &engine).await;
        assert!(least_free(&engine).await >= kept, "{:?}", pool(&engine).await.drives);
        expect_filled(&world, &engine, "early", early).await;
    });
}

/// The free chunklets of the serving drive that has the fewest.
async fn least_free(engine: &Engine) -> u64 {
    let status = pool(engine).await;
    let active = status.drives.iter().filter(|drive| drive.state == DriveState::Active);
    active.map(|drive| drive.chunklets_free).min().expect("some serve")
}

/// Waits until nothing is rebuilt and no column moves.
async fn moved(world: &World, engine: &Engine) {
    for _ in 0..3600 {
        if pool(engine).await.rebuild.is_none() {
            return;
        }
        world.sleep(Nanos::from_secs(1)).await;
    }
    panic!("columns move for ever: {:?}", pool(engine).await.rebuild);
}

#[test]
fn what_the_new_sets_leave_over_is_spare_space() {
    // Sets of two on two drives; three more drives: sets over all pairs of them, a chunklet may be left.
    let mut array = Drives::founded("raid1", 2, 2, 2, 43);
    (0..3).for_each(|_| drop(array.plug_in()));
    array.life(1, |world, engine, drives| async move {
        for number in 2..5 {
            add(&world, &engine, &drives, number).await;
        }
        done(&engine, GROW).await;
        let lun0 = volume(&engine, "lun0");
        for extent in 0..6 {
            write(&world, &lun0, extent * MIB, 64, 7 + extent as u8).await;
        }
        engine.drain().await.expect("destaged");
        let free: u64 = pool(&engine).await.drives.iter().map(|drive| drive.chunklets_free).sum();
        assert!(free <= 2, "{free} chunklets are left over");
    });
    array.life(2, |world, engine, _| async move {
        let lun0 = volume(&engine, "lun0");
        for extent in 0..6 {
            expect(&world, &lun0, extent * MIB, 64, 7 + extent as u8).await;
        }
    });
}

/// A power cut at many moments between the first new drive and the first data on new sets: the pool is as large as it
/// was or as large as it is to be, and has all that was acknowledged.
#[test]
fn a_power_cut_while_it_grows_loses_nothing() {
    for moment in 0..40u64 {
        let mut array = Drives::founded("raid5", 3, 3, 2, 100 + moment);
        (0..3).for_each(|_| drop(array.plug_in()));
        let early = array.life(moment, move |world, engine, drives| async move {
            let early = fill(&world, &engine, "early").await;
            let growing = engine.clone();
            let (task_world, task_drives) = (world.clone(), drives.clone());
            let task = async move {
                for number in 3..6 {
                    add(&task_world, &growing, &task_drives, number).await;
                }
                done(&growing, GROW).await;
                let late = volume(&growing, "lun0");
                for extent in 0..6 {
                    write(&task_world, &late, extent * MIB, 64, 99).await;
                }
                growing.drain().await.expect("destaged");
            };
            world.spawn(task).detach();
            world.sleep(Nanos(moment * moment * 40_000)).await;
            early
        });
        array.life(1000 + moment, move |world, engine, drives| async move {
            expect_filled(&world, &engine, "early", early).await;
            let there = pool(&engine).await.drives.len();
            for number in there..6 {
                add(&world, &engine, &drives, number).await;
            }
            let before = pool(&engine).await.space.usable_bytes;
            // It may have grown before the cut.
            engine.administer(GROW).await;
            settled(&world, &engine).await;
            let after = pool(&engine).await;
            assert!(after.space.usable_bytes >= before);
            assert_eq!(after.sets.degraded, 0, "moment {moment}: {:?}", after.problems);
            let late = fill(&world, &engine, "late").await;
            assert!(late + 6 >= early, "moment {moment}: {late} extents after {early}");
            expect_filled(&world, &engine, "early", early).await;
            expect_filled(&world, &engine, "late", late).await;
        });
    }
}

const RESTRIPE: AdminRequest = AdminRequest::PoolRestripe { pool: None, rate: None, stop: false };

/// Waits until nothing moves any more.
async fn settled(world: &World, engine: &Engine) {
    for _ in 0..3600 {
        if pool(engine).await.restripe.is_none() {
            return;
        }
        world.sleep(Nanos::from_secs(1)).await;
    }
    panic!("restriping does not end: {:?}", pool(engine).await.restripe);
}

#[test]
fn after_growing_all_sets_hold_the_same_and_writers_lose_nothing() {
    for (raid, width, shards) in [("raid1", 2, 1), ("raid5", 4, 3), ("raid6", 5, 2)] {
        let mut array = Drives::founded(raid, width, width, shards, 51);
        (0..width).for_each(|_| drop(array.plug_in()));
        let early = array.life(1, move |world, engine, drives| async move {
            let early = fill(&world, &engine, "early").await;
            for number in width..2 * width {
                add(&world, &engine, &drives, number).await;
            }
            done(&engine, GROW).await;
            // A host writes all the while: to pages that are copied, and to pages that are not there yet.
            let filled = volume(&engine, "early");
            for round in 0..6u64 {
                for extent in 0..early {
                    write(&world, &filled, extent * MIB + 64 + round * 8, 8, 100 + round as u8).await;
                    if extent % 3 == 0 {
                        // A part of a page, which has to be read first.
                        write(&world, &filled, extent * MIB + 128 + round, 1, 7 + round as u8).await;
                    }
                    expect(&world, &filled, extent * MIB, 16, 1 + (extent % 250) as u8).await;
                }
            }
            settled(&world, &engine).await;
            // What the log still held then has got its slots since, from the slot reserves of the shards.
            engine.drain().await.expect("destaged");
            done(&engine, RESTRIPE).await;
            settled(&world, &engine).await;
            let spread = engine.set_fill(0);
            let (least, most) = (spread.iter().min().copied(), spread.iter().max().copied());
            assert!(most <= least.map(|least| least + 1), "{raid}: {spread:?}");
            assert_eq!(pool(&engine).await.health, Health::Healthy);
            early
        });
        array.life(2, move |world, engine, drives| async move {
            let check = async |engine: &Engine| {
                expect_filled(&world, engine, "early", early).await;
                let filled = volume(engine, "early");
                for extent in 0..early {
                    for round in 0..6u64 {
                        let at = extent * MIB + 64 + round * 8;
                        expect(&world, &filled, at, 8, 100 + round as u8).await;
                        if extent % 3 == 0 {
                            expect(&world, &filled, extent * MIB + 128 + round, 1, 7 + round as u8).await;
                        }
                    }
                }
            };
            check(&engine).await;
            engine.drain().await.expect("destaged");
            done(&engine, AdminRequest::ScrubStart { pool: None, rate: None }).await;
            loop {
                let scrub = pool(&engine).await.scrub.expect("it has begun");
                if !scrub.running {
                    assert_eq!((scrub.repaired, scrub.unrecoverable), (0, 0), "{raid}");
                    break;
                }
                world.sleep(Nanos::from_secs(1)).await;
            }
            drives.media[0].unplug();
            check(&engine).await;
        });
    }
}

/// A power cut at many moments of restriping: what was acknowledged is there, and the next life ends what was begun.
#[test]
fn a_power_cut_while_extents_move_loses_nothing() {
    for moment in 0..30u64 {
        let mut array = Drives::founded("raid5", 3, 3, 2, 300 + moment);
        (0..3).for_each(|_| drop(array.plug_in()));
        let early = array.life(moment, move |world, engine, drives| async move {
            let early = fill(&world, &engine, "early").await;
            if moment % 2 == 0 {
                engine.drain().await.expect("destaged");
            }
            for number in 3..6 {
                add(&world, &engine, &drives, number).await;
            }
            done(&engine, GROW).await;
            let (writer, clock) = (volume(&engine, "early"), world.clone());
            let work = async move {
                for extent in 0..early {
                    write(&clock, &writer, extent * MIB, 16, 1 + (extent % 250) as u8).await;
                }
            };
            world.spawn(work).detach();
            world.sleep(Nanos(moment * moment * 100_000)).await;
            early
        });
        array.life(2000 + moment, move |world, engine, _| async move {
            expect_filled(&world, &engine, "early", early).await;
            // It goes on by itself, or has nothing left to do but a little.
            settled(&world, &engine).await;
            engine.administer(RESTRIPE).await;
            settled(&world, &engine).await;
            let spread = engine.set_fill(0);
            let (least, most) = (spread.iter().min().copied(), spread.iter().max().copied());
            assert!(most <= least.map(|least| least + 1), "moment {moment}: {spread:?}");
            expect_filled(&world, &engine, "early", early).await;
            engine.drain().await.expect("destaged");
            let after = pool(&engine).await;
            let used: u64 = after.volumes.iter().map(|volume| volume.mapped_bytes).sum();
            assert_eq!(after.space.used_bytes, used, "moment {moment}");
            assert_eq!(after.integrity.unrecoverable, 0);
        });
    }
}
