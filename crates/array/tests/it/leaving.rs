//! Groups of sets that leave a pool while hosts go on, the power fails, and drives fail.

use std::cell::Cell;

use tier0_api::{AdminRequest, GroupStatus, PoolStatus, VolumePlace};
use tier0_array::engine::Engine;
use tier0_description::Description;
use tier0_units::{ByteCount, Nanos};
use tier0_world::World;

use crate::rig::{
    Drives, MIB, create_volume, disks_and_flash, done, expect, pool, refused, try_write, volume, write,
};

/// Extents of the volume that are written.
const EXTENTS: u64 = 8;

/// A volume on the disks, of which the tier may move extents to flash.
pub(crate) const VOLUME: &str = r#"
[[volume]]
name = "lun0"
size = "20MiB"
thin = true
place = "auto"
"#;

/// Flash, and disks with a chunklet free on each for the log.
fn with_spares() -> Description {
    let text = format!(
        r#"
[array]
name = "test"

[[drive]]
name = "f{{n}}"
count = 2
path = "f{{n}}"
class = "flash"

[[drive]]
name = "d{{n}}"
count = 4
path = "d{{n}}"
class = "disk"

[[pool]]
name = "pool0"
chunklet = "2MiB"
extent = "1MiB"
log = "2MiB"
log_drives = ["f*"]

[[pool.group]]
name = "disks"
drives = ["d*"]
raid = "raid5"
set_size = 3
spare_drives = 1

[[pool.group]]
name = "flash"
drives = ["f*"]
raid = "raid1"
set_size = 2
{VOLUME}"#
    );
    Description::parse(&text, "test.toml").expect("a correct description")
}

pub(crate) fn leave(group: &str) -> AdminRequest {
    AdminRequest::PoolRemoveGroup { pool: None, group: group.into(), cancel: false }
}

pub(crate) fn stay(group: &str) -> AdminRequest {
    AdminRequest::PoolRemoveGroup { pool: None, group: group.into(), cancel: true }
}

pub(crate) fn rate(rate: ByteCount) -> AdminRequest {
    AdminRequest::PoolTier { pool: None, on: None, rate: Some(rate) }
}

fn remove(drive: &str) -> AdminRequest {
    AdminRequest::DriveRemove { drive: drive.to_owned(), force: false, stop: false }
}

async fn fill(world: &World, engine: &Engine, first: u8) {
    let lun0 = volume(engine, "lun0");
    for extent in 0..EXTENTS {
        write(world, &lun0, extent * MIB, MIB as u32, first + extent as u8).await;
    }
}

pub(crate) async fn verify(world: &World, engine: &Engine, first: u8) {
    let lun0 = volume(engine, "lun0");
    for extent in 0..EXTENTS {
        expect(world, &lun0, extent * MIB, MIB as u32, first + extent as u8).await;
    }
}

/// Writes the volume and moves it to flash as the tier would.
pub(crate) async fn lend(world: &World, engine: &Engine, first: u8) {
    fill(world, engine, first).await;
    engine.drain().await.expect("destaged");
    let moved = engine.move_extents("lun0", (0, EXTENTS as u32), 1).await.expect("it moves");
    assert_eq!(moved, EXTENTS);
}

pub(crate) fn group<'a>(pool: &'a PoolStatus, name: &str) -> Option<&'a GroupStatus> {
    pool.groups.iter().find(|group| group.name == name)
}

pub(crate) async fn until(world: &World, engine: &Engine, what: &str, is_so: impl Fn(&PoolStatus) -> bool) {
    for _ in 0..600 {
        if is_so(&pool(engine).await) {
            return;
        }
        world.sleep(Nanos::from_millis(100)).await;
    }
    panic!("after a minute {what} is not so: {:?}", pool(engine).await);
}

pub(crate) async fn until_gone(world: &World, engine: &Engine, name: &str) {
    until(world, engine, "that the group is gone", |pool| group(pool, name).is_none()).await;
}

async fn events(engine: &Engine) -> String {
    format!("{:?}", engine.status().await.events)
}

#[test]
fn a_group_leaves_under_writes_and_over_crashes_and_its_drives_follow() {
    for shards in [1, 3] {
        let array = Drives::described(with_spares(), 6, shards, 140);
        array.life(1, |world, engine, _| async move {
            lend(&world, &engine, 1).await;
            done(&engine, rate(ByteCount::kib(512))).await;
            let told = done(&engine, leave("flash")).await;
            let early = refused(&engine, remove("f0")).await;
            assert!(early.contains("wait until the group has left"), "{early}");
            assert!(told.contains("8MiB") && told.contains("f0, f1"), "{told}");
            assert!(done(&engine, leave("flash")).await.contains("leaving already"));
            let is_over = Cell::new(false);
            let busy = async {
                let mut first = 1;
                while !is_over.get() {
                    first = 1 + (first + 8) % 96;
                    fill(&world, &engine, first).await;
                    verify(&world, &engine, first).await;
                    world.sleep(Nanos::from_millis(10)).await;
                }
                fill(&world, &engine, 101).await;
            };
            let some = async {
                until(&world, &engine, "that some have moved", |pool| {
                    group(pool, "flash").is_some_and(|flash| flash.used_bytes < 7 << 20)
                })
                .await;
                is_over.set(true);
            };
            futures_util::future::join(busy, some).await;
            let left = group(&pool(&engine).await, "flash").map(|flash| (flash.leaving, flash.used_bytes));
            assert!(left.is_some_and(|(leaving, used)| leaving && used > 0), "{left:?}");
        });
        // The power failed in the middle.
        array.life(2, |world, engine, _| async move {
            verify(&world, &engine, 101).await;
            let now = pool(&engine).await;
            assert!(group(&now, "flash").is_some_and(|flash| flash.leaving), "{:?}", now.groups);
            done(&engine, rate(ByteCount(0))).await;
            until_gone(&world, &engine, "flash").await;
            assert!(events(&engine).await.contains("has left it"));
            let now = pool(&engine).await;
            assert_eq!(now.space.usable_bytes, group(&now, "disks").expect("it stays").usable_bytes);
            assert_eq!(now.tier.map(|tier| tier.fast_group), None);
            assert!(now.problems.is_empty(), "{:?}", now.problems);
            let told = refused(&engine, leave("disks")).await;
            assert!(told.contains("the only one"), "{told}");
            let told = refused(&engine, leave("flash")).await;
            assert!(told.contains("use one of \"disks\""), "{told}");
            fill(&world, &engine, 111).await;
        });
        // It stays gone, and its drives hold the log alone, which moves with them.
        array.life(3, |world, engine, _| async move {
            verify(&world, &engine, 111).await;
            assert!(group(&pool(&engine).await, "flash").is_none());
            for drive in ["f0", "f1"] {
                done(&engine, remove(drive)).await;
                until(&world, &engine, "that the drive is gone", |pool| {
                    pool.drives.iter().all(|one| one.name != drive)
                })
                .await;
            }
            fill(&world, &engine, 121).await;
        });
        array.life(4, |world, engine, _| async move {
            verify(&world, &engine, 121).await;
            let now = pool(&engine).await;
            assert_eq!((now.drives.len(), now.problems.len()), (4, 0), "{:?}", now.problems);
        });
    }
}

#[test]
fn a_group_that_leaves_may_stay() {
    let array = Drives::described(disks_and_flash(VOLUME), 6, 2, 141);
    array.life(1, |world, engine, _| async move {
        lend(&world, &engine, 1).await;
        assert!(done(&engine, stay("flash")).await.contains("not leaving"));
        done(&engine, rate(ByteCount::kib(512))).await;
        done(&engine, leave("flash")).await;
        world.sleep(Nanos::from_secs(4)).await;
        done(&engine, stay("flash")).await;
        world.sleep(Nanos::from_secs(4)).await;
        let used = group(&pool(&engine).await, "flash").map(|flash| flash.used_bytes >> 20);
        assert!(used.is_some_and(|used| (1..EXTENTS).contains(&used)), "{used:?}");
        world.sleep(Nanos::from_secs(20)).await;
        let after = group(&pool(&engine).await, "flash").map(|flash| (flash.used_bytes >> 20, flash.leaving));
        assert_eq!(after, used.map(|used| (used, false)), "nothing leaves it any more");
        // It takes extents again.
        let pin = AdminRequest::VolumePin {
            volume: "lun0".into(),
            from: ByteCount(0),
            to: ByteCount::mib(EXTENTS),
            place: VolumePlace::Fast,
            until_unix_s: 0,
        };
        done(&engine, rate(ByteCount(0))).await;
        done(&engine, pin).await;
        until(&world, &engine, "that all is pinned there", |pool| {
            group(pool, "flash").is_some_and(|flash| flash.used_bytes == EXTENTS << 20)
        })
        .await;
        verify(&world, &engine, 1).await;
    });
}

#[test]
fn what_stands_against_it_is_told_at_once() {
    let array = Drives::described(disks_and_flash(VOLUME), 6, 1, 142);
    array.life(1, |world, engine, _| async move {
        lend(&world, &engine, 1).await;
        let told = refused(&engine, leave("tape")).await;
        assert!(told.contains("no group \"tape\"") && told.contains("\"disks\""), "{told}");
        let told = refused(&engine, leave("disks")).await;
        assert!(told.contains("volumes lun0") && told.contains("migrate lun0 --group flash"), "{told}");

        let pin = |place| AdminRequest::VolumePin {
            volume: "lun0".into(),
            from: ByteCount(0),
            to: ByteCount::mib(2),
            place,
            until_unix_s: 0,
        };
        done(&engine, pin(VolumePlace::Fast)).await;
        let told = refused(&engine, leave("flash")).await;
        assert!(told.contains("pinned") && told.contains("tier0 volume unpin lun0"), "{told}");
        let unpin =
            AdminRequest::VolumeUnpin { volume: "lun0".into(), from: ByteCount(0), to: ByteCount::mib(2) };
        done(&engine, unpin).await;
        let place = |place| AdminRequest::VolumePlace { volume: "lun0".into(), place };
        done(&engine, place(VolumePlace::Fast)).await;
        let told = refused(&engine, leave("flash")).await;
        assert!(told.contains("placed") && told.contains("place=auto"), "{told}");
        done(&engine, place(VolumePlace::Auto)).await;

        let free = group(&pool(&engine).await, "disks").map_or(0, |disks| disks.usable_bytes >> 20);
        let full = AdminRequest::VolumeCreate {
            pool: None,
            name: "full".into(),
            size: ByteCount::mib(free - 7),
            thin: false,
            write_cache: Default::default(),
            group: Some("disks".into()),
        };
        done(&engine, full).await;
        let told = refused(&engine, leave("flash")).await;
        assert!(told.contains("1MiB are lacking") && told.contains("drive add --group disks"), "{told}");
        assert!(group(&pool(&engine).await, "flash").is_some_and(|flash| !flash.leaving));
        done(&engine, AdminRequest::VolumeDelete { volume: "full".into(), force: true }).await;

        done(&engine, rate(ByteCount::kib(64))).await;
        done(&engine, leave("flash")).await;
        let told = refused(&engine, leave("disks")).await;
        assert!(told.contains("remove-group flash --cancel"), "{told}");
        // What comes home later finds a full group, and that is told.
        let reserve = tier0_api::Reserve::Bytes(ByteCount(0));
        done(&engine, AdminRequest::PoolReserve { pool: None, reserve }).await;
        done(&engine, create_volume("grown", ByteCount::mib(free), true)).await;
        let grown = volume(&engine, "grown");
        for extent in 0..free {
            if try_write(&world, &grown, extent * MIB, 8, 1).await.is_err() {
                break;
            }
        }
        until(&world, &engine, "that it is stuck", |pool| {
            let problems = pool.problems.join("; ");
            problems.contains("is to leave and cannot") && problems.contains("--group disks")
        })
        .await;
        // Nothing new comes to it, and what is refused names the cause.
        let placed = refused(&engine, place(VolumePlace::Fast)).await;
        assert!(placed.contains("group \"flash\" is leaving") && placed.contains("--cancel"), "{placed}");
        let migrate = AdminRequest::VolumeMigrate { volume: "lun0".into(), group: "flash".into() };
        assert!(refused(&engine, migrate).await.contains("is leaving"));
        assert!(refused(&engine, pin(VolumePlace::Fast)).await.contains("nothing can move"));
        for (size, thin) in [(1, true), (1 << 20, false)] {
            let new = AdminRequest::VolumeCreate {
                pool: None,
                name: "new".into(),
                size: ByteCount::mib(size),
                thin,
                write_cache: Default::default(),
                group: Some("flash".into()),
            };
            assert!(refused(&engine, new).await.contains("is leaving"));
        }
        verify(&world, &engine, 1).await;
    });
}

/// What was lost is rebuilt from the drives that are left, then the rest moves.
#[test]
fn a_group_leaves_although_one_of_its_drives_fails() {
    let array = Drives::described(disks_and_flash(VOLUME), 6, 2, 143);
    array.life(1, |world, engine, drives| async move {
        lend(&world, &engine, 1).await;
        done(&engine, rate(ByteCount::kib(512))).await;
        done(&engine, leave("flash")).await;
        world.sleep(Nanos::from_secs(3)).await;
        drives.media[1].unplug();
        verify(&world, &engine, 1).await;
        done(&engine, rate(ByteCount(0))).await;
        until_gone(&world, &engine, "flash").await;
        verify(&world, &engine, 1).await;
        let now = pool(&engine).await;
        assert_eq!((now.sets.degraded, now.sets.failed), (0, 0), "{:?}", now.problems);
        // What was lost can only be removed, and that is what is said of it.
        let told = now.problems.join("; ");
        assert!(told.contains("drive remove ARRAY f1") && !told.contains("drive rejoin"), "{told}");
        assert!(!told.contains("drive replace"), "{told}");
        let failed = refused(&engine, AdminRequest::DriveFail { drive: "f1".into() }).await;
        assert!(failed.contains("drive remove") && !failed.contains("replace"), "{failed}");
        done(&engine, remove("f1")).await;
    });
}
