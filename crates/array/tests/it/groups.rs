//! A pool with groups of sets: mirrors beside RAID 5, each volume on the drives of its group.

use crate::rig::trouble::within;
use crate::rig::{
    Drives, GROW, MIB, create_volume, done, expect, expect_filled, fill, live, pool, refused, volume, write,
};
use tier0_api::{AdminRequest, GroupStatus, Health};
use tier0_array::engine::{Engine, StartOptions, start};
use tier0_description::Description;
use tier0_units::{ByteCount, Nanos, WriteCache};

/// Two mirrors of the drives d0 to d3, and RAID 5 of three of d4 to d7.
pub(crate) fn describe() -> Description {
    let text = r#"
[array]
name = "test"

[[drive]]
name = "d{n}"
count = 8
path = "d{n}"

[[pool]]
name = "pool0"
chunklet = "2MiB"
log = "2MiB"

[[pool.group]]
name = "fast"
drives = ["d0", "d1", "d2", "d3"]
raid = "raid1"
set_size = 2

[[pool.group]]
name = "slow"
drives = ["d4", "d5", "d6", "d7"]
raid = "raid5"
set_size = 3
spare_drives = 1

[[volume]]
name = "lun0"
size = "6MiB"
thin = true

[[volume]]
name = "lun1"
size = "12MiB"
thin = true
group = "slow"
"#;
    Description::parse(text, "test.toml").expect("a correct description")
}

fn create_in(group: &str, name: &str, size: ByteCount) -> AdminRequest {
    let (pool, write_cache) = (None, WriteCache::default());
    AdminRequest::VolumeCreate {
        pool,
        name: name.to_owned(),
        size,
        thin: true,
        write_cache,
        group: Some(group.to_owned()),
    }
}

pub(crate) async fn groups(engine: &Engine) -> [GroupStatus; 2] {
    pool(engine).await.groups.try_into().expect("two groups")
}

/// How many chunklets are in use of each drive.
async fn used(engine: &Engine) -> Vec<u64> {
    pool(engine).await.drives.iter().map(|drive| drive.chunklets_used).collect()
}

#[test]
fn volumes_take_their_space_of_their_group_and_a_full_group_leaves_the_other_alone() {
    for shards in [1, 3] {
        let array = Drives::described(describe(), 8, shards, 71);
        let (fast, slow) = array.life(1, |world, engine, _| async move {
            let [fast, slow] = groups(&engine).await;
            assert_eq!((fast.name.as_str(), slow.name.as_str()), ("fast", "slow"));
            assert_eq!((fast.used_bytes, slow.used_bytes), (0, 0));
            write(&world, &volume(&engine, "lun1"), 0, 64, 7).await;
            engine.drain().await.expect("destaged");
            let [fast, slow] = groups(&engine).await;
            assert_eq!(fast.used_bytes, 0);
            assert!(slow.used_bytes > 0);
            let text = refused(&engine, create_in("none", "x", ByteCount::mib(1))).await;
            assert!(text.contains("no group \"none\"") && text.contains("\"slow\""), "{text}");
            // Unasked, a volume is of the first group.
            done(&engine, create_volume("quick", ByteCount::mib(400), true)).await;
            done(&engine, create_in("slow", "large", ByteCount::mib(400))).await;
            let fast = fill(&world, &engine, "quick").await;
            engine.drain().await.expect("destaged");
            // The first group is full to its last slot, the second as before.
            let [full, other] = groups(&engine).await;
            assert_eq!(full.used_bytes, full.usable_bytes);
            assert_eq!(other.used_bytes, slow.used_bytes);
            let problems = pool(&engine).await.problems.join("; ");
            assert!(problems.contains("group \"fast\" is full"), "{problems}");
            assert!(!problems.contains("\"slow\""), "{problems}");
            write(&world, &volume(&engine, "lun1"), 3 * MIB, 64, 8).await;
            (fast, fill(&world, &engine, "large").await)
        });
        assert!(fast > 20 && slow > 20, "{fast} {slow}");
        array.life(2, move |world, engine, _| async move {
            expect(&world, &volume(&engine, "lun1"), 0, 64, 7).await;
            expect(&world, &volume(&engine, "lun1"), 3 * MIB, 64, 8).await;
            expect_filled(&world, &engine, "quick", fast).await;
            expect_filled(&world, &engine, "large", slow).await;
            done(&engine, delete("quick")).await;
            let freed =
                within(&world, Nanos::from_secs(60), async || groups(&engine).await[0].used_bytes == 0);
            assert!(freed.await, "{:?}", groups(&engine).await);
            write(&world, &volume(&engine, "lun0"), 0, 64, 9).await;
        });
    }
}

fn delete(name: &str) -> AdminRequest {
    AdminRequest::VolumeDelete { volume: name.to_owned(), force: false }
}

#[test]
fn a_lost_drive_is_rebuilt_on_drives_of_its_group_only() {
    let array = Drives::described(describe(), 8, 2, 72);
    array.life(1, |world, engine, _| async move {
        for extent in 0..6 {
            write(&world, &volume(&engine, "lun0"), extent * MIB, 64, 20 + extent as u8).await;
            write(&world, &volume(&engine, "lun1"), extent * MIB, 64, 40 + extent as u8).await;
        }
        let before = used(&engine).await;
        done(&engine, AdminRequest::DriveFail { drive: "d5".to_owned() }).await;
        let whole =
            within(&world, Nanos::from_secs(600), async || pool(&engine).await.sets.degraded == 0).await;
        assert!(whole, "{:?}", pool(&engine).await.problems);
        let after = used(&engine).await;
        assert_eq!(after[..4], before[..4]);
        // What is free on the mirrors is no spare for the others.
        let remove = AdminRequest::DriveRemove { drive: "d5".to_owned(), force: true, stop: false };
        let told = done(&engine, remove).await;
        assert!(told.contains("spares of group \"slow\": 3 of 12"), "{told}");
        assert!(told.contains("tier0 drive add --group"), "{told}");
        // The mirrors have no spare: what they lose stays lost until a drive comes.
        done(&engine, AdminRequest::DriveFail { drive: "d1".to_owned() }).await;
        world.sleep(Nanos::from_secs(60)).await;
        let status = pool(&engine).await;
        assert!(status.sets.degraded > 0);
        assert_eq!(status.health, Health::Degraded, "{:?}", status.problems);
        // But for the copy of the log that d1 held, which lies in a chunklet.
        let chunklets = |used: &[u64]| used[4..].iter().sum::<u64>();
        assert!(chunklets(&used(&engine).await) <= chunklets(&after) + 1);
    });
    array.life(2, |world, engine, _| async move {
        for extent in 0..6 {
            expect(&world, &volume(&engine, "lun0"), extent * MIB, 64, 20 + extent as u8).await;
            expect(&world, &volume(&engine, "lun1"), extent * MIB, 64, 40 + extent as u8).await;
        }
    });
}

#[test]
fn what_joins_a_group_makes_that_group_grow() {
    let mut array = Drives::described(describe(), 8, 2, 73);
    (0..2).for_each(|_| drop(array.plug_in()));
    let (quick, more) = array.life(1, |world, engine, drives| async move {
        done(&engine, create_volume("quick", ByteCount::mib(400), true)).await;
        let quick = fill(&world, &engine, "quick").await;
        let [fast, slow] = groups(&engine).await;
        for number in 8..10 {
            let drive = drives.media[number].open(&world);
            engine.add_drive(0, &format!("d{number}"), drive).await.expect("it joins");
        }
        done(&engine, GROW).await;
        let [grown, same] = groups(&engine).await;
        assert!(grown.usable_bytes >= fast.usable_bytes * 3 / 2, "{grown:?} of {fast:?}");
        assert_eq!(same, slow);
        let settled = within(&world, Nanos::from_secs(600), async || pool(&engine).await.restripe.is_none());
        assert!(settled.await);
        let used = used(&engine).await;
        assert!(used[8] > 0 && used[9] > 0, "{used:?}");
        done(&engine, create_volume("more", ByteCount::mib(400), true)).await;
        (quick, fill(&world, &engine, "more").await)
    });
    assert!(more * 2 >= quick / 2, "{more} after {quick}");
    array.life(2, move |world, engine, _| async move {
        expect_filled(&world, &engine, "quick", quick).await;
        expect_filled(&world, &engine, "more", more).await;
    });
}

#[test]
fn a_group_that_lacks_too_much_is_named() {
    let array = Drives::described(describe(), 8, 1, 75);
    let drives = array.clone();
    let text = live(1, |world| async move {
        let mut handles = drives.open(&world);
        handles.drain(5..7);
        let refused = start(&world, handles, &StartOptions::default()).await.err();
        refused.expect("two of three columns are missing").to_string()
    });
    assert!(
        text.contains("is missing drives \"d5\", \"d6\", more than raid5 (group slow) tolerates"),
        "{text}"
    );
}
