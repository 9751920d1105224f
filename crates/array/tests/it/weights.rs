//! Weights of volumes, on modelled drives in virtual time: a flood of writes to one volume does not queue in front of another
//! volume's, and floods share what the drives bear by their weights.

use std::cell::RefCell;
use std::rc::Rc;

use tier0_api::AdminRequest;
use tier0_array::Volume;
use tier0_array::engine::Born;
use tier0_array::simulated::{ModelShelf, build};
use tier0_block::BlockTarget;
use tier0_catalog::Catalog;
use tier0_description::Description;
use tier0_units::{Lba, Nanos, SECTOR_BYTES};
use tier0_world::{PayloadWidth, Random, VirtualRuntime, World};

use crate::rig::{Drives, done, pool, refused};

/// Requests that a flood has under way.
const FLOOD_DEPTH: u64 = 64;
/// Until the log is full and the rates are measured.
const WARM_UP: Nanos = Nanos::from_secs(10);
const MEASURED: Nanos = Nanos::from_secs(20);

/// What hosts do to a volume.
#[derive(Clone, Copy)]
struct Load {
    /// Requests under way, each followed by the next after a pause of twice that mean.
    depth: u64,
    pause: Nanos,
    sectors: u32,
}

const FLOOD: Load = Load { depth: FLOOD_DEPTH, pause: Nanos::ZERO, sectors: 128 };
const QUIET: Load = Load { depth: 1, pause: Nanos::from_millis(20), sectors: 16 };

/// Mirrored disks, with the log on flash, under two volumes with these weights.
fn describe(weights: [u32; 2]) -> Description {
    let [first, second] = weights;
    let text = format!(
        "[array]\nname = \"a\"\n[[drive]]\nname = \"d{{n}}\"\ncount = 4\nmodel = \"sas-15k-146gb-sff\"\n\
         [[drive]]\nname = \"log{{n}}\"\ncount = 2\nmodel = \"ssd-sas-400gb\"\n\
         [[pool]]\nname = \"p\"\nraid = \"raid10\"\nlog = \"64MiB\"\nlog_drives = [\"log*\"]\n\
         [[volume]]\nname = \"first\"\nsize = \"4GiB\"\nweight = {first}\n\
         [[volume]]\nname = \"second\"\nsize = \"4GiB\"\nweight = {second}\n"
    );
    Description::parse(&text, "built in").expect("a correct description")
}

/// One host's writes to random places of `volume`; latencies of what ends while it is measured.
async fn write_on(world: World, volume: Volume, load: Load, mut random: Random) -> Vec<u64> {
    let (places, mut latencies) = (volume.info().sectors.0 / u64::from(load.sectors), Vec::new());
    loop {
        let began = world.now();
        let lba = Lba(random.below(places) * u64::from(load.sectors));
        volume.write(lba, world.buffer(load.sectors).freeze(), false).await.expect("written");
        let now = world.now();
        if now > WARM_UP + MEASURED {
            return latencies;
        }
        if now > WARM_UP {
            latencies.push((now - began).0);
        }
        world.sleep(Nanos(random.below(2 * load.pause.0 + 1))).await;
    }
}

/// The latencies, sorted, of what these hosts write to each volume.
fn latencies(weights: [u32; 2], loads: [Option<Load>; 2]) -> [Vec<u64>; 2] {
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let (world, description) = (runtime.world().clone(), describe(weights));
    let mut shelf = ModelShelf::default();
    shelf.prepare(&Catalog::embedded(), &description).expect("catalogue models");
    let building = build(&world, &description, &shelf, Born::Full, |_, drive| drive);
    let array = runtime.run(building).expect("an array");
    let all = Rc::new(RefCell::new([Vec::new(), Vec::new()]));
    let mut hosts = Vec::new();
    for (number, load) in loads.into_iter().enumerate() {
        let Some(load) = load else { continue };
        for host in 0..load.depth {
            let (world, volume, all) = (world.clone(), array.volumes[number].clone(), all.clone());
            let random = world.random(number as u64 * 1000 + host);
            hosts.push(world.clone().spawn(async move {
                let own = write_on(world, volume, load, random).await;
                all.borrow_mut()[number].extend(own);
            }));
        }
    }
    runtime.run(async move { futures_util::future::join_all(hosts).await });
    let mut all = all.take();
    all.iter_mut().for_each(|latencies| latencies.sort_unstable());
    all
}

/// In microseconds.
fn p99(sorted: &[u64]) -> f64 {
    sorted[(sorted.len() - 1) * 99 / 100] as f64 / 1e3
}

#[test]
fn a_flood_of_writes_does_not_queue_in_front_of_another_volume() {
    let [_, alone] = latencies([10, 10], [None, Some(QUIET)]);
    for weight in [10, 100] {
        let [flood, beside] = latencies([10, weight], [Some(FLOOD), Some(QUIET)]);
        let megabytes = flood.len() as u64 * u64::from(FLOOD.sectors) * SECTOR_BYTES / 1_000_000;
        let (alone, flooded, beside) = (p99(&alone), p99(&flood), p99(&beside));
        println!(
            "weight {weight}: p99 of the quiet volume {beside:.0} us, alone {alone:.0} us; of the flood {flooded:.0} us, {megabytes} MB"
        );
        assert!(flooded > 20_000.0, "the flood is delayed: {flooded}");
        // What is left is a frame of the flood that is on its way into the log: 64 KiB at 400 MB/s take 164 us.
        assert!(beside <= alone + 200.0, "{beside} us beside the flood, {alone} us alone, weight {weight}");
    }
}

#[test]
fn floods_share_by_their_weights() {
    for weights in [[10, 10], [10, 40]] {
        let written = latencies(weights, [Some(FLOOD), Some(FLOOD)]).map(|all| all.len() as f64);
        let ratio = written[1] / written[0] / (f64::from(weights[1]) / f64::from(weights[0]));
        println!("weights {weights:?}: {written:?} requests");
        assert!((0.9..1.1).contains(&ratio), "{weights:?}: {written:?}");
    }
}

#[test]
fn weights_are_set_while_the_array_serves_and_survive_a_power_cut() {
    let weigh = |weight| AdminRequest::VolumeWeight { volume: "lun0".to_owned(), weight };
    let array = Drives::founded("raid1", 2, 2, 2, 68);
    array.life(1, move |_, engine, _| async move {
        assert_eq!(pool(&engine).await.volumes[0].weight, 10);
        let told = done(&engine, weigh(50)).await;
        assert_eq!(told, "volume lun0: weight 50 from now on");
        let told = done(&engine, weigh(50)).await;
        assert!(told.contains("weight 50 already"), "{told}");
        for wrong in [0, 101] {
            let told = refused(&engine, weigh(wrong)).await;
            assert!(told.contains("set weight to 1 to 100"), "{told}");
        }
    });
    array.life(2, |_, engine, _| async move {
        assert_eq!(pool(&engine).await.volumes[0].weight, 50);
    });
}
