//! A whole protected array in one virtual world on drives that lose power: what was acknowledged is there afterwards.

use tier0_array::Description;
use tier0_array::admin::Health;
use tier0_array::engine::{Engine, create, start};
use tier0_drive::sim::{PowerCut, PowerSwitch, SimMedium, SimOptions};
use tier0_drive::{BlockTarget, DriveHandle};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{IoError, PayloadWidth, VirtualRuntime, World};

const DRIVE_SECTORS: u64 = (32 << 20) / 512;

fn describe(raid: &str, drives: usize, spare: usize) -> Description {
    let text = format!(
        r#"
[array]
name = "test"

[[drive]]
name = "d{{n}}"
count = {drives}
path = "d{{n}}"

[[pool]]
name = "pool0"
raid = "{raid}"
set_size = {}
spare_drives = {spare}
chunklet = "2MiB"
log = "2MiB"

[[volume]]
name = "lun0"
size = "6MiB"
thin = true
"#,
        drives - spare
    );
    Description::parse(&text, "test.toml").expect("a correct description")
}

fn media(count: usize, seed: u64) -> Vec<SimMedium> {
    let switch = PowerSwitch::default();
    let medium = |n: usize| {
        SimMedium::new(
            SimOptions::new(&format!("d{n}"), SectorCount(DRIVE_SECTORS), seed * 100 + n as u64),
            &switch,
        )
    };
    (0..count).map(medium).collect()
}

/// One life of the array's world.
fn live<F: Future<Output = T> + 'static, T: 'static>(seed: u64, life: impl FnOnce(World) -> F) -> T {
    let runtime = VirtualRuntime::new(seed, PayloadWidth::REAL);
    let world = runtime.world().clone();
    runtime.run(life(world))
}

fn open(world: &World, media: &[SimMedium]) -> Vec<DriveHandle> {
    media.iter().map(|medium| medium.open(world)).collect()
}

async fn write(world: &World, engine: &Engine, lba: u64, sectors: u32, value: u8) {
    let mut buf = world.buffer(sectors);
    buf.as_mut_slice().fill(value);
    engine.volumes()[0].write(Lba(lba), buf.freeze(), false).await.expect("a write succeeds");
}

async fn read(world: &World, engine: &Engine, lba: u64, sectors: u32) -> Result<Vec<u8>, IoError> {
    let (result, buf) = engine.volumes()[0].read(Lba(lba), world.buffer(sectors)).await;
    result.map(|()| buf.as_slice().to_vec())
}

async fn expect(world: &World, engine: &Engine, lba: u64, sectors: u32, value: u8) {
    let bytes = read(world, engine, lba, sectors).await.expect("a read succeeds");
    assert!(bytes.iter().all(|byte| *byte == value), "sector {lba} holds {}, not {value}", bytes[0]);
}

fn founded(raid: &str, drives: usize, spare: usize, shards: usize, seed: u64) -> Vec<SimMedium> {
    let media = media(drives, seed);
    let own = media.clone();
    let description = describe(raid, drives, spare);
    live(seed, |world| async move {
        create(&world, &description, open(&world, &own), shards).await.expect("created");
    });
    media
}

const SHAPES: [(&str, usize); 6] =
    [("raid0", 2), ("raid1", 2), ("raid10", 4), ("raid5", 4), ("raid50", 6), ("raid6", 5)];

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    for (raid, drives) in SHAPES {
        for (seed, shards) in [(1, 1), (2, 3)] {
            let media = founded(raid, drives, 0, shards, seed);
            let own = media.clone();
            live(seed, |world| async move {
                let engine = start(&world, open(&world, &own)).await.expect("started");
                for (i, lba) in [0, 8, 100, 2040, 4096, 9000].into_iter().enumerate() {
                    write(&world, &engine, lba, 20, 1 + i as u8).await;
                }
                // Some of it is destaged, some is not.
                world.sleep(Nanos::from_secs(seed * 15)).await;
                write(&world, &engine, 8, 4, 77).await;
            });
            media.iter().for_each(|medium| medium.power_cut(PowerCut::Any));
            let own = media.clone();
            live(seed + 10, |world| async move {
                let engine = start(&world, open(&world, &own)).await.expect("started again");
                expect(&world, &engine, 0, 8, 1).await;
                expect(&world, &engine, 8, 4, 77).await;
                expect(&world, &engine, 12, 16, 2).await;
                expect(&world, &engine, 100, 20, 3).await;
                expect(&world, &engine, 2040, 20, 4).await;
                expect(&world, &engine, 9000, 20, 6).await;
                expect(&world, &engine, 9020, 400, 0).await;
                let status = engine.status().await;
                assert_eq!(status.health, Health::Healthy, "{raid}: {}", status.summary);
                engine.drain().await.expect("destaged");
                expect(&world, &engine, 8, 4, 77).await;
            });
        }
    }
}

#[test]
fn a_lost_drive_is_rebuilt_on_spares() {
    for (raid, drives, spare) in [("raid10", 5, 1), ("raid5", 5, 1), ("raid6", 6, 1)] {
        let media = founded(raid, drives, spare, 2, 5);
        let own = media.clone();
        live(7, |world| async move {
            let engine = start(&world, open(&world, &own)).await.expect("started");
            for i in 0..40 {
                write(&world, &engine, i * 256, 16, 1 + i as u8).await;
            }
            engine.drain().await.expect("destaged");
            own[1].unplug();
            for i in 0..40 {
                expect(&world, &engine, i * 256, 16, 1 + i as u8).await;
                write(&world, &engine, i * 256 + 8, 8, 101 + i as u8).await;
            }
            engine.drain().await.expect("destaged without the drive");
            for _ in 0..600 {
                if engine.status().await.pools[0].sets.degraded == 0 {
                    break;
                }
                world.sleep(Nanos::from_secs(1)).await;
            }
            let status = engine.status().await;
            assert_eq!(status.pools[0].sets.degraded, 0, "{raid}: {}", status.summary);
            own[2].unplug();
            for i in 0..40 {
                expect(&world, &engine, i * 256, 8, 1 + i as u8).await;
                expect(&world, &engine, i * 256 + 8, 8, 101 + i as u8).await;
            }
        });
        media.iter().for_each(|medium| medium.power_cut(PowerCut::Any));
        media[1].reconnect();
        let own = media.clone();
        live(8, |world| async move {
            let engine = start(&world, open(&world, &own)).await.expect("started again");
            for i in 0..40 {
                expect(&world, &engine, i * 256, 8, 1 + i as u8).await;
                expect(&world, &engine, i * 256 + 8, 8, 101 + i as u8).await;
            }
        });
    }
}

#[test]
fn a_lost_log_drive_is_replaced_and_the_other_may_die_after() {
    let media = founded("raid6", 6, 1, 2, 9);
    let own = media.clone();
    live(9, |world| async move {
        let engine = start(&world, open(&world, &own)).await.expect("started");
        for lost in [0, 1] {
            own[lost].unplug();
            for i in 0..10 {
                write(&world, &engine, i * 512, 16, lost as u8 * 20 + i as u8 + 1).await;
            }
            for _ in 0..600 {
                if engine.status().await.pools[0].log.expect("there is a log").copies == 3 {
                    break;
                }
                world.sleep(Nanos::from_secs(1)).await;
            }
            let status = engine.status().await;
            assert_eq!(status.pools[0].log.expect("there is a log").copies, 3, "{}", status.summary);
        }
        for i in 0..10 {
            write(&world, &engine, i * 512, 8, 91 + i as u8).await;
        }
    });
    media.iter().for_each(|medium| medium.power_cut(PowerCut::Any));
    let own: Vec<SimMedium> = media[2..].to_vec();
    live(10, |world| async move {
        let engine = start(&world, open(&world, &own)).await.expect("started again");
        for i in 0..10 {
            expect(&world, &engine, i * 512, 8, 91 + i as u8).await;
            expect(&world, &engine, i * 512 + 8, 8, 21 + i as u8).await;
        }
    });
}
