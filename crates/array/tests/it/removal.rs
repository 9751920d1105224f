//! Drives that leave a running array for good: their data is rebuilt elsewhere, then the pool forgets them.

use crate::rig::{Drives, describe, done, expect, pool, refused, volume, write};
use tier0_api::{AdminReply, AdminRequest, DriveState, Health};
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

/// The spare was eaten without a word, and the status said that all was well.
#[test]
fn a_drive_that_is_removed_may_take_the_spare_along() {
    for fail in [false, true] {
        let mut array = Drives::described(describe("raid1", 4, 2, "spare_drives = 1"), 4, 1, 47);
        let new = array.plug_in();
        array.life(1, move |world, engine, drives| async move {
            fill(&world, &engine).await;
            let whole = pool(&engine).await;
            assert_eq!(whole.health, Health::Healthy, "{:?}", whole.problems);
            if fail {
                done(&engine, AdminRequest::DriveFail { drive: "d3".to_owned() }).await;
            }
            let told = done(&engine, remove("d3")).await;
            assert!(told.contains("; then spares: "), "{told}");
            until_forgotten(&world, &engine, "d3").await;
            let short = pool(&engine).await;
            let told = &short.problems[..];
            assert!(short.health == Health::Warning && told.len() == 1, "{told:?}");
            assert!(told[0].starts_with("spares: ") && told[0].contains("tier0 drive add"), "{told:?}");
            join(&world, &engine, &drives, &new).await;
            let whole = pool(&engine).await;
            assert_eq!(whole.health, Health::Healthy, "{:?}", whole.problems);
            check(&world, &engine).await;
        });
    }
}

fn fail(drive: &str) -> AdminRequest {
    AdminRequest::DriveFail { drive: drive.to_owned() }
}

/// What would be said against that, before anybody agrees to it.
async fn could_fail(engine: &Engine, drive: &str) -> Vec<String> {
    match engine.administer(AdminRequest::CouldFail { drive: drive.to_owned() }).await {
        AdminReply::Objections(objections) => objections,
        reply => panic!("{reply:?}"),
    }
}

const REPLACE_D1: &str = "tier0 drive replace ARRAY d1 --name NEW --path PATH";

/// `--force` was advised where it was sure to be refused, and a rebuild where there was none to wait for.
#[test]
fn no_remedy_is_advised_that_would_be_refused() {
    let array = Drives::founded("raid1", 2, 2, 1, 48);
    array.life(1, |world, engine, _| async move {
        fill(&world, &engine).await;
        assert!(pool(&engine).await.log.is_some_and(|log| log.drives == ["d0", "d1"]));
        let told = refused(&engine, remove("d1")).await;
        assert!(told.contains("--force") && told.contains(REPLACE_D1), "{told}");
        assert_eq!(could_fail(&engine, "d0").await, [""; 0]);
        done(&engine, fail("d0")).await;
        world.sleep(Nanos::from_secs(10)).await;
        let told = refused(&engine, remove("d1")).await;
        assert!(!told.contains("--force") && told.contains(REPLACE_D1), "{told}");
        let told = refused(&engine, fail("d1")).await;
        assert!(!told.contains("rebuild") && told.contains("bring other drives back"), "{told}");
        assert_eq!(could_fail(&engine, "d1").await, [told]);
        let log = pool(&engine).await.log.expect("it has one");
        assert_eq!((log.copies, log.drives), (1, vec!["d1".to_owned()]));
    });
}

/// "everything is redundant" was said of RAID 0, and what its drives hold was to be waited for.
#[test]
fn raid0_is_not_told_as_redundant() {
    let array = Drives::founded("raid0", 2, 2, 1, 49);
    array.life(1, |world, engine, _| async move {
        fill(&world, &engine).await;
        assert_eq!(engine.status().await.summary, "healthy: all drives online");
        let told = refused(&engine, remove("d1")).await;
        assert!(!told.contains("--force") && told.contains(REPLACE_D1), "{told}");
        let told = refused(&engine, fail("d1")).await;
        assert!(!told.contains("rebuild") && told.contains("no redundancy"), "{told}");
        assert!(told.contains(REPLACE_D1), "{told}");
    });
}
