//! Random reads, writes, zeros and flushes of all alignments from several tasks at once, against a model.

use std::rc::Rc;

use crate::rig::model::Model;
use crate::rig::{EXTENT_SECTORS, Rack, Shard, eager, shapes};
use tier0_units::{ExtentId, Nanos, WriteCache};
use tier0_world::{IoError, Random, VirtualRuntime, World};

/// One task's requests.
async fn requests(
    world: World,
    shard: Shard,
    model: Rc<Model>,
    extents: u32,
    mut random: Random,
    count: u32,
) {
    let modes = [WriteCache::Durable, WriteCache::Volatile, WriteCache::Off];
    for _ in 0..count {
        let extent = ExtentId { volume: 1, index: random.below(u64::from(extents)) as u32 };
        let first = random.below(EXTENT_SECTORS);
        let most = if random.chance(0.7) { 20 } else { EXTENT_SECTORS };
        let mut sectors = 1 + random.below((EXTENT_SECTORS - first).min(most));
        let aligned = random.chance(0.3) && first + sectors >= 8;
        let first = if aligned { first / 8 * 8 } else { first };
        if aligned {
            sectors = sectors.next_multiple_of(8).min(EXTENT_SECTORS - first);
        }
        let (mode, durable) = (modes[random.below(3) as usize], random.chance(0.2));
        match random.below(100) {
            0..45 => {
                let write = model.begin(extent, first, sectors, false);
                let buf = model.content(&write, world.width());
                let result = shard.cache.write(extent, first, buf, durable, mode).await;
                assert_eq!(result, Ok(()), "the write succeeds");
                model.end(write, durable || mode != WriteCache::Volatile);
            }
            45..62 => {
                let whole = random.chance(0.3);
                let (first, sectors) = if whole { (0, EXTENT_SECTORS) } else { (first, sectors) };
                let write = model.begin(extent, first, sectors, true);
                let result = shard.cache.zero(extent, first, sectors, durable, mode).await;
                assert_eq!(result, Ok(()), "the zeros succeed");
                model.end(write, durable || mode != WriteCache::Volatile);
            }
            62..65 => {
                let covered = model.begin_flush();
                assert_eq!(shard.cache.flush().await, Ok(()));
                model.end_flush(covered);
            }
            65..67 => world.sleep(Nanos::from_millis(random.below(20))).await,
            _ => {
                let began = model.begin_read();
                let (result, buf) = shard.cache.read(extent, first, world.buffer(sectors as u32), true).await;
                assert_eq!(result, Ok(()), "the read succeeds");
                model.check(began, extent, first, &buf);
            }
        }
    }
}

async fn check_all(world: &World, shard: &Shard, model: &Model, extents: u32) {
    for index in 0..extents {
        let extent = ExtentId { volume: 1, index };
        let began = model.begin_read();
        let (result, buf) = shard.cache.read(extent, 0, world.buffer(EXTENT_SECTORS as u32), true).await;
        assert_eq!(result, Ok(()));
        model.check(began, extent, 0, &buf);
    }
}

#[test]
fn several_tasks_agree_with_the_model() {
    for (n, shape) in shapes().into_iter().enumerate() {
        let runtime = VirtualRuntime::new(n as u64, shape.width);
        let world = runtime.world().clone();
        let rack = Rack::new(shape, n as u64);
        runtime.run(async move {
            let shard = rack.open(&world, eager()).await;
            let model = Rc::new(Model::default());
            let extents = (rack.slot_count() as u32).min(6);
            let tasks: Vec<_> = (0..6)
                .map(|task| {
                    let random = world.random(100 + task);
                    let (world, shard, model) = (world.clone(), shard.clone(), model.clone());
                    world.clone().spawn(requests(world, shard, model, extents, random, 400))
                })
                .collect();
            for task in tasks {
                task.await;
            }
            check_all(&world, &shard, &model, extents).await;
            assert_eq!(shard.cache.drain().await, Ok(()));
            let status = shard.cache.status();
            assert_eq!((status.dirty_pages, status.dirty_bytes, status.failures), (0, 0, 0), "{status:?}");
            check_all(&world, &shard, &model, extents).await;
            // What is all zeros needs no slot.
            for index in 0..extents {
                let extent = ExtentId { volume: 1, index };
                assert_eq!(
                    shard.cache.zero(extent, 0, EXTENT_SECTORS, false, WriteCache::Durable).await,
                    Ok(())
                );
            }
            assert_eq!(shard.cache.drain().await, Ok(()));
            assert_eq!(shard.map.free(), rack.slot_count());
            assert!(rack.map.committed().is_empty());
            println!("{shape:?}: {status:?} at {}", world.now());
        });
    }
}

#[test]
fn a_full_pool_refuses_what_needs_space_and_nothing_else() {
    for shape in shapes() {
        let runtime = VirtualRuntime::new(5, shape.width);
        let world = runtime.world().clone();
        let rack = Rack::new(shape, 5);
        runtime.run(async move {
            let shard = rack.open(&world, eager()).await;
            let model = Model::default();
            let count = rack.slot_count() as u32;
            let write = async |index, first: u64, sectors: u64| {
                let extent = ExtentId { volume: 1, index };
                let write = model.begin(extent, first, sectors, false);
                let buf = model.content(&write, world.width());
                let result = shard.cache.write(extent, first, buf, false, WriteCache::Durable).await;
                if result.is_ok() {
                    model.end(write, true);
                }
                result
            };
            for index in 0..count {
                assert_eq!(write(index, 3, 40).await, Ok(()));
            }
            assert_eq!(write(count, 0, 8).await, Err(IoError::NoSpace));
            assert_eq!(write(count + 1, 5, 2).await, Err(IoError::NoSpace));
            let other = ExtentId { volume: 1, index: count };
            assert_eq!(
                shard.cache.zero(other, 0, 100, true, WriteCache::Durable).await,
                Ok(()),
                "needs no space"
            );
            assert_eq!(write(0, 100, 50).await, Ok(()));
            let (result, buf) = shard.cache.read(other, 0, world.buffer(16), true).await;
            assert_eq!(result, Ok(()));
            assert!(buf.as_slice().iter().all(|byte| *byte == 0), "nothing of the refused write is there");
            // Emptying one makes room, once that is durable.
            let first = ExtentId { volume: 1, index: 1 };
            assert_eq!(shard.cache.zero(first, 0, EXTENT_SECTORS, false, WriteCache::Durable).await, Ok(()));
            assert_eq!(shard.cache.drain().await, Ok(()));
            let extent = ExtentId { volume: 1, index: count + 2 };
            let write = model.begin(extent, 0, 8, false);
            let buf = model.content(&write, world.width());
            assert_eq!(shard.cache.write(extent, 0, buf, false, WriteCache::Durable).await, Ok(()));
        });
    }
}
