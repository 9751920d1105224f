//! Recovery with another number of shards: pages move to the ring of their new owner.

use crate::rig::model::Model;
use crate::rig::{EXTENT_SECTORS, Rack, Shape, Shard, eager};
use tier0_cache::WriteBackOptions;
use tier0_drive::sim::PowerCut;
use tier0_raid::layout::RaidLevel;
use tier0_units::{ExtentId, Nanos, WriteCache};
use tier0_world::{VirtualRuntime, World};

const EXTENTS: u32 = 6;

fn shape() -> Shape {
    Shape { rings: 3, log_blocks: 600, ..Shape::new(RaidLevel::Raid5, 4) }
}

fn of(shards: &[Shard], index: u32) -> &Shard {
    &shards[index as usize % shards.len()]
}

/// Rings that are nobody's own are given up.
async fn give_up_rings(shards: &[Shard]) {
    for ring in &shards[0].rings[shards.len()..] {
        ring.release(ring.stable());
        ring.persist_tail().await.expect("the ring is released");
    }
}

async fn check(world: &World, shards: &[Shard], model: &Model) {
    for index in 0..EXTENTS {
        let extent = ExtentId { volume: 1, index };
        let buf = world.buffer(EXTENT_SECTORS as u32);
        let (result, buf) = of(shards, index).cache.read(extent, 0, buf).await;
        assert_eq!(result, Ok(()));
        model.check_crashed(extent, &buf);
    }
}

async fn write_some(world: &World, shards: &[Shard], model: &Model, count: u32) {
    let mut random = world.random(1);
    for _ in 0..count {
        let index = random.below(u64::from(EXTENTS)) as u32;
        let extent = ExtentId { volume: 1, index };
        let first = random.below(EXTENT_SECTORS - 20);
        let cache = &of(shards, index).cache;
        let result = if random.chance(0.2) {
            let write = model.begin(extent, first, 20, true);
            let result = cache.zero(extent, first, 20, false, WriteCache::Durable).await;
            model.end(write, true);
            result
        } else {
            let write = model.begin(extent, first, 20, false);
            let buf = model.content(&write, world.width());
            let result = cache.write(extent, first, buf, false, WriteCache::Durable).await;
            model.end(write, true);
            result
        };
        assert_eq!(result, Ok(()));
    }
}

/// Opens with so many shards, checks, writes, and loses power.
fn life(rack: &Rack, model: &std::rc::Rc<Model>, seed: u64, shards: usize, cut_while_opening: bool) -> bool {
    let runtime = VirtualRuntime::new(seed, rack.shape.width);
    let world = runtime.world().clone();
    rack.switch.restore();
    if cut_while_opening {
        rack.switch.arm(1 + seed % 60);
    }
    let (rack_in, model_in) = (rack.clone(), model.clone());
    let lived = runtime.run(async move {
        let work = async {
            let open = rack_in.open_shards(&world, WriteBackOptions::default(), shards).await;
            let open = open.expect("recovery succeeds");
            check(&world, &open, &model_in).await;
            give_up_rings(&open).await;
            for shard in &open {
                shard.cache.start();
            }
            write_some(&world, &open, &model_in, 60).await;
        };
        let off = rack_in.switch.wait_off();
        let work = std::pin::pin!(work);
        let off = std::pin::pin!(off);
        matches!(futures_util::future::select(work, off).await, futures_util::future::Either::Left(_))
    });
    drop(runtime);
    for medium in rack.media.iter().chain(&rack.log_media) {
        medium.power_cut(PowerCut::Any);
    }
    lived
}

#[test]
fn pages_follow_their_owners() {
    for seed in 0..20 {
        let rack = Rack::new(shape(), seed);
        let model = std::rc::Rc::new(Model::default());
        for (n, shards) in [3, 1, 2, 3, 2, 1, 3].into_iter().enumerate() {
            let lived = life(&rack, &model, seed * 100 + n as u64, shards, false);
            assert!(lived, "nothing cuts the power");
            // A recovery that is cut off changes nothing.
            life(&rack, &model, seed * 100 + 50 + n as u64, 1 + (shards + 1) % 3, true);
        }
    }
}

#[test]
fn recovery_says_what_it_did() {
    let rack = Rack::new(shape(), 77);
    let model = std::rc::Rc::new(Model::default());
    assert!(life(&rack, &model, 1, 3, false));
    let runtime = VirtualRuntime::new(2, rack.shape.width);
    let world = runtime.world().clone();
    rack.switch.restore();
    runtime.run(async move {
        let shards = rack.open_shards(&world, eager(), 2).await.expect("recovery succeeds");
        check(&world, &shards, &model).await;
        let relogged: u64 = shards.iter().map(|shard| shard.report.pages_relogged).sum();
        let pages: u64 = shards.iter().map(|shard| shard.report.pages).sum();
        assert!(relogged > 0 && relogged < pages, "{relogged} of {pages} pages move");
        let dirty: u64 = shards.iter().map(|shard| shard.cache.status().dirty_pages).sum();
        assert_eq!(dirty, pages);
        world.sleep(Nanos::from_secs(1)).await;
        let before: u64 = shards.iter().map(|shard| shard.cache.status().log_used_bytes).sum();
        assert!(before > 0, "nothing is released before it is started");
        for shard in &shards {
            shard.cache.start();
            assert_eq!(shard.cache.drain().await, Ok(()));
            assert_eq!(shard.cache.status().log_used_bytes, 0);
        }
        check(&world, &shards, &model).await;
    });
}
