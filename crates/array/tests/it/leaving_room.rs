//! Room for what lies in a group that leaves, and what keeps it: the reserve, room that is promised, pages without a right copy, pins.

use tier0_api::{AdminRequest, PoolStatus, Reserve, VolumePlace};
use tier0_array::engine::Engine;
use tier0_block::BlockTarget;
use tier0_description::Description;
use tier0_drive::sim::SimMedium;
use tier0_units::{ByteCount, Lba, Nanos};
use tier0_world::World;

use crate::leaving::{VOLUME, group, leave, lend, rate, stay, until, until_gone, verify};
use crate::rig::{
    Drives, MIB, create_volume, disks_and_flash, done, expect, pool, refused, try_write, volume, write,
};

/// Disks, and two groups of flash.
fn two_of_flash() -> Description {
    let text = format!(
        r#"
[array]
name = "test"

[[drive]]
name = "f{{n}}"
count = 4
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

[[pool.group]]
name = "disks"
drives = ["d*"]
raid = "raid5"
set_size = 3

[[pool.group]]
name = "flash"
drives = ["f0", "f1"]
raid = "raid1"
set_size = 2

[[pool.group]]
name = "other"
drives = ["f2", "f3"]
raid = "raid1"
set_size = 2
{VOLUME}
[[volume]]
name = "lun1"
size = "8MiB"
thin = true
group = "other"
"#
    );
    Description::parse(&text, "test.toml").expect("a correct description")
}

fn reserve(mib: u64) -> AdminRequest {
    AdminRequest::PoolReserve { pool: None, reserve: Reserve::Bytes(ByteCount::mib(mib)) }
}

fn migrate(volume: &str, group: &str) -> AdminRequest {
    AdminRequest::VolumeMigrate { volume: volume.into(), group: group.into() }
}

fn free(pool: &PoolStatus, name: &str) -> u64 {
    let group = group(pool, name).expect("it is there");
    (group.usable_bytes - group.used_bytes - group.reserved_bytes) >> 20
}

/// Fills a group by a thin volume of its own until so many MiB are free; how many extents that are.
async fn fill_but(world: &World, engine: &Engine, (name, of): (&str, &str), mib: u64) -> u64 {
    let AdminRequest::VolumeCreate { pool: in_pool, name, size, thin, write_cache, .. } =
        create_volume(name, ByteCount::mib(400), true)
    else {
        unreachable!()
    };
    let create = AdminRequest::VolumeCreate {
        pool: in_pool,
        name: name.clone(),
        size,
        thin,
        write_cache,
        group: Some(of.to_owned()),
    };
    done(engine, create).await;
    let extents = free(&pool(engine).await, of) - mib;
    let volume = volume(engine, &name);
    for extent in 0..extents {
        write(world, &volume, extent * MIB, 8, 7).await;
    }
    engine.drain().await.expect("destaged");
    assert_eq!(free(&pool(engine).await, of), mib);
    extents
}

async fn told(engine: &Engine, text: &str) -> usize {
    engine.status().await.events.iter().filter(|event| event.what.contains(text)).count()
}

/// A removal took the reserve of the disks, and hosts got no space.
#[test]
fn the_reserve_stays_free_while_a_group_leaves() {
    for shards in [1, 3] {
        let array = Drives::described(disks_and_flash(VOLUME), 6, shards, 150);
        array.life(1, |world, engine, _| async move {
            lend(&world, &engine, 1).await;
            let written = fill_but(&world, &engine, ("grown", "disks"), 10).await;
            // The whole reserve is the disks' when the flash has left.
            done(&engine, reserve(5)).await;
            let text = refused(&engine, leave("flash")).await;
            assert!(text.contains("room for 5MiB, beside 5MiB of the reserve"), "{text}");
            assert!(text.contains("3MiB are lacking") && text.contains("tier0 pool reserve"), "{text}");
            done(&engine, reserve(2)).await;
            done(&engine, rate(ByteCount::kib(512))).await;
            done(&engine, leave("flash")).await;
            // A host takes some of the room meanwhile.
            let grown = volume(&engine, "grown");
            for extent in 0..3 {
                write(&world, &grown, (written + extent) * MIB, 8, 7).await;
            }
            until(&world, &engine, "that it is stuck", |pool| {
                let problems = pool.problems.join("; ");
                problems.contains("is to leave and cannot: group disks has no free space beside the reserve")
            })
            .await;
            let now = pool(&engine).await;
            assert_eq!(free(&now, "disks"), 2, "the reserve is free");
            assert_eq!(group(&now, "flash").map(|flash| flash.used_bytes >> 20), Some(3));
            let full = try_write(&world, &grown, (written + 9) * MIB, 8, 7).await;
            assert!(full.is_err(), "nor do hosts get it");
            // Room that comes and goes is no news.
            for extent in 0..2 {
                done(&engine, reserve(1)).await;
                done(&engine, reserve(2)).await;
                write(&world, &grown, extent * MIB, 8, 8).await;
                world.sleep(Nanos::from_secs(20)).await;
            }
            assert_eq!(told(&engine, "is to leave and cannot").await, 1);
            done(&engine, reserve(0)).await;
            done(&engine, rate(ByteCount(0))).await;
            // One is lacking still.
            until(&world, &engine, "that one is left", |pool| {
                group(pool, "flash").is_some_and(|flash| flash.used_bytes == 1 << 20)
            })
            .await;
            done(&engine, AdminRequest::VolumeDelete { volume: "grown".into(), force: true }).await;
            until_gone(&world, &engine, "flash").await;
            verify(&world, &engine, 1).await;
        });
    }
}

#[test]
fn room_is_promised_once() {
    let array = Drives::described(two_of_flash(), 8, 2, 151);
    array.life(1, |world, engine, _| async move {
        lend(&world, &engine, 1).await;
        let lun1 = volume(&engine, "lun1");
        for extent in 0..6 {
            write(&world, &lun1, extent * MIB, MIB as u32, 50 + extent as u8).await;
        }
        engine.drain().await.expect("destaged");
        let written = fill_but(&world, &engine, ("grown", "disks"), 12).await;
        done(&engine, rate(ByteCount::kib(64))).await;
        // A group leaves, then a volume wants to migrate to where its contents go.
        done(&engine, leave("flash")).await;
        let text = refused(&engine, migrate("lun1", "disks")).await;
        assert!(text.contains("2MiB are lacking"), "{text}");
        done(&engine, stay("flash")).await;
        // The other way round; what has moved by now is neither to come nor free.
        done(&engine, migrate("lun1", "disks")).await;
        let text = refused(&engine, leave("flash")).await;
        // Moves that are under way have room already, and count.
        assert!(text.contains("on their way there") && text.contains("MiB are lacking"), "{text}");
        // Two groups leave: what is left of the volume's old one is promised as well.
        done(&engine, leave("other")).await;
        let text = refused(&engine, leave("flash")).await;
        assert!(text.contains("MiB are lacking"), "{text}");
        let grown = volume(&engine, "grown");
        grown.discard(Lba((written - 4) * MIB), 4 * MIB).await.expect("discarded");
        done(&engine, leave("flash")).await;
        done(&engine, rate(ByteCount(0))).await;
        until_gone(&world, &engine, "flash").await;
        until_gone(&world, &engine, "other").await;
        verify(&world, &engine, 1).await;
        for extent in 0..6 {
            expect(&world, &lun1, extent * MIB, MIB as u32, 50 + extent as u8).await;
        }
    });
}

/// Makes the first sector unreadable of every page on a drive that holds this value alone; how many there are.
fn lose(medium: &SimMedium, value: u8) -> u64 {
    let mut page = [0; 4096];
    let mut lost = 0;
    for sector in (0..medium.options().info.sectors.0).step_by(8) {
        medium.peek(Lba(sector), &mut page);
        if page.iter().all(|byte| *byte == value) {
            medium.make_unreadable(sector..sector + 1);
            lost += 1;
        }
    }
    lost
}

/// Nothing said why a group did not leave that has a page without a right copy.
#[test]
fn a_page_that_is_lost_keeps_its_group_and_is_named() {
    let array = Drives::described(disks_and_flash(VOLUME), 6, 2, 152);
    array.life(1, |world, engine, drives| async move {
        let lun0 = volume(&engine, "lun0");
        lend(&world, &engine, 1).await;
        write(&world, &lun0, 3 * MIB + 16, 8, 200).await;
        engine.drain().await.expect("destaged");
        assert!(lose(&drives.media[0], 200) > 0 && lose(&drives.media[1], 200) > 0);
        done(&engine, leave("flash")).await;
        let from = (3 << 20) + 8192;
        let named = format!("volume lun0, bytes {from} to {}", from + 4095);
        until(&world, &engine, "that it is named", |pool| {
            let problems = pool.problems.join("; ");
            problems.contains("is to leave and cannot") && problems.contains(&named)
        })
        .await;
        assert_eq!(group(&pool(&engine).await, "flash").map(|flash| flash.used_bytes), Some(1 << 20));
        world.sleep(Nanos::from_secs(60)).await;
        assert_eq!(told(&engine, &named).await, 1, "an event tells it once");
        // As the advice says.
        write(&world, &lun0, 3 * MIB + 16, 8, 4).await;
        until_gone(&world, &engine, "flash").await;
        verify(&world, &engine, 1).await;
        assert_eq!(pool(&engine).await.problems, [""; 0]);
    });
}

#[test]
fn what_is_pinned_goes_to_the_other_fast_group_as_far_as_there_is_room() {
    let array = Drives::described(two_of_flash(), 8, 2, 153);
    array.life(1, |world, engine, _| async move {
        lend(&world, &engine, 1).await;
        let pin = AdminRequest::VolumePin {
            volume: "lun0".into(),
            from: ByteCount(0),
            to: ByteCount::mib(5),
            place: VolumePlace::Fast,
            until_unix_s: 0,
        };
        done(&engine, pin).await;
        fill_but(&world, &engine, ("grown", "other"), 3).await;
        let text = done(&engine, leave("flash")).await;
        assert!(
            text.contains("5MiB are placed or pinned there and move to group other") && text.contains("2MiB"),
            "{text}"
        );
        until_gone(&world, &engine, "flash").await;
        until(&world, &engine, "that the pin holds as far as it can", |pool| free(pool, "other") == 0).await;
        done(&engine, AdminRequest::VolumeDelete { volume: "grown".into(), force: true }).await;
        until(&world, &engine, "that the pin holds", |pool| {
            pool.volumes.iter().any(|volume| volume.name == "lun0" && volume.away_bytes >= 5 << 20)
        })
        .await;
        verify(&world, &engine, 1).await;
    });
}
