//! Volumes that migrate to another group of sets with their clones, while hosts go on and the power fails.

use tier0_api::{AdminRequest, PoolStatus, VolumeStatus};
use tier0_array::engine::Engine;
use tier0_units::{ByteCount, Nanos};
use tier0_world::{PlantedBug, World, plant};

use crate::rig::{Drives, MIB, disks_and_flash, done, expect, pool, refused, volume, write};

/// Extents that are written.
const EXTENTS: u64 = 8;

/// Volumes on the disks.
const VOLUMES: &str = r#"
[[volume]]
name = "lun0"
size = "20MiB"
thin = true

[[volume]]
name = "thick"
size = "4MiB"
"#;

fn migrate(volume: &str, group: &str) -> AdminRequest {
    AdminRequest::VolumeMigrate { volume: volume.into(), group: group.into() }
}

fn status<'a>(pool: &'a PoolStatus, name: &str) -> &'a VolumeStatus {
    pool.volumes.iter().find(|volume| volume.name == name).expect("it is there")
}

async fn fill(world: &World, engine: &Engine, name: &str, extents: u64, first: u8) {
    let volume = volume(engine, name);
    for extent in 0..extents {
        write(world, &volume, extent * MIB, MIB as u32, first + extent as u8).await;
    }
}

async fn verify(world: &World, engine: &Engine, name: &str, extents: u64, first: u8) {
    let volume = volume(engine, name);
    for extent in 0..extents {
        expect(world, &volume, extent * MIB, MIB as u32, first + extent as u8).await;
    }
}

async fn until_arrived(world: &World, engine: &Engine) {
    for _ in 0..600 {
        if pool(engine).await.volumes.iter().all(|volume| volume.migrating_bytes == 0) {
            return;
        }
        world.sleep(Nanos::from_millis(100)).await;
    }
    panic!("a volume does not arrive");
}

#[test]
fn a_volume_and_its_clone_move_to_another_group_over_a_crash_and_back() {
    for shards in [1, 3] {
        let array = Drives::described(disks_and_flash(VOLUMES), 6, shards, 120);
        array.life(1, |world, engine, _| async move {
            fill(&world, &engine, "lun0", EXTENTS, 1).await;
            let clone = AdminRequest::VolumeClone { volume: "lun0".into(), name: "copy".into() };
            done(&engine, clone).await;
            fill(&world, &engine, "copy", 2, 101).await;
            let told = done(&engine, migrate("lun0", "flash")).await;
            assert!(told.contains("10MiB") && told.contains("copy"), "{told}");
            let now = pool(&engine).await;
            assert_eq!(status(&now, "copy").group.as_deref(), Some("flash"));
            assert!(status(&now, "lun0").migrating_bytes > 0);
            // Written while it moves, through the lane of the new group.
            fill(&world, &engine, "lun0", 4, 51).await;
        });
        // The power failed in the middle.
        array.life(2, |world, engine, _| async move {
            verify(&world, &engine, "lun0", 4, 51).await;
            until_arrived(&world, &engine).await;
            let now = pool(&engine).await;
            assert_eq!(status(&now, "lun0").away_bytes, 0);
            assert_eq!(now.groups[0].used_bytes, 0, "the disks hold nothing of it");
            verify(&world, &engine, "copy", 2, 101).await;
            done(&engine, migrate("copy", "disks")).await;
            fill(&world, &engine, "lun0", 2, 61).await;
            until_arrived(&world, &engine).await;
            assert_eq!(pool(&engine).await.groups[1].used_bytes, 0);
        });
        array.life(3, |world, engine, _| async move {
            verify(&world, &engine, "lun0", 2, 61).await;
            verify(&world, &engine, "copy", 2, 101).await;
        });
    }
}

#[test]
fn a_thick_volume_takes_its_reservation_with_it() {
    let array = Drives::described(disks_and_flash(VOLUMES), 6, 2, 121);
    array.life(1, |world, engine, _| async move {
        fill(&world, &engine, "thick", 2, 1).await;
        done(&engine, migrate("thick", "flash")).await;
        until_arrived(&world, &engine).await;
        let now = pool(&engine).await;
        let of = |group: usize| (now.groups[group].used_bytes >> 20, now.groups[group].reserved_bytes >> 20);
        assert_eq!((of(0), of(1)), ((0, 0), (2, 2)));
        verify(&world, &engine, "thick", 2, 1).await;
    });
}

#[test]
fn what_cannot_migrate_is_refused_and_stays() {
    let array = Drives::described(disks_and_flash(VOLUMES), 6, 1, 122);
    array.life(1, |world, engine, _| async move {
        fill(&world, &engine, "lun0", EXTENTS, 1).await;
        engine.drain().await.expect("destaged");
        let slots = pool(&engine).await.groups[1].usable_bytes >> 20;
        let own = AdminRequest::VolumeCreate {
            pool: None,
            name: "own".into(),
            size: ByteCount::mib(slots - 4),
            thin: false,
            write_cache: Default::default(),
            group: Some("flash".into()),
        };
        done(&engine, own).await;
        let told = refused(&engine, migrate("lun0", "flash")).await;
        assert!(told.contains("4MiB are lacking") && told.contains("add drives"), "{told}");
        let told = refused(&engine, migrate("lun0", "tape")).await;
        assert!(told.contains("\"disks\"") && told.contains("add-group"), "{told}");
        assert!(done(&engine, migrate("lun0", "disks")).await.contains("already"));
        verify(&world, &engine, "lun0", EXTENTS, 1).await;
    });
}

/// What is on its way to a group has no slots there yet, and needs them all the same.
#[test]
fn what_is_on_its_way_to_a_group_counts_there() {
    let array = Drives::described(disks_and_flash(VOLUMES), 6, 1, 124);
    array.life(1, |world, engine, _| async move {
        fill(&world, &engine, "lun0", EXTENTS, 1).await;
        let room = pool(&engine).await.groups[1].usable_bytes >> 20;
        assert_eq!(room, 14);
        let other = AdminRequest::VolumeCreate {
            pool: None,
            name: "other".into(),
            size: ByteCount::mib(8),
            thin: true,
            write_cache: Default::default(),
            group: Some("disks".into()),
        };
        done(&engine, other).await;
        fill(&world, &engine, "other", EXTENTS, 101).await;
        let rate = Some(ByteCount::kib(64));
        done(&engine, AdminRequest::PoolTier { pool: None, on: None, rate }).await;
        done(&engine, migrate("lun0", "flash")).await;
        let told = refused(&engine, migrate("other", "flash")).await;
        assert!(told.contains("2MiB are lacking"), "{told}");
        // Each batch of moves uses the rate and the group that are set by then.
        done(&engine, migrate("lun0", "disks")).await;
        done(&engine, AdminRequest::PoolTier { pool: None, on: None, rate: Some(ByteCount(0)) }).await;
        world.sleep(Nanos::from_secs(40)).await;
        until_arrived(&world, &engine).await;
        done(&engine, migrate("other", "flash")).await;
        until_arrived(&world, &engine).await;
        verify(&world, &engine, "lun0", EXTENTS, 1).await;
        verify(&world, &engine, "other", EXTENTS, 101).await;
    });
}

/// A clone that was read all the time kept its volume from its group, and hosts waited as long.
#[test]
fn reads_of_a_clone_do_not_hold_the_volume_up() {
    let array = Drives::described(disks_and_flash(VOLUMES), 6, 1, 125);
    array.life(1, |world, engine, _| async move {
        fill(&world, &engine, "lun0", EXTENTS, 1).await;
        engine.drain().await.expect("destaged");
        done(&engine, AdminRequest::VolumeClone { volume: "lun0".into(), name: "copy".into() }).await;
        let has_moved = std::cell::Cell::new(false);
        let read = async |first: u64| {
            let mut extent = first;
            while !has_moved.get() {
                expect(
                    &world,
                    &volume(&engine, "copy"),
                    extent % EXTENTS * MIB,
                    64,
                    1 + (extent % EXTENTS) as u8,
                )
                .await;
                extent += 1;
            }
        };
        let moving = async {
            done(&engine, migrate("lun0", "flash")).await;
            has_moved.set(true);
            world.now()
        };
        let (.., ended) = futures_util::future::join4(read(0), read(3), read(5), moving).await;
        assert!(ended < Nanos::from_secs(5), "{ended:?}");
        until_arrived(&world, &engine).await;
        verify(&world, &engine, "copy", EXTENTS, 1).await;
    });
}

/// The log's old lane still has what was acknowledged before, and no recovery brings it to its place.
#[test]
fn a_lane_that_changes_before_the_log_has_retired_is_found() {
    let _planted = plant(PlantedBug::FlipLaneBeforeRetire);
    let found = std::panic::catch_unwind(|| {
        let array = Drives::described(disks_and_flash(VOLUMES), 6, 1, 123);
        array.life(1, |world, engine, _| async move {
            let busy = async {
                for round in 0..20 {
                    fill(&world, &engine, "lun0", 4, round).await;
                }
            };
            let moving = done(&engine, migrate("lun0", "flash"));
            futures_util::future::join(busy, moving).await;
            verify(&world, &engine, "lun0", 4, 19).await;
        });
        array.life(2, |world, engine, _| async move { verify(&world, &engine, "lun0", 4, 19).await });
    });
    assert!(found.is_err(), "what was acknowledged is there, or the pool does not open");
}
