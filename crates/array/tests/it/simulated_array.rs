//! Arrays of modelled drives: every drive of the catalogue conforms, a seed reproduces a run, and losing a drive in the
//! middle of it loses no data.

use std::rc::Rc;

use tier0_api::AdminRequest;
use tier0_array::Volume;
use tier0_array::engine::Born;
use tier0_array::simulated::{ModelShelf, SimulatedArray, build};
use tier0_block::BlockTarget;
use tier0_catalog::{Catalog, DriveSpec};
use tier0_description::Description;
use tier0_drive::{DriveHandle, Fault, FaultDrive, FaultPlan, conformance};
use tier0_units::{ByteCount, Lba, Nanos};
use tier0_world::{PayloadWidth, VirtualRuntime, World};

use crate::rig::{create_volume, done, volume};

fn describe(model: &str, drives: usize, raid: &str) -> Description {
    let text = format!(
        "[array]\nname = \"a\"\n[[drive]]\nname = \"d{{n}}\"\ncount = {drives}\nmodel = \"{model}\"\n\
         [[pool]]\nname = \"p\"\nraid = \"{raid}\"\n[[volume]]\nname = \"v\"\nsize = \"64MiB\"\n"
    );
    Description::parse(&text, "built in").expect("a correct description")
}

/// Two drives, and a write cache that holds their log.
fn cached_text(model: &str, cache: &str, log: &str) -> String {
    format!(
        "[array]\nname = \"a\"\n[[drive]]\nname = \"d{{n}}\"\ncount = 2\nmodel = \"{model}\"\n\
         [[drive]]\nname = \"cache\"\nmodel = \"{cache}\"\n\
         [[pool]]\nname = \"p\"\nraid = \"raid1\"\nlog = \"{log}\"\nlog_drives = [\"cache\"]\n\
         [[volume]]\nname = \"v\"\nsize = \"64MiB\"\n"
    )
}

fn cached(model: &str, cache: &str, log: &str) -> Description {
    Description::parse(&cached_text(model, cache, log), "built in").expect("a correct description")
}

fn simulate(
    runtime: &VirtualRuntime,
    description: &Description,
    wrap: impl FnMut(usize, DriveHandle) -> DriveHandle,
) -> SimulatedArray {
    let mut shelf = ModelShelf::default();
    shelf.prepare(&Catalog::embedded(), description).expect("catalogue models");
    runtime.run(build(runtime.world(), description, &shelf, Born::Full, wrap)).expect("an array")
}

fn born_array(runtime: &VirtualRuntime, description: &Description, born: Born) -> SimulatedArray {
    let mut shelf = ModelShelf::default();
    shelf.prepare(&Catalog::embedded(), description).expect("catalogue models");
    let building = build(runtime.world(), description, &shelf, born, |_, drive| drive);
    runtime.run(building).expect("an array")
}

#[test]
fn every_drive_of_the_catalogue_conforms() {
    for drive in Catalog::embedded().drives() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let description = match drive {
            DriveSpec::Nvram(_) => cached("nvme", drive.id(), "8MiB"),
            _ => describe(drive.id(), 1, "raid0"),
        };
        let array = simulate(&runtime, &description, |_, drive| drive);
        let last = array.drives.last().expect("it has drives").clone();
        let (world, drive) = (runtime.world().clone(), last);
        let took = runtime.run(async move {
            conformance::run(&drive, 1).await;
            world.now()
        });
        assert!(took > Nanos::from_micros(100), "a modelled drive takes time, not {took}");
    }
}

/// The log has the size that it was given, not that of a disk's chunklet; a write is answered in the cache's time, and what
/// exceeds the cache, or is no log, is refused.
#[test]
fn a_write_cache_holds_the_log_of_disks() {
    let runtime = VirtualRuntime::new(1, PayloadWidth::NONE);
    let description = cached("sas-15k-146gb-sff", "ps6100xv-write-cache", "67MiB");
    let array = simulate(&runtime, &description, |_, drive| drive);
    // Beside two blocks of headers.
    assert_eq!(array.volumes[0].write_cache().log_bytes, (67 << 20) - 2 * 4096);
    let (world, volume) = (runtime.world().clone(), array.volumes[0].clone());
    let took = runtime.run(async move {
        let began = world.now();
        volume.write(Lba(0), world.buffer(16).freeze(), true).await.expect("a write succeeds");
        world.now() - began
    });
    assert!(took < Nanos::from_micros(100), "{took}");
    let refused = |text: String, words: &[&str]| {
        let error = Description::parse(&text, "a.toml").expect_err("it is wrong").to_string();
        words.iter().for_each(|word| assert!(error.contains(word), "{error}"));
    };
    refused(cached_text("nvme", "ps6100xv-write-cache", "1025MiB"), &["pool.log", "1025MiB", "1GiB"]);
    let text = cached_text("nvme", "ps6100xv-write-cache", "8MiB");
    let text = text.replace("log_drives = [\"cache\"]", "drives = [\"d0\", \"cache\"]");
    refused(text, &["\"cache\"", "log_drives"]);
}

/// Mixed reads and writes by several users for a while; returns the hash of all events and when it ended.
fn run_mixed(seed: u64, raid: &str) -> (u64, Nanos) {
    let runtime = VirtualRuntime::new(seed, PayloadWidth::NONE);
    let array = simulate(&runtime, &describe("sas-15k-146gb-sff", 6, raid), |_, drive| drive);
    let volume = array.volumes[0].clone();
    let tasks: Vec<_> = (0..8)
        .map(|user| {
            let (world, volume) = (runtime.world().clone(), volume.clone());
            runtime.world().spawn(async move {
                let mut random = world.random(user);
                for _ in 0..100 {
                    let sectors = 1 + random.below(64);
                    let lba = Lba(random.below(volume.info().sectors.0 - sectors));
                    let buf = world.buffer(sectors as u32);
                    if random.chance(0.5) {
                        volume.read(lba, buf).await.0.expect("a read succeeds");
                    } else {
                        volume.write(lba, buf.freeze(), random.chance(0.1)).await.expect("a write succeeds");
                    }
                }
            })
        })
        .collect();
    let world = runtime.world().clone();
    runtime.run(async move {
        for task in tasks {
            task.await;
        }
        (world.event_hash(), world.now())
    })
}

#[test]
fn a_seed_reproduces_the_run_event_by_event() {
    for raid in ["raid10", "raid5", "raid6"] {
        assert_eq!(run_mixed(1, raid), run_mixed(1, raid), "{raid}");
        assert_ne!(run_mixed(1, raid).0, run_mixed(2, raid).0, "{raid}");
    }
}

#[test]
fn a_drive_lost_in_the_middle_loses_no_data() {
    for (raid, drives) in [("raid1", 2), ("raid10", 4), ("raid5", 5), ("raid50", 6), ("raid6", 6)] {
        let runtime = VirtualRuntime::new(3, PayloadWidth::REAL);
        let faults = Rc::new(std::cell::RefCell::new(Vec::new()));
        let kept = faults.clone();
        let array = simulate(&runtime, &describe("nvme", drives, raid), |number, drive| {
            let fault = FaultDrive::new(drive, number as u64);
            kept.borrow_mut().push(fault.clone());
            DriveHandle::new(fault)
        });
        let (world, volume) = (runtime.world().clone(), array.volumes[0].clone());
        runtime.run(async move {
            let sectors = volume.info().sectors.0;
            let blocks = (sectors / 16) as usize;
            let mut versions = vec![0u64; blocks];
            let mut random = world.random(5);
            for step in 0..3000u64 {
                if step == 1000 {
                    // The slow death: it delays commands, then fails a write, and is gone.
                    faults.borrow()[1].inject(FaultPlan::share(Fault::Latency(Nanos::from_millis(5)), 0.5));
                    faults.borrow()[1].inject(FaultPlan::once(Fault::WriteError));
                }
                let block = random.below(blocks as u64);
                if random.chance(0.6) {
                    let mut buf = world.buffer(16);
                    buf.as_mut_slice()
                        .chunks_exact_mut(8)
                        .for_each(|s| s.copy_from_slice(&(step + 1).to_le_bytes()));
                    volume.write(Lba(block * 16), buf.freeze(), false).await.expect("a write succeeds");
                    versions[block as usize] = step + 1;
                } else {
                    let (result, buf) = volume.read(Lba(block * 16), world.buffer(16)).await;
                    result.expect("a read succeeds");
                    let expected = versions[block as usize].to_le_bytes();
                    assert!(
                        buf.as_slice().chunks_exact(8).all(|s| s == expected),
                        "{raid}: block {block} at {step}"
                    );
                }
            }
            assert!(faults.borrow()[1].struck_count() > 0, "{raid}: the drive did die");
        });
    }
}

/// The pool of a description with these options.
fn with_options(mut description: Description, (log, checksums): (bool, bool)) -> Description {
    (description.pools[0].log, description.pools[0].checksums) = (log, checksums);
    description
}

const OPTIONS: [(bool, bool); 3] = [(true, true), (true, false), (false, false)];

async fn expect_marks(world: &World, volume: &Volume, lba: u64, marks: &[u8], why: &str) {
    let (result, buf) = volume.read(Lba(lba), world.buffer(marks.len() as u32)).await;
    result.expect("a read succeeds");
    for (sector, mark) in buf.as_slice().chunks_exact(512).zip(marks) {
        assert!(sector.iter().all(|byte| byte == mark), "{why}: {} for {mark}", sector[0]);
    }
}

#[test]
fn what_was_written_is_read_again_with_every_option_of_a_pool() {
    for (raid, drives) in [("raid0", 2), ("raid10", 4), ("raid5", 4), ("raid6", 4)] {
        for (options, born) in OPTIONS.into_iter().flat_map(|o| [(o, Born::Empty), (o, Born::Full)]) {
            let runtime = VirtualRuntime::new(7, PayloadWidth::REAL);
            let description = with_options(describe("sas-15k-146gb-sff", drives, raid), options);
            let array = born_array(&runtime, &description, born);
            let (world, volume) = (runtime.world().clone(), array.volumes[0].clone());
            let why = format!("{raid}, log and checksums {options:?}, {born:?}");
            runtime.run(async move {
                let mut random = world.random(1);
                // Around a boundary of extents.
                let (first, mut marks) = (1800, vec![0u8; 600]);
                for step in 0..250u64 {
                    let count = 1 + random.below(40);
                    let at = random.below(600 - count);
                    let range = at as usize..(at + count) as usize;
                    let lba = Lba(first + at);
                    match random.below(4) {
                        0 => {
                            volume.write_zeroes(lba, count, true, false).await.expect("zeros are written");
                            marks[range].fill(0);
                        }
                        1 => expect_marks(&world, &volume, lba.0, &marks[range], &why).await,
                        _ => {
                            let mark = (step % 255) as u8 + 1;
                            let mut buf = world.buffer(count as u32);
                            buf.as_mut_slice().fill(mark);
                            volume.write(lba, buf.freeze(), false).await.expect("a write succeeds");
                            marks[range].fill(mark);
                        }
                    }
                }
                array.engine.drain().await.expect("everything is destaged");
                expect_marks(&world, &volume, first, &marks, &why).await;
                expect_marks(&world, &volume, 0, &[0; 1800], &why).await;
            });
        }
    }
}

/// Without slot tables nothing says that a slot holds what a deleted volume has left there.
#[test]
fn a_new_volume_does_not_show_what_a_deleted_one_held() {
    for options in OPTIONS {
        let runtime = VirtualRuntime::new(7, PayloadWidth::REAL);
        let description = with_options(describe("sas-15k-146gb-sff", 4, "raid5"), options);
        let array = born_array(&runtime, &description, Born::Empty);
        let world = runtime.world().clone();
        runtime.run(async move {
            let mut secret = world.buffer(4096);
            secret.as_mut_slice().fill(0xa5);
            array.volumes[0].write(Lba(0), secret.freeze(), false).await.expect("a write succeeds");
            array.engine.drain().await.expect("everything is destaged");
            drop(array.volumes);
            let delete = AdminRequest::VolumeDelete { volume: "v".to_owned(), force: true };
            done(&array.engine, delete).await;
            done(&array.engine, create_volume("w", ByteCount::mib(4), false)).await;
            let volume = volume(&array.engine, "w");
            let mut marks = vec![0u8; 4096];
            for at in [5, 2060] {
                let mut buf = world.buffer(3);
                buf.as_mut_slice().fill(1);
                volume.write(Lba(at), buf.freeze(), false).await.expect("a write succeeds");
                marks[at as usize..at as usize + 3].fill(1);
            }
            expect_marks(&world, &volume, 0, &marks, &format!("{options:?}")).await;
            array.engine.drain().await.expect("everything is destaged");
            expect_marks(&world, &volume, 0, &marks, &format!("{options:?}, destaged")).await;
        });
    }
}
