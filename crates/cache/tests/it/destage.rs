//! When and how pages leave the cache: coalescing, ageing, back-pressure, failures.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;

use futures_util::future::{Either, select};

use crate::rig::{EXTENT_SECTORS, Rack, Shape, Shard, eager};
use tier0_cache::{Stage, WriteBackOptions, ring_sectors_min};
use tier0_drive::{Fault, FaultPlan};
use tier0_raid::layout::RaidLevel;
use tier0_units::{ByteCount, ExtentId, Lba, Nanos, WriteCache};
use tier0_world::{Buf, BufMut, IoError, PayloadWidth, Random, VirtualRuntime, World};

fn extent(index: u32) -> ExtentId {
    ExtentId { volume: 1, index }
}

fn data(sectors: u32, byte: u8) -> Buf {
    let mut buf = BufMut::new(sectors, PayloadWidth::REAL);
    buf.as_mut_slice().fill(byte);
    buf.freeze()
}

async fn write(shard: &Shard, index: u32, first: u64, sectors: u32, byte: u8) -> Result<(), IoError> {
    shard.cache.write(extent(index), first, data(sectors, byte), false, WriteCache::Durable).await
}

async fn read_byte(world: &World, shard: &Shard, index: u32, sector: u64) -> u8 {
    let (result, buf) = shard.cache.read(extent(index), sector, world.buffer(1), true).await;
    assert_eq!(result, Ok(()));
    assert!(buf.as_slice().iter().all(|byte| *byte == buf.as_slice()[0]));
    buf.as_slice()[0]
}

/// Runs a test on a fresh rack.
fn on_rack<F: Future<Output = ()> + 'static>(shape: Shape, test: impl FnOnce(Rack, World) -> F) {
    let runtime = VirtualRuntime::new(17, shape.width);
    let rack = Rack::new(shape, 17);
    runtime.run(test(rack, runtime.world().clone()));
}

fn raid6() -> Shape {
    Shape::new(RaidLevel::Raid6, 5)
}

#[test]
fn overwrites_meet_in_memory_and_are_destaged_once() {
    on_rack(raid6(), |rack, world| async move {
        let shard = rack.open(&world, WriteBackOptions::default()).await;
        assert_eq!(shard.cache.status().stage, Stage::Idle);
        for round in 1..=50 {
            for page in 0..4 {
                assert_eq!(write(&shard, 0, page * 8, 8, round).await, Ok(()));
            }
            world.sleep(Nanos::from_millis(10)).await;
        }
        let status = shard.cache.status();
        assert_eq!((status.dirty_pages, status.destaged_pages), (4, 0), "nothing has aged");
        assert_eq!(status.stage, Stage::Coalescing);
        // 10 s, and the sixteenth to which ages are known.
        world.sleep(Nanos::from_millis(13_000)).await;
        let status = shard.cache.status();
        assert_eq!((status.dirty_pages, status.destaged_pages, status.batches), (0, 4, 1), "{status:?}");
        assert_eq!((status.stage, status.log_used_bytes), (Stage::Idle, 0));
        assert_eq!(read_byte(&world, &shard, 0, 9).await, 50);
    });
}

#[test]
fn memory_is_given_back_by_whole_records_and_counted_so() {
    on_rack(raid6(), |rack, world| async move {
        let shard = rack.open(&world, WriteBackOptions::default()).await;
        assert_eq!(write(&shard, 0, 0, 64, 1).await, Ok(()));
        assert_eq!(shard.cache.status().dirty_bytes, 8 * 4096);
        for page in 0..7 {
            assert_eq!(write(&shard, 0, page * 8, 8, 2).await, Ok(()));
        }
        // The last page of the first write keeps all eight.
        assert_eq!(shard.cache.status().dirty_bytes, 15 * 4096);
        assert_eq!(write(&shard, 0, 56, 8, 2).await, Ok(()));
        assert_eq!(shard.cache.status().dirty_bytes, 8 * 4096);
    });
}

#[test]
fn rows_are_completed_before_they_are_destaged() {
    // A row of 5 columns at level 6 has 3 units of 16 sectors: 6 pages.
    on_rack(raid6(), |rack, world| async move {
        let shard = rack.open(&world, WriteBackOptions::default()).await;
        for first in [0, 16, 32, 8, 24, 40] {
            assert_eq!(write(&shard, 0, first, 8, 9).await, Ok(()));
            world.sleep(Nanos::from_millis(100)).await;
        }
        let reads = || rack.media.iter().map(|medium| medium.switch().changes()).max();
        let before = reads();
        assert_eq!(shard.cache.drain().await, Ok(()));
        let status = shard.cache.status();
        assert_eq!((status.batches, status.destaged_pages), (1, 6));
        assert!(reads() > before);
    });
}

#[test]
fn writers_are_slowed_to_the_rate_of_destaging_without_a_stall() {
    // Slow drives behind a small log, and far more pages than the memory takes, so that few are overwritten there: a
    // burst is taken at the log's speed, then writers get what destaging gives.
    let slow = (Nanos::from_millis(3), Nanos::from_millis(6));
    for level in [RaidLevel::Raid6, RaidLevel::Raid10] {
        let columns = if level == RaidLevel::Raid6 { 5 } else { 4 };
        let shape = Shape { latency: slow, log_blocks: 4000, chunklets: 32, ..Shape::new(level, columns) };
        on_rack(shape, |rack, world| async move {
            let options = WriteBackOptions { memory_max: ByteCount::mib(4), ..WriteBackOptions::default() };
            let shard = rack.open(&world, options).await;
            let extents = rack.slot_count();
            let done: Rc<RefCell<Vec<u64>>> = Rc::default();
            let stop = Rc::new(Cell::new(false));
            let longest = Rc::new(Cell::new(Nanos::ZERO));
            let step = Nanos::from_millis(250);
            for task in 0..8 {
                let (world, shard, done, stop) = (world.clone(), shard.clone(), done.clone(), stop.clone());
                let (spawner, longest) = (world.clone(), longest.clone());
                let work = async move {
                    let mut random = Random::new(task, 3);
                    while !stop.get() {
                        let began = world.now();
                        let page = random.below(EXTENT_SECTORS / 8);
                        let index = random.below(extents) as u32;
                        assert_eq!(write(&shard, index, page * 8, 8, 1 + task as u8).await, Ok(()));
                        longest.set(longest.get().max(world.now() - began));
                        let slot = (world.now().0 / step.0) as usize;
                        let mut done = done.borrow_mut();
                        let len = done.len().max(slot + 1);
                        done.resize(len, 0);
                        done[slot] += 1;
                    }
                };
                spawner.spawn(work).detach();
            }
            world.sleep(Nanos::from_secs(20)).await;
            stop.set(true);
            let status = shard.cache.status();
            let done = done.borrow();
            println!("{level:?}: writes per {step}: {done:?}\n{status:?}, longest wait {}", longest.get());
            let steady = &done[20..79];
            let mean = steady.iter().sum::<u64>() as f64 / steady.len() as f64;
            let (least, most) = (*steady.iter().min().expect("some"), *steady.iter().max().expect("some"));
            assert!(done[0] as f64 > 2.0 * mean, "the burst is faster than the drives");
            assert!(
                least as f64 > 0.5 * mean && (most as f64) < 2.0 * mean,
                "{least} to {most} around {mean}"
            );
            assert!(longest.get() < Nanos::from_millis(500), "nobody waits long: {}", longest.get());
            assert_eq!(status.stage, Stage::Throttling);
            assert!(status.level <= 1.0, "{status:?}");
        });
    }
}

#[test]
fn mode_off_ends_when_the_pages_are_in_place() {
    on_rack(raid6(), |rack, world| async move {
        let shard = rack.open(&world, WriteBackOptions::default()).await;
        let write = shard.cache.write(extent(0), 3, data(40, 7), false, WriteCache::Off).await;
        assert_eq!(write, Ok(()));
        let status = shard.cache.status();
        assert_eq!((status.dirty_pages, status.destaged_pages), (0, 6));
        assert_eq!(rack.map.committed().len(), 1);
        assert_eq!(shard.cache.zero(extent(0), 0, EXTENT_SECTORS, false, WriteCache::Off).await, Ok(()));
        assert_eq!(shard.cache.status().dirty_pages, 0);
        assert_eq!(read_byte(&world, &shard, 0, 20).await, 0);
    });
}

/// An extent that is waited for may be emptied and come back in another slot before anybody looks: it is one extent still.
#[test]
fn extents_that_are_waited_for_come_and_go() {
    on_rack(raid6(), |rack, world| async move {
        let shard = rack.open(&world, eager()).await;
        let task = |task: u64| {
            let (shard, mut random) = (shard.clone(), world.random(task));
            async move {
                for _ in 0..400 {
                    let index = random.below(3) as u32;
                    let off = WriteCache::Off;
                    let result = if random.chance(0.5) {
                        let first = random.below(8) * 8;
                        shard.cache.write(extent(index), first, data(8, 7), false, off).await
                    } else {
                        shard.cache.zero(extent(index), 0, EXTENT_SECTORS, false, off).await
                    };
                    assert_eq!(result, Ok(()));
                }
            }
        };
        let tasks: Vec<_> = (0..8).map(|number| world.spawn(task(number))).collect();
        for task in tasks {
            task.await;
        }
        assert_eq!(shard.cache.drain().await, Ok(()));
        assert_eq!(shard.cache.status().dirty_pages, 0);
    });
}

#[test]
fn a_volatile_write_does_not_wait_for_the_log_and_a_flush_does() {
    on_rack(raid6(), |rack, world| async move {
        let shard = rack.open(&world, WriteBackOptions::default()).await;
        assert_eq!(write(&shard, 0, 0, 8, 1).await, Ok(()));
        let began = world.now();
        let volatile = shard.cache.write(extent(0), 8, data(8, 2), false, WriteCache::Volatile).await;
        assert_eq!((volatile, world.now()), (Ok(()), began));
        assert_eq!(shard.cache.flush().await, Ok(()));
        assert!(world.now() > began);
        let began = world.now();
        let durable = shard.cache.write(extent(0), 8, data(8, 3), true, WriteCache::Volatile).await;
        assert_eq!(durable, Ok(()));
        assert!(world.now() > began);
        let began = world.now();
        assert_eq!(shard.cache.flush().await, Ok(()));
        assert_eq!(world.now(), began, "nothing is left to be flushed");
    });
}

#[test]
fn what_cannot_be_destaged_stays_and_the_rest_goes_on() {
    let shape = Shape::new(RaidLevel::Raid0, 3);
    on_rack(shape, |rack, world| async move {
        let shard = rack.open(&world, eager()).await;
        assert_eq!(write(&shard, 0, 0, 8, 1).await, Ok(()));
        assert_eq!(shard.cache.drain().await, Ok(()));
        // Commits of the map fail for a while: the pages stay readable, in the log, and dirty.
        shard.map.failures.set(3);
        assert_eq!(write(&shard, 1, 0, 16, 2).await, Ok(()));
        assert_eq!(shard.cache.drain().await, Err(IoError::Medium));
        let status = shard.cache.status();
        assert_eq!((status.dirty_pages, status.failed_extents, status.failures), (2, 1, 1), "{status:?}");
        assert_eq!(status.last_failure, Some(IoError::Medium));
        assert!(status.log_used_bytes > 0);
        assert_eq!(read_byte(&world, &shard, 1, 4).await, 2);
        assert_eq!(write(&shard, 0, 8, 8, 3).await, Ok(()));
        let off = shard.cache.write(extent(1), 0, data(8, 4), false, WriteCache::Off).await;
        assert_eq!(off, Err(IoError::Medium), "it cannot be destaged now");
        world.sleep(Nanos::from_secs(10)).await;
        let status = shard.cache.status();
        assert_eq!(
            (status.dirty_pages, status.failed_extents, status.log_used_bytes),
            (0, 0, 0),
            "{status:?}"
        );
        assert_eq!(status.last_failure, None);
        assert_eq!(read_byte(&world, &shard, 1, 4).await, 4);
        assert_eq!(read_byte(&world, &shard, 0, 8).await, 3);
    });
}

#[test]
fn extents_that_fail_in_a_full_log_are_tried_again_and_the_destager_rests_in_between() {
    // A log in which only the oldest pages may be destaged: of several extents that are due for another attempt, all but
    // one wait. The destager once looked for them again and again, and no time passed.
    let shape = Shape { log_blocks: 64, ..Shape::new(RaidLevel::Raid5, 4) };
    on_rack(shape, |rack, world| async move {
        let shard = rack.open(&world, eager()).await;
        shard.map.failures.set(u32::MAX);
        for index in 0..9 {
            assert_eq!(write(&shard, index, 0, 8, index as u8 + 1).await, Ok(()));
        }
        world.sleep(Nanos::from_secs(100)).await;
        let status = shard.cache.status();
        assert!(status.failed_extents > 1 && status.failures > 3, "{status:?}");
        shard.map.failures.set(0);
        world.sleep(Nanos::from_secs(300)).await;
        let status = shard.cache.status();
        assert_eq!((status.dirty_pages, status.failed_extents), (0, 0), "{status:?}");
        for index in 0..9 {
            assert_eq!(read_byte(&world, &shard, index, 0).await, index as u8 + 1);
        }
    });
}

#[test]
fn a_log_of_the_smallest_size_takes_one_page_after_the_other() {
    // One page fills it. A writer was once delayed at a rate of zero then, though nothing was dirty, and waited for ever.
    for (level, columns, parities, row_pages) in
        [(RaidLevel::Raid10, 4, 0, 4), (RaidLevel::Raid5, 4, 1, 6), (RaidLevel::Raid6, 5, 2, 6)]
    {
        let log_blocks = ring_sectors_min(parities, row_pages) / 8 - 2;
        on_rack(Shape { log_blocks, ..Shape::new(level, columns) }, move |rack, world| async move {
            let shard = rack.open(&world, eager()).await;
            for index in 0..4 {
                let written = pin!(write(&shard, index, 0, 24, index as u8 + 1));
                let limit = pin!(world.sleep(Nanos::from_secs(60)));
                match select(written, limit).await {
                    Either::Left((result, _)) => assert_eq!(result, Ok(()), "{level}"),
                    Either::Right(_) => panic!("{level}: a write does not end: {:?}", shard.cache.status()),
                }
            }
            for index in 0..4 {
                assert_eq!(read_byte(&world, &shard, index, 16).await, index as u8 + 1, "{level}");
            }
        });
    }
}

#[test]
fn a_log_that_fails_is_not_acknowledged_on() {
    on_rack(raid6(), |rack, world| async move {
        let shard = rack.open(&world, WriteBackOptions::default()).await;
        assert_eq!(write(&shard, 0, 0, 8, 1).await, Ok(()));
        for medium in &rack.log_media {
            medium.inject(FaultPlan { fault: Fault::WriteError, probability: 1.0, range: None, times: None });
        }
        let volatile = shard.cache.write(extent(0), 8, data(8, 2), false, WriteCache::Volatile).await;
        assert_eq!(volatile, Ok(()), "nothing was promised");
        assert!(shard.cache.flush().await.is_err());
        assert!(write(&shard, 0, 16, 8, 3).await.is_err());
        assert!(shard.cache.flush().await.is_err(), "a failed flush stays failed");
        assert!(shard.cache.drain().await.is_err());
        assert!(shard.cache.status().log_failure.is_some());
        assert_eq!(read_byte(&world, &shard, 0, 0).await, 1, "reads go on");
    });
}

#[test]
fn no_recovery_needs_what_a_copy_of_the_log_lost_before_it_was_retired() {
    let rack = Rack::new(raid6(), 17);
    let ring = 16..u64::MAX;
    let lives: [fn(Rack, World) -> _; 2] = [
        |rack, world| -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(async move {
                let shard = rack.open(&world, WriteBackOptions::default()).await;
                assert_eq!(write(&shard, 0, 0, 8, 1).await, Ok(()));
                rack.log_media[0].clear_plans();
                assert_eq!(write(&shard, 0, 8, 8, 2).await, Ok(()));
                let logged = shard.cache.logged();
                assert_eq!(write(&shard, 1, 0, 8, 3).await, Ok(()));
                assert_eq!(shard.cache.retire(logged).await, Ok(()));
                rack.lost_copies.borrow_mut().insert(1);
            })
        },
        |rack, world| {
            Box::pin(async move {
                let shard = rack.open(&world, WriteBackOptions::default()).await;
                for (index, sector, byte) in [(0, 0, 1), (0, 8, 2), (1, 0, 3)] {
                    assert_eq!(read_byte(&world, &shard, index, sector).await, byte);
                }
            })
        },
    ];
    rack.log_media[0].inject(FaultPlan::always_in(Fault::LostWrite, ring));
    for life in lives {
        let runtime = VirtualRuntime::new(17, rack.shape.width);
        runtime.run(life(rack.clone(), runtime.world().clone()));
    }
}

#[test]
fn what_is_gone_is_forgotten() {
    on_rack(raid6(), |rack, world| async move {
        let shard = rack.open(&world, WriteBackOptions::default()).await;
        assert_eq!(write(&shard, 0, 0, 100, 1).await, Ok(()));
        assert_eq!(write(&shard, 1, 0, 100, 2).await, Ok(()));
        shard.cache.forget(|extent| extent.index == 0).await;
        let status = shard.cache.status();
        assert_eq!(status.dirty_pages, 13);
        assert_eq!(shard.cache.drain().await, Ok(()));
        let status = shard.cache.status();
        assert_eq!((status.destaged_pages, status.log_used_bytes), (13, 0));
        assert_eq!(read_byte(&world, &shard, 1, 99).await, 2);
    });
}

#[test]
fn nothing_is_read_or_kept_in_a_world_without_payload() {
    let shape = Shape { width: PayloadWidth::NONE, ..raid6() };
    on_rack(shape, |rack, world| async move {
        let shard = rack.open(&world, eager()).await;
        let tasks: Vec<_> = (0..8)
            .map(|task| {
                let (world, shard, extents) = (world.clone(), shard.clone(), rack.slot_count());
                world.clone().spawn(async move {
                    let mut random = Random::new(task, 4);
                    for _ in 0..300 {
                        let first = random.below(EXTENT_SECTORS - 16);
                        let index = random.below(extents) as u32;
                        let buf = world.buffer(16).freeze();
                        let written =
                            shard.cache.write(extent(index), first, buf, false, WriteCache::Durable).await;
                        assert_eq!(written, Ok(()));
                        let (read, buf) =
                            shard.cache.read(extent(index), first, world.buffer(16), true).await;
                        assert_eq!((read, buf.sectors()), (Ok(()), 16));
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await;
        }
        assert_eq!(shard.cache.drain().await, Ok(()));
        let status = shard.cache.status();
        assert!(status.destaged_pages > 1000 && status.dirty_pages == 0, "{status:?}");
    });
}

#[test]
fn a_seed_reproduces_a_run() {
    let run = || {
        let runtime = VirtualRuntime::new(9, PayloadWidth::REAL);
        let rack = Rack::new(raid6(), 9);
        let world = runtime.world().clone();
        runtime.run(async move {
            let shard = rack.open(&world, eager()).await;
            let mut random = world.random(5);
            for n in 0..500 {
                let first = random.below(EXTENT_SECTORS - 20);
                assert_eq!(write(&shard, random.below(4) as u32, first, 20, n as u8 | 1).await, Ok(()));
            }
            assert_eq!(shard.cache.drain().await, Ok(()));
            world.event_hash()
        })
    };
    assert_eq!(run(), run());
}

/// A write that begins and ends within pages reads both of them with one command, and what lies between with them; where a
/// page between is lost, it is what the write makes good.
#[test]
fn a_small_write_reads_both_edges_at_once() {
    let latency = Nanos::from_millis(3);
    let longest = Nanos::from_millis(4);
    let shape = Shape { latency: (latency, longest), ..Shape::new(RaidLevel::Raid1, 2) };
    on_rack(shape, move |rack, world| async move {
        let shard = rack.open(&world, WriteBackOptions::default()).await;
        for page in 0..3 {
            assert_eq!(write(&shard, 0, page * 8, 8, 71 + page as u8).await, Ok(()));
        }
        assert_eq!(shard.cache.drain().await, Ok(()));
        let began = world.now();
        assert_eq!(write(&shard, 0, 4, 16, 9).await, Ok(()));
        let took = world.now() - began;
        assert!(took >= latency && took < latency + latency, "{took} for one command");
        assert_eq!(shard.cache.drain().await, Ok(()));
        for (sector, byte) in [(3, 71), (4, 9), (12, 9), (19, 9), (20, 73)] {
            assert_eq!(read_byte(&world, &shard, 0, sector).await, byte, "sector {sector}");
        }

        assert_eq!(write(&shard, 0, 8, 8, 77).await, Ok(()));
        assert_eq!(shard.cache.drain().await, Ok(()));
        let mut sector = [0; 512];
        for medium in &rack.media {
            for lba in (0..medium.options().info.sectors.0).map(Lba) {
                medium.peek(lba, &mut sector);
                if sector == [77; 512] {
                    assert!(medium.rot(lba));
                }
            }
        }
        let (result, _) = shard.cache.read(extent(0), 8, world.buffer(8), true).await;
        assert_eq!(result, Err(IoError::DataLost), "both copies have rotted");
        assert_eq!(write(&shard, 0, 4, 16, 10).await, Ok(()));
        assert_eq!(shard.cache.drain().await, Ok(()));
        for (sector, byte) in [(3, 71), (4, 10), (12, 10), (19, 10), (20, 73)] {
            assert_eq!(read_byte(&world, &shard, 0, sector).await, byte, "sector {sector}");
        }
    });
}
