//! Power cuts anywhere: every acknowledged write is there afterwards, also when a drive is lost with the power.

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use crate::rig::model::Model;
use crate::rig::{EXTENT_SECTORS, Rack, Shape, Shard, eager, shapes};
use futures_util::future::{Either, select};
use tier0_cache::{Mapping, Relocation};
use tier0_drive::sim::PowerCut;
use tier0_raid::layout::RaidLevel;
use tier0_units::{ExtentId, Nanos, PAGE_SECTORS, WriteCache};
use tier0_world::{Random, VirtualRuntime, World};

const EXTENTS: u32 = 5;

/// Requests until the power fails.
async fn requests(world: World, shard: Shard, model: Rc<Model>, mut random: Random) {
    let modes = [WriteCache::Durable, WriteCache::Durable, WriteCache::Volatile, WriteCache::Off];
    loop {
        let extent = ExtentId { volume: 1, index: random.below(u64::from(EXTENTS)) as u32 };
        let first = random.below(EXTENT_SECTORS);
        let most = if random.chance(0.8) { 24 } else { EXTENT_SECTORS };
        let sectors = 1 + random.below((EXTENT_SECTORS - first).min(most));
        let (mode, durable) = (modes[random.below(4) as usize], random.chance(0.2));
        match random.below(100) {
            0..70 => {
                let write = model.begin(extent, first, sectors, false);
                let buf = model.content(&write, world.width());
                if shard.cache.write(extent, first, buf, durable, mode).await.is_ok() {
                    model.end(write, durable || mode != WriteCache::Volatile);
                }
            }
            70..88 => {
                let whole = random.chance(0.3);
                let (first, sectors) = if whole { (0, EXTENT_SECTORS) } else { (first, sectors) };
                let write = model.begin(extent, first, sectors, true);
                if shard.cache.zero(extent, first, sectors, durable, mode).await.is_ok() {
                    model.end(write, durable || mode != WriteCache::Volatile);
                }
            }
            88..92 => {
                let covered = model.begin_flush();
                if shard.cache.flush().await.is_ok() {
                    model.end_flush(covered);
                }
            }
            _ => world.sleep(Nanos::from_micros(random.below(6000))).await,
        }
    }
}

/// Moves extents to other slots until the power fails.
async fn moves(world: World, shard: Shard, mut random: Random) {
    let pages = (EXTENT_SECTORS / PAGE_SECTORS) as u32;
    loop {
        let extent = ExtentId { volume: 1, index: random.below(u64::from(EXTENTS)) as u32 };
        if let Some(from) = shard.map.slot(extent)
            && let Some(to) = shard.map.lend()
        {
            let relocation = Relocation { extent, from, to, pages };
            let moved = shard.cache.relocate(relocation, &*shard.map).await;
            shard.map.give_back(if moved == Ok(true) { from } else { to });
        }
        world.sleep(Nanos::from_micros(random.below(4000))).await;
    }
}

/// Runs until the power fails.
async fn until_off(rack: &Rack, work: impl Future<Output = ()>) {
    let off = rack.switch.wait_off();
    if let Either::Left(((), _)) = select(pin!(work), pin!(off)).await {
        // The work came to its end before the command that was to trip the power.
        rack.switch.cut();
    }
}

async fn check(world: &World, shard: &Shard, model: &Model) {
    for index in 0..EXTENTS {
        let extent = ExtentId { volume: 1, index };
        let (result, buf) = shard.cache.read(extent, 0, world.buffer(EXTENT_SECTORS as u32)).await;
        assert_eq!(result, Ok(()), "{extent}");
        model.check_crashed(extent, &buf);
    }
}

/// What happens beside requests and power cuts.
#[derive(Clone, Copy, Default)]
struct Trouble {
    /// A drive is lost with the power, once.
    lose: bool,
    /// Extents move to other slots.
    moves: bool,
}

/// Some lives of one rack, each ended by a power cut at a random command.
fn live(shape: Shape, seed: u64, lives: u64, trouble: Trouble) {
    let rack = Rack::new(shape, seed);
    let model = Rc::new(Model::default());
    let mut random = Random::new(seed, 0xc4a5);
    for life in 0..lives {
        let runtime = VirtualRuntime::new(seed << 16 | life, shape.width);
        let world = runtime.world().clone();
        // A few commands end while it still recovers.
        let commands = if random.chance(0.2) { 1 + random.below(60) } else { 1 + random.below(3000) };
        rack.switch.restore();
        rack.switch.arm(commands);
        let tasks = 1 + random.below(6);
        let (rack, model) = (rack.clone(), model.clone());
        let media = rack.clone();
        runtime.run(async move {
            let off = rack.clone();
            until_off(&off, async move {
                let shard = rack.open(&world, eager()).await;
                check(&world, &shard, &model).await;
                let work = (0..tasks).map(|task| {
                    let random = world.random(task);
                    world.spawn(requests(world.clone(), shard.clone(), model.clone(), random))
                });
                let mut work: Vec<_> = work.collect();
                if trouble.moves {
                    let random = world.random(tasks);
                    work.push(world.spawn(moves(world.clone(), shard.clone(), random)));
                }
                for task in work {
                    task.await;
                }
            })
            .await;
        });
        drop(runtime);
        let manner = [PowerCut::Any, PowerCut::Any, PowerCut::KeepNothing, PowerCut::KeepAll]
            [random.below(4) as usize];
        for medium in media.media.iter().chain(&media.log_media) {
            medium.power_cut(manner);
        }
        if trouble.lose && media.lost.borrow().is_empty() && random.chance(0.3) {
            let drive = random.below(media.media.len() as u64) as usize;
            media.lost.borrow_mut().insert(drive);
        }
    }
    let runtime = VirtualRuntime::new(seed << 16 | lives, shape.width);
    let world = runtime.world().clone();
    rack.switch.restore();
    let lost = !rack.lost.borrow().is_empty();
    runtime.run(async move {
        let shard = rack.open(&world, eager()).await;
        check(&world, &shard, &model).await;
        assert_eq!(shard.cache.drain().await, Ok(()));
        check(&world, &shard, &model).await;
        if !lost {
            // With all drives there, parity agrees with data everywhere.
            for (extent, slot) in rack.map.committed() {
                let scrub = shard.slots.scrub_slot(slot).await.expect("a scrub succeeds");
                let different = scrub.rows.copies_different + scrub.rows.parity_different + scrub.rows.rotten;
                assert_eq!((different, scrub.lost_pages.len()), (0, 0), "{extent}: {scrub:?}");
            }
        }
    });
}

fn seeds() -> u64 {
    std::env::var("TIER0_CRASH_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12)
}

#[test]
fn what_was_acknowledged_survives_power_cuts() {
    for seed in 0..seeds() {
        for shape in shapes() {
            println!("seed {seed}, {shape:?}");
            live(shape, seed, 6, Trouble::default());
        }
    }
}

#[test]
fn what_was_acknowledged_survives_power_cuts_with_the_loss_of_a_drive() {
    for seed in 1000..1000 + seeds() {
        for shape in shapes() {
            println!("seed {seed}, {shape:?}");
            live(shape, seed, 6, Trouble { lose: true, ..Trouble::default() });
        }
    }
}

#[test]
fn levels_without_redundancy_survive_too() {
    for seed in 2000..2000 + seeds() {
        live(Shape::new(RaidLevel::Raid0, 3), seed, 6, Trouble::default());
    }
}

#[test]
fn what_was_acknowledged_survives_power_cuts_while_extents_move() {
    for seed in 3000..3000 + seeds() {
        for shape in shapes() {
            // Where the log is short of room, the oldest pages are destaged in turn.
            let log_blocks = if seed % 2 == 0 { shape.log_blocks } else { 120 };
            let shape = Shape { log_blocks, ..shape };
            println!("seed {seed}, {shape:?}");
            live(shape, seed, 6, Trouble { lose: seed % 3 == 0, moves: true });
        }
    }
}
