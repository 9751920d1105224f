//! Drives that leave a running array for good: their data is rebuilt elsewhere, then the pool forgets them.

use crate::rig::{Drives, done, expect, pool, volume, write};
use tier0_array::admin::{AdminRequest, DriveState, Health};
use tier0_array::engine::Engine;
use tier0_pool::metadata::superblock;
use tier0_units::Nanos;
use tier0_world::World;

const SECTORS: u32 = 64;
const PIECES: u64 = 40;

async fn fill(world: &World, engine: &Engine) {
    for piece in 0..PIECES {
        write(world, &volume(engine, "lun0"), piece * 256, SECTORS, 1 + piece as u8).await;
    }
}

async fn check(world: &World, engine: &Engine) {
    for piece in 0..PIECES {
        expect(world, &volume(engine, "lun0"), piece * 256, SECTORS, 1 + piece as u8).await;
    }
}

/// Waits until a drive is listed no more.
async fn until_forgotten(world: &World, engine: &Engine, name: &str) {
    for _ in 0..600 {
        if pool(engine).await.drives.iter().all(|drive| drive.name != name) {
            return;
        }
        world.sleep(Nanos::from_millis(100)).await;
    }
    panic!("after a minute, drive {name} is still listed: {:?}", pool(engine).await);
}

/// An array with one drive more, which is not in it yet; its name.
fn founded(raid: &str, drives: usize, set_size: usize, shards: usize, seed: u64) -> (Drives, String) {
    let mut array = Drives::founded(raid, drives, set_size, shards, seed);
    let spare = array.plug_in();
    (array, spare)
}

/// The drive joins: its chunklets are spares.
async fn join(world: &World, engine: &Engine, drives: &Drives, name: &str) {
    let medium = drives.media.last().expect("it was plugged in");
    engine.add_drive(0, name, medium.open(world)).await.expect("it joins");
}

fn remove(drive: &str) -> AdminRequest {
    AdminRequest::DriveRemove { drive: drive.to_owned(), force: false, stop: false }
}

#[test]
fn a_drive_that_is_removed_is_forgotten_once_what_it_held_is_elsewhere() {
    for (raid, drives, set_size, shards) in [("raid1", 3, 2, 1), ("raid5", 5, 3, 2)] {
        let (array, spare) = founded(raid, drives, set_size, shards, 41);
        array.life(1, |world, engine, drives| async move {
            fill(&world, &engine).await;
            join(&world, &engine, &drives, &spare).await;
            done(&engine, remove("d1")).await;
            until_forgotten(&world, &engine, "d1").await;
            let status = pool(&engine).await;
            assert_eq!((status.health, status.sets.degraded), (Health::Healthy, 0), "{:?}", status.problems);
            check(&world, &engine).await;
            world.sleep(Nanos::from_secs(1)).await;
            let found = superblock::read(&drives.media[1].open(&world)).await.expect("it answers");
            assert!(found.is_none(), "it is in no pool");
        });
        array.life(2, |world, engine, _| async move {
            let status = pool(&engine).await;
            assert!(status.drives.iter().all(|drive| drive.name != "d1"), "{:?}", status.drives);
            assert_eq!(status.health, Health::Healthy, "{:?}", status.problems);
            check(&world, &engine).await;
        });
    }
}

#[test]
fn a_drive_that_was_lost_can_be_removed_later() {
    let (array, spare) = founded("raid5", 5, 3, 2, 42);
    array.life(1, |world, engine, drives| async move {
        fill(&world, &engine).await;
        join(&world, &engine, &drives, &spare).await;
        drives.media[2].disconnect();
        done(&engine, AdminRequest::DriveFail { drive: "d2".to_owned() }).await;
        world.sleep(Nanos::from_secs(60)).await;
        let status = pool(&engine).await;
        assert!(status.drives.iter().any(|drive| drive.name == "d2" && drive.state == DriveState::Lost));
        assert_eq!(status.health, Health::Warning, "{:?}", status.problems);
        done(&engine, remove("d2")).await;
        until_forgotten(&world, &engine, "d2").await;
        assert_eq!(pool(&engine).await.health, Health::Healthy);
        check(&world, &engine).await;
    });
}
