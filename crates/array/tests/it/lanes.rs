//! Lanes: a group of slow drives that is written to faster than it can be does not hold up the volumes of another.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_api::{AdminReply, AdminRequest};
use tier0_array::Volume;
use tier0_array::engine::Born;
use tier0_array::simulated::{ModelShelf, build};
use tier0_block::BlockTarget;
use tier0_cache::Stage;
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::{ByteCount, Lba, Nanos};
use tier0_world::{IoError, PayloadWidth, VirtualRuntime, World};

use crate::groups;
use crate::rig::trouble::within;
use crate::rig::{Drives, MIB, create_volume, expect, pool, try_write, volume, write};

/// Requests of 8 KiB that hosts of the flash volume have under way.
const FAST_USERS: u64 = 8;
/// How many are measured, after half as many that bring cache and drives into the state that the load gives them: several
/// times what the log takes.
const FAST_REQUESTS: usize = 60_000;
/// Writes of 8 KiB that hosts of the nearline volume have under way.
const SLOW_USERS: u64 = 64;
const SECTORS: u64 = 16;

/// A mirror of flash drives, which hold the log too, and mirrors of nearline disks.
fn describe(mode: &str) -> Description {
    let text = format!(
        r#"
[array]
name = "a"

[[drive]]
name = "ssd{{n}}"
count = 2
model = "ssd-sata"

[[drive]]
name = "disk{{n}}"
count = 4
model = "nl-7k2"

[[pool]]
name = "p"
log = "64MiB"

[[pool.group]]
name = "flash"
drives = ["ssd*"]
raid = "raid1"
set_size = 2

[[pool.group]]
name = "nearline"
drives = ["disk*"]
raid = "raid10"
set_size = 4

[[volume]]
name = "fast"
size = "64GiB"
write_cache = "{mode}"

[[volume]]
name = "slow"
size = "400GiB"
group = "nearline"
write_cache = "{mode}"
"#
    );
    Description::parse(&text, "a.toml").expect("a correct description")
}

fn place(random: &mut tier0_world::Random, volume: &Volume) -> Lba {
    Lba(random.below(volume.info().sectors.0 / SECTORS) * SECTORS)
}

/// Writes to all of a volume, as fast as they go, until `stop`.
async fn saturate(world: World, volume: Volume, user: u64, stop: Rc<Cell<bool>>) {
    let mut random = world.random(0x510 + user);
    while !stop.get() {
        let lba = place(&mut random, &volume);
        volume.write(lba, world.buffer(SECTORS as u32).freeze(), false).await.expect("a write succeeds");
    }
}

/// Seven reads to three writes, each after the other; what they took, by kind.
async fn serve(world: World, volume: Volume, user: u64, count: usize, took: Rc<RefCell<[Vec<Nanos>; 2]>>) {
    let mut random = world.random(0xfa57 + user);
    let done = || took.borrow().iter().map(Vec::len).sum::<usize>();
    while done() < count {
        let lba = place(&mut random, &volume);
        let (began, is_write) = (world.now(), random.chance(0.3));
        if is_write {
            volume.write(lba, world.buffer(SECTORS as u32).freeze(), false).await.expect("a write succeeds");
        } else {
            volume.read(lba, world.buffer(SECTORS as u32)).await.0.expect("a read succeeds");
        }
        took.borrow_mut()[usize::from(is_write)].push(world.now() - began);
    }
}

/// The 99th percentiles of reads and writes of the flash volume, and the nearline volume's writes per second meanwhile.
fn run(mode: &str, is_beside: bool) -> ([Nanos; 2], f64) {
    let runtime = VirtualRuntime::new(11, PayloadWidth::NONE);
    let mut shelf = ModelShelf::default();
    let description = describe(mode);
    shelf.prepare(&Catalog::embedded(), &description).expect("catalogue models");
    let world = runtime.world().clone();
    let building = build(&world, &description, &shelf, Born::Full, |_, drive| drive);
    let array = runtime.run(building).expect("an array");
    let [fast, slow] = [array.volumes[0].clone(), array.volumes[1].clone()];
    runtime.run(async move {
        let stop = Rc::new(Cell::new(false));
        let mut writers = Vec::new();
        if is_beside {
            for user in 0..SLOW_USERS {
                writers.push(world.spawn(saturate(world.clone(), slow.clone(), user, stop.clone())));
            }
            // In mode off its log never fills.
            let deadline = world.now() + Nanos::from_secs(30);
            while slow.write_cache().stage != Stage::Throttling && world.now() < deadline {
                world.sleep(Nanos::from_millis(10)).await;
            }
        }
        let measure = async |count| {
            let took = Rc::new(RefCell::new([Vec::new(), Vec::new()]));
            let user = |user| world.spawn(serve(world.clone(), fast.clone(), user, count, took.clone()));
            join_all((0..FAST_USERS).map(user)).await;
            took
        };
        measure(FAST_REQUESTS / 2).await;
        let (began, before) = (world.now(), slow.write_cache().written_pages);
        let took = measure(FAST_REQUESTS).await;
        let pages = slow.write_cache().written_pages - before;
        let rate = pages as f64 / 2.0 / (world.now() - began).as_secs_f64();
        stop.set(true);
        join_all(writers).await;
        let p99 = |took: &mut Vec<Nanos>| {
            took.sort_unstable();
            took[took.len() * 99 / 100]
        };
        let mut took = took.borrow_mut();
        ([p99(&mut took[0]), p99(&mut took[1])], rate)
    })
}

#[test]
fn a_saturated_group_of_slow_drives_leaves_flash_as_it_is() {
    for mode in ["durable", "volatile", "off"] {
        let (alone, _) = run(mode, false);
        let (beside, rate) = run(mode, true);
        println!("{mode}: alone {alone:?}, beside {beside:?}, nearline {rate:.0} writes/s");
        for (kind, (alone, beside)) in ["reads", "writes"].iter().zip(alone.into_iter().zip(beside)) {
            assert!(
                beside.0 as f64 <= alone.0 as f64 * 1.25,
                "{mode}: p99 of {kind} is {beside} beside nearline disks, and {alone} alone"
            );
        }
    }
}

/// What the hosts of a volume met: acknowledged writes, and failed ones.
type Met = Rc<Cell<(u32, u32)>>;

/// Writes 32 KiB twice a second, round and round on the first MiB.
async fn write_on(world: World, volume: Volume, rounds: u32, met: Met) {
    for round in 0..rounds {
        let lba = u64::from(round) * 64 % MIB;
        let (well, badly) = met.get();
        let written = try_write(&world, &volume, lba, 64, (round % 200) as u8 + 1).await;
        met.set(if written.is_ok() { (well + 1, badly) } else { (well, badly + 1) });
        world.sleep(Nanos::from_millis(500)).await;
    }
}

/// The drives of a group are away for longer than hosts wait. Its volume's writes fail then; another group's takes twenty
/// times what its part of the log holds, and none of them waits for long or fails.
#[test]
fn a_group_that_is_away_holds_up_no_other() {
    let array = Drives::described(groups::describe(), 8, 2, 74);
    array.troubled_life(1, |world, engine, troubles| async move {
        let [fast, slow] = ["lun0", "lun1"].map(|name| volume(&engine, name));
        write(&world, &slow, 0, MIB as u32, 7).await;
        engine.drain().await.expect("destaged");
        troubles.of[4..].iter().for_each(|trouble| trouble.fail(Some(IoError::Os(5))));
        let [fast_met, slow_met] = [Met::default(), Met::default()];
        let began = world.now();
        let slow_hosts: Vec<_> = (0..8)
            .map(|_| world.spawn(write_on(world.clone(), slow.clone(), 300, slow_met.clone())))
            .collect();
        write_on(world.clone(), fast.clone(), 640, fast_met.clone()).await;
        assert_eq!(fast_met.get(), (640, 0));
        let took = world.now() - began;
        assert!(took < Nanos::from_secs(330), "{took} for writes twice a second");
        assert!(slow_met.get().1 > 0, "{:?}", slow_met.get());
        let status = pool(&engine).await;
        let waits = status.paused.expect("it is paused").drives;
        assert!(!waits.is_empty() && waits.iter().all(|drive| drive.as_str() >= "d4"), "{waits:?}");
        let [flash, nearline] = groups::groups(&engine).await.map(|group| group.log.expect("a lane"));
        assert!(flash.used_bytes < nearline.used_bytes, "{flash:?} {nearline:?}");
        troubles.of.iter().for_each(|trouble| trouble.fail(None));
        let whole = within(&world, Nanos::from_secs(60), async || pool(&engine).await.paused.is_none());
        assert!(whole.await);
        join_all(slow_hosts).await;
        write(&world, &slow, 0, MIB as u32, 9).await;
        engine.drain().await.expect("destaged");
        expect(&world, &slow, 0, MIB as u32, 9).await;
        write(&world, &fast, 0, MIB as u32, 8).await;
    });
    array.life(2, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 0, MIB as u32, 8).await;
        expect(&world, &volume(&engine, "lun1"), 0, MIB as u32, 9).await;
    });
}

/// Groups whose drives are away since different times: status and events say which group's hosts get errors.
#[test]
fn each_group_that_is_away_is_told_of() {
    let array = Drives::described(groups::describe(), 8, 2, 76);
    array.troubled_life(1, |world, engine, troubles| async move {
        let [fast, slow] = ["lun0", "lun1"].map(|name| volume(&engine, name));
        for lun in [&fast, &slow] {
            write(&world, lun, 0, MIB as u32, 7).await;
        }
        engine.drain().await.expect("destaged");
        for lun in [&fast, &slow] {
            world.spawn(write_on(world.clone(), lun.clone(), 3000, Met::default())).detach();
        }
        let next = async || pool(&engine).await.paused.expect("it is paused").next;
        let refusals = async || {
            let events = engine.status().await.events;
            let is_it = |event: &&tier0_api::Event| event.what.contains("hosts get errors");
            events.iter().filter(is_it).map(|event| event.thing.clone()).collect::<Vec<_>>()
        };
        troubles.of[4..].iter().for_each(|trouble| trouble.fail(Some(IoError::Os(5))));
        world.sleep(Nanos::from_secs(60)).await;
        let text = next().await;
        assert!(text.contains("wait, for") && text.contains("; group fast goes on;"), "{text}");
        world.sleep(Nanos::from_secs(140)).await;
        let text = next().await;
        assert!(text.contains("get errors; group fast goes on;"), "{text}");
        assert_eq!(refusals().await, ["pool pool0, group slow"]);
        troubles.of[..4].iter().for_each(|trouble| trouble.fail(Some(IoError::Os(5))));
        world.sleep(Nanos::from_secs(60)).await;
        let text = next().await;
        assert!(text.contains("of group slow") && text.contains("those of group fast wait, for"), "{text}");
        world.sleep(Nanos::from_secs(120)).await;
        let text = next().await;
        assert!(text.contains("that need them get errors; everything"), "{text}");
        assert_eq!(refusals().await, ["pool pool0, group slow", "pool pool0, group fast"]);
        troubles.of.iter().for_each(|trouble| trouble.fail(None));
        let whole = within(&world, Nanos::from_secs(60), async || pool(&engine).await.paused.is_none());
        assert!(whole.await);
    });
}

/// A volume that is deleted may wait for space under the drives of its group: whoever asks for something meanwhile learns it.
#[test]
fn what_waits_for_space_is_answered() {
    let array = Drives::described(groups::describe(), 8, 2, 77);
    array.troubled_life(1, |world, engine, troubles| async move {
        let slow = volume(&engine, "lun1");
        troubles.of[4..].iter().for_each(|trouble| trouble.fail_writes(IoError::NoSpace));
        for round in 0..8 {
            let _ = try_write(&world, &slow, round * 64, 64, 7).await;
        }
        world.sleep(Nanos::from_secs(30)).await;
        let delete = AdminRequest::VolumeDelete { volume: "lun1".to_owned(), force: true };
        let create = create_volume("more", ByteCount::mib(1), true);
        for request in [delete, create] {
            let began = world.now();
            let answer = engine.administer(request).await;
            let AdminReply::Failed(text) = answer else { panic!("{answer:?}") };
            assert!(text.contains("lacks space under drive") && text.contains("give it space"), "{text}");
            assert!(world.now() - began < Nanos::from_secs(10));
        }
        troubles.of.iter().for_each(|trouble| trouble.fail(None));
        let done = within(&world, Nanos::from_secs(60), async || {
            let volumes = pool(&engine).await.volumes;
            volumes.iter().map(|volume| volume.name.as_str()).eq(["lun0", "more"])
        });
        assert!(done.await, "{:?}", pool(&engine).await.volumes);
    });
}
