//! Drives that fail: settling ends, the owner was told before, and reads are misses.

use std::cell::Cell;
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_drive::sim::{HANG, PowerCut};
use tier0_drive::{Fault, FaultDrive, FaultPlan};
use tier0_flash_cache::{FlashOptions, Offer};
use tier0_units::Nanos;
use tier0_world::{PayloadWidth, VirtualRuntime};

use crate::common::{DEVICE, FRONT_PAGES, PAGES, PIECE_SECTORS, Pool, Rig, SLOTS, options};

/// The slot that was filled last, so that it is there.
const LAST: u64 = SLOTS - 1;

/// A filled cache on a drive that can be made to fail.
fn run<F: Future<Output = ()> + 'static>(act: impl FnOnce(Rig, FaultDrive) -> F + 'static) {
    run_with(options(), act);
}

fn run_with<F: Future<Output = ()> + 'static>(
    options: FlashOptions,
    act: impl FnOnce(Rig, FaultDrive) -> F + 'static,
) {
    let pool = Pool::new(1);
    let runtime = VirtualRuntime::new(3, PayloadWidth::REAL);
    let world = runtime.world().clone();
    let faults = FaultDrive::new(pool.medium.open(&world), 5);
    let drive = tier0_drive::DriveHandle::new(faults.clone());
    let rig = Rig::on(&world, &pool, drive, options);
    runtime.run(async move {
        rig.format().await.expect("the drive is good");
        rig.fill().await;
        act(rig, faults).await;
    });
}

/// After the fault a change is settled; the owner was told before that ended, and the cache is off.
async fn is_given_up(rig: &Rig) {
    rig.change(LAST, 0..PAGES);
    let pool = rig.pool.clone();
    rig.settle().await;
    assert_eq!(pool.disowned.get(), 1, "the owner knows before it is settled");
    assert!(!rig.cache.is_on());
    assert_eq!(rig.read(LAST - 1, 0, 1).await, Ok(false));
    assert!(!rig.cache.has(LAST - 1, 0, 8));
    assert_eq!((rig.cache.status().devices, rig.cache.status().devices_off), (0, 1));
    rig.offer(1, 0, 8, Offer::Again);
    rig.change(1, 0..PAGES);
    rig.settle().await;
    assert_eq!(pool.disowned.get(), 1, "it is told once");
}

#[test]
fn a_record_that_fails_ends_the_use_of_a_device() {
    run(|rig, faults| async move {
        faults.inject(FaultPlan::share(Fault::WriteError, 1.0));
        is_given_up(&rig).await;
        faults.clear();
        rig.cache.drop_device(DEVICE);
        rig.format().await.expect("it can be made new");
        assert!(rig.cache.is_on());
        assert_eq!(rig.read(1, 0, 1).await, Ok(false));
        rig.offer(1, 0, 8, Offer::Again);
        rig.rest().await;
        assert_eq!(rig.read(1, 0, 8).await, Ok(true));
    });
}

#[test]
fn a_drive_that_is_gone_ends_the_use_of_a_device() {
    run(|rig, faults| async move {
        faults.set_gone(true);
        assert_eq!(rig.read(1, 0, 1).await, Ok(false));
        is_given_up(&rig).await;
    });
}

#[test]
fn a_drive_that_hangs_holds_up_settling_for_its_patience_only() {
    run(|rig, faults| async move {
        faults.inject(FaultPlan::share(Fault::Latency(HANG), 1.0));
        let begun = rig.world.now();
        is_given_up(&rig).await;
        let took = rig.world.now().saturating_sub(begun);
        assert!(took < Nanos::from_secs(2), "it took {took}");
    });
}

#[test]
fn a_flush_that_fails_ends_the_use_of_a_device() {
    run(|rig, faults| async move {
        faults.inject(FaultPlan::share(Fault::FlushError, 1.0));
        rig.offer(0, 0, 16, Offer::Again);
        rig.change(0, 0..PAGES);
        for slot in 0..SLOTS {
            rig.offer(slot, 0, 16, Offer::Again);
        }
        rig.rest().await;
        is_given_up(&rig).await;
    });
}

#[test]
fn a_map_page_that_fails_ends_the_use_of_a_device() {
    run(|rig, faults| async move {
        // Everything behind the front, where data and maps are; data that fail are not inserted and end nothing.
        let front = 8 + FRONT_PAGES * 8;
        faults.inject(FaultPlan::always_in(Fault::WriteError, front..front + 100 * PIECE_SECTORS));
        for round in 0..100 {
            rig.change(round % SLOTS, 0..4);
            rig.settle().await;
            if !rig.cache.is_on() {
                break;
            }
            rig.offer(round % SLOTS, 0, 4, Offer::Again);
            rig.world.sleep(Nanos::from_millis(10)).await;
        }
        is_given_up(&rig).await;
    });
}

#[test]
fn data_that_cannot_be_written_do_not_come_in() {
    run(|rig, faults| async move {
        rig.change(0, 0..PAGES);
        rig.settle().await;
        let front = 8 + FRONT_PAGES * 8;
        faults.inject(FaultPlan::always_in(Fault::WriteError, front..front + 100 * PIECE_SECTORS));
        rig.offer(0, 0, 16, Offer::Again);
        rig.rest().await;
        assert!(rig.cache.is_on() && !rig.cache.has(0, 0, 8));
        faults.clear();
        rig.offer(0, 0, 16, Offer::Again);
        rig.rest().await;
        assert_eq!(rig.read(0, 0, 16).await, Ok(true));
    });
}

/// A page of the cache, and its slot.
async fn some_page(rig: &Rig) -> (u64, u32) {
    for slot in 0..SLOTS {
        for page in 0..PAGES {
            if rig.cache.has(slot, u64::from(page) * 8, 8) {
                return (slot, page);
            }
        }
    }
    panic!("the cache is empty")
}

#[test]
fn a_line_that_cannot_be_read_is_a_miss_and_goes() {
    run(|rig, faults| async move {
        let (slot, page) = some_page(&rig).await;
        faults.inject(FaultPlan::once(Fault::ReadError));
        assert_eq!(rig.read(slot, page, 1).await, Ok(false));
        assert!(!rig.cache.has(slot, u64::from(page) * 8, 8));
        assert_eq!((rig.cache.status().read_errors, rig.pool.disowned.get()), (1, 0));
        rig.offer(slot, page, 1, Offer::Again);
        rig.rest().await;
        assert_eq!(rig.read(slot, page, 1).await, Ok(true));
    });
}

#[test]
fn silent_faults_of_the_drive_are_misses() {
    for fault in [Fault::LostWrite, Fault::TornWrite, Fault::MisdirectedWrite, Fault::BitRot] {
        run(move |rig, faults| async move {
            let front = 8 + FRONT_PAGES * 8;
            let plan = FaultPlan { range: Some(front..u64::MAX / 2), ..FaultPlan::share(fault, 0.3) };
            faults.inject(plan);
            for round in 0..20 {
                for slot in 0..SLOTS {
                    rig.change(slot, round..round + 20);
                    rig.settle().await;
                    rig.offer(slot, round, 20, Offer::Again);
                }
                rig.rest().await;
                for slot in 0..SLOTS {
                    for page in 0..PAGES {
                        rig.read(slot, page, 1).await.unwrap_or_else(|error| panic!("{fault:?}: {error}"));
                    }
                }
            }
            if fault != Fault::MisdirectedWrite {
                assert!(rig.cache.status().read_errors > 0, "{fault:?}");
            }
        });
    }
}

#[test]
fn reads_that_take_too_long_are_misses_and_then_the_device_is_left_alone() {
    run(|rig, faults| async move {
        let (slot, page) = some_page(&rig).await;
        faults.inject(FaultPlan::share(Fault::Latency(Nanos::from_millis(150)), 1.0));
        let slow = || (rig.cache.status().slow_reads, rig.cache.status().devices_paused);
        let at_once = join_all((0..20).map(|_| rig.read(slot, page, 1))).await;
        assert!(at_once.iter().all(|read| *read == Ok(false)));
        assert_eq!(slow(), (20, 0), "all of them waited for one thing");
        for _ in 0..3 {
            assert_eq!(rig.read(slot, page, 1).await, Ok(false));
        }
        assert_eq!(slow(), (23, 1));
        faults.clear();
        let begun = rig.world.now();
        assert_eq!(rig.read(slot, page, 1).await, Ok(false));
        assert_eq!((rig.world.now(), slow()), (begun, (23, 1)), "it is not asked");
        assert!(!rig.cache.has(slot, u64::from(page) * 8, 8));
        rig.change(slot, page..page + 1);
        rig.settle().await;
        let (slot, page) = {
            rig.world.sleep(Nanos::from_secs(6)).await;
            some_page(&rig).await
        };
        assert_eq!(rig.read(slot, page, 1).await, Ok(true));
        assert_eq!(rig.pool.disowned.get(), 0);
    });
}

#[test]
fn many_strikes_do_not_block_each_other() {
    run(|rig, _| async move {
        let settled = Rc::new(Cell::new(0));
        for round in 0..300u64 {
            let (rig, settled) = (rig.clone(), settled.clone());
            rig.offer(round % SLOTS, (round % 40) as u32, 8, Offer::Again);
            rig.world.sleep(Nanos::from_millis(round % 7)).await;
            let world = rig.world.clone();
            world
                .spawn(async move {
                    rig.change(round % SLOTS, 0..PAGES);
                    rig.settle().await;
                    settled.set(settled.get() + 1);
                })
                .detach();
        }
        rig.rest().await;
        assert_eq!((settled.get(), rig.pool.disowned.get()), (300, 0));
        rig.verify().await.expect("it is right");
    });
}

#[test]
fn the_budget_bounds_what_is_written_over_restarts_too() {
    let pool = Pool::new(4);
    let options = FlashOptions { writes_per_day: 0.0, ..options() };
    let life = |cut: PowerCut| {
        let runtime = VirtualRuntime::new(3, PayloadWidth::REAL);
        let world = runtime.world().clone();
        let rig = Rig::on(&world, &pool, pool.medium.open(&world), options);
        let written = runtime.run(async move {
            rig.start().await.expect("the drive is good");
            for round in 0..10 {
                for slot in 0..SLOTS {
                    rig.change(slot, 0..PAGES / 2);
                    rig.offer(slot, 0, PAGES / 2, Offer::Again);
                    rig.offer(slot, PAGES / 2, PAGES / 2, Offer::Again);
                    rig.rest().await;
                    rig.settle().await;
                    assert!(round < 10);
                }
            }
            let status = rig.cache.status();
            assert!(status.refused_budget > 0, "it is spent");
            (status.written_bytes, status.room_bytes)
        });
        drop(runtime);
        pool.medium.power_cut(cut);
        written
    };
    let (first, room) = life(PowerCut::KeepNothing);
    let (second, _) = life(PowerCut::KeepNothing);
    let maps = room + room / 2;
    assert!(first <= room + maps, "{first} bytes were written with a budget of {room}");
    assert!(second <= room / 2 + 64 * 4096, "{second} bytes were written after it was spent");
}
