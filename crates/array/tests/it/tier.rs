//! The performance tier: hot extents move to flash and back, by policy or by hand, and it can be seen why.

use tier0_api::{
    AdminReply, AdminRequest, TierExplanation, TierHold, TierPlan, TierReason, TierStatus, VolumePlace,
};
use tier0_array::engine::Engine;
use tier0_units::{ByteCount, Nanos};
use tier0_world::World;

use crate::rig::{Drives, MIB, disks_and_flash, done, expect, pool, refused, volume, write};

/// Extents of the volume.
const EXTENTS: u64 = 24;

/// A thin volume on the disks.
const VOLUME: &str = r#"
[[volume]]
name = "lun0"
size = "40MiB"
thin = true
"#;

fn place(place: VolumePlace) -> AdminRequest {
    AdminRequest::VolumePlace { volume: "lun0".into(), place }
}

fn pin(from_mib: u64, to_mib: u64, place: VolumePlace, until_unix_s: u64) -> AdminRequest {
    let (from, to) = (ByteCount::mib(from_mib), ByteCount::mib(to_mib));
    AdminRequest::VolumePin { volume: "lun0".into(), from, to, place, until_unix_s }
}

async fn tier(engine: &Engine) -> TierStatus {
    pool(engine).await.tier.expect("something is placed")
}

async fn explain(engine: &Engine, extent: u64) -> TierExplanation {
    let request = AdminRequest::TierExplain { volume: "lun0".into(), offset: ByteCount::mib(extent) };
    match engine.administer(request).await {
        AdminReply::TierExplained(told) => *told,
        other => panic!("not explained: {other:?}"),
    }
}

async fn plan(engine: &Engine) -> TierPlan {
    match engine.administer(AdminRequest::TierPlan { pool: None }).await {
        AdminReply::TierPlanned(told) => *told,
        other => panic!("not planned: {other:?}"),
    }
}

/// The extents that lie in the fast group.
async fn on_flash(engine: &Engine) -> Vec<u64> {
    let mut found = Vec::new();
    for extent in 0..EXTENTS {
        if explain(engine, extent).await.is_fast {
            found.push(extent);
        }
    }
    found
}

async fn rest(world: &World, seconds: u64) {
    world.sleep(Nanos::from_secs(seconds)).await;
}

async fn write_all(world: &World, engine: &Engine) {
    let lun0 = volume(engine, "lun0");
    for extent in 0..EXTENTS {
        write(world, &lun0, extent * MIB, MIB as u32, extent as u8 + 1).await;
    }
    engine.drain().await.expect("destaged");
}

/// Reads pages of some extents, each so often, for some seconds.
async fn heat(world: &World, engine: &Engine, extents: &[u64], times: u64) {
    let lun0 = volume(engine, "lun0");
    for time in 0..times {
        for extent in extents {
            expect(world, &lun0, extent * MIB + time * 24 % MIB, 8, *extent as u8 + 1).await;
        }
        world.sleep(Nanos::from_millis(100)).await;
    }
}

async fn verify(world: &World, engine: &Engine) {
    let lun0 = volume(engine, "lun0");
    for extent in 0..EXTENTS {
        expect(world, &lun0, extent * MIB, MIB as u32, extent as u8 + 1).await;
    }
}

#[test]
fn hot_extents_move_to_flash_stay_there_over_a_crash_and_give_way_to_hotter_ones() {
    for shards in [1, 3] {
        let array = Drives::described(disks_and_flash(VOLUME), 6, shards, 91);
        array.life(1, |world, engine, _| async move {
            write_all(&world, &engine).await;
            assert_eq!(pool(&engine).await.tier, None, "nothing is placed");
            done(&engine, place(VolumePlace::Auto)).await;
            rest(&world, 6).await;
            heat(&world, &engine, &[3, 7, 11], 120).await;
            assert_eq!(on_flash(&engine).await, [3, 7, 11]);
            let told = explain(&engine, 7).await;
            assert_eq!((told.moves[0].reason, told.moves[0].to_fast), (TierReason::Hot, true));
            assert!(told.since_s.is_some_and(|since| since < 20) && told.reads > 60.0, "{told:?}");
            let cold = explain(&engine, 8).await;
            assert!(cold.verdict().contains("are needed to move"), "{}", cold.verdict());
            let status = tier(&engine).await;
            assert_eq!((status.moves.promoted, status.fast_promoted_bytes), (3, 3 << 20), "{status:?}");
            assert!(status.share_on_fast.is_some_and(|share| share > 0.9), "{status:?}");
            verify(&world, &engine).await;
            assert_eq!(on_flash(&engine).await, [3, 7, 11], "reading all of it is no heat");
        });
        array.life(2, |world, engine, _| async move {
            rest(&world, 6).await;
            assert_eq!(on_flash(&engine).await, [3, 7, 11], "the map is the memory");
            verify(&world, &engine).await;
            heat(&world, &engine, &[1, 2], 120).await;
            assert_eq!(on_flash(&engine).await, [1, 2, 3, 7, 11]);
            let plan = plan(&engine).await;
            assert!(plan.curve.last().is_some_and(|point| point.share > 0.999), "{plan:?}");
            assert!(plan.curve[0].flash_bytes < 6 << 20, "{plan:?}");
            done(&engine, place(VolumePlace::Slow)).await;
            rest(&world, 10).await;
            assert_eq!(on_flash(&engine).await, [0; 0]);
            verify(&world, &engine).await;
        });
    }
}

#[test]
fn what_is_pinned_moves_at_once_and_until_its_time() {
    let array = Drives::described(disks_and_flash(VOLUME), 6, 2, 92);
    array.life(1, |world, engine, _| async move {
        write_all(&world, &engine).await;
        done(&engine, pin(4, 8, VolumePlace::Fast, 3600)).await;
        rest(&world, 2).await;
        assert_eq!(on_flash(&engine).await, [4, 5, 6, 7]);
        done(&engine, pin(5, 6, VolumePlace::Slow, 0)).await;
        rest(&world, 6).await;
        assert_eq!(on_flash(&engine).await, [4, 6, 7]);
        let told = explain(&engine, 6).await;
        assert_eq!((told.is_pinned, told.pinned_until_unix_s), (true, Some(3600)));
        done(&engine, place(VolumePlace::Auto)).await;
        heat(&world, &engine, &[5, 9], 120).await;
        assert_eq!(on_flash(&engine).await, [4, 6, 7, 9], "5 is pinned to the disks");
        rest(&world, 3700).await;
        assert!(!explain(&engine, 6).await.is_pinned, "its time is over");
        done(
            &engine,
            AdminRequest::VolumeUnpin { volume: "lun0".into(), from: ByteCount(0), to: ByteCount::mib(40) },
        )
        .await;
        verify(&world, &engine).await;
    });
}

#[test]
fn what_cannot_be_is_refused_with_the_bytes_that_lack() {
    let array = Drives::described(disks_and_flash(VOLUME), 6, 1, 93);
    array.life(1, |world, engine, _| async move {
        write_all(&world, &engine).await;
        let fast = tier0_api::AdminRequest::VolumeCreate {
            pool: None,
            name: "own".into(),
            size: ByteCount::mib(12),
            thin: false,
            write_cache: Default::default(),
            group: Some("flash".into()),
        };
        done(&engine, fast).await;
        let told = refused(&engine, place(VolumePlace::Fast)).await;
        assert!(told.contains("are lacking") && told.contains("24MiB"), "{told}");
        let own = AdminRequest::VolumePlace { volume: "own".into(), place: VolumePlace::Auto };
        assert!(refused(&engine, own).await.contains("lies in the fast group already"));
        assert!(refused(&engine, pin(50, 60, VolumePlace::Fast, 0)).await.contains("behind the end"));
        assert!(refused(&engine, pin(0, 1, VolumePlace::Auto, 0)).await.contains("--to fast"));
        done(&engine, place(VolumePlace::Auto)).await;
        done(&engine, AdminRequest::PoolTier { pool: None, on: Some(false), rate: None }).await;
        heat(&world, &engine, &[3], 120).await;
        assert_eq!(on_flash(&engine).await, [0; 0]);
        assert_eq!(tier(&engine).await.hold, Some(TierHold::Off));
        done(&engine, AdminRequest::PoolTier { pool: None, on: Some(true), rate: None }).await;
        rest(&world, 6).await;
        assert_eq!(on_flash(&engine).await, [3]);
    });
}

/// In a full flash group a hotter extent replaces a cold one. Equally hot extents do not replace each other.
#[test]
fn a_full_group_keeps_what_is_hottest_without_thrashing() {
    let array = Drives::described(disks_and_flash(VOLUME), 6, 1, 94);
    array.life(1, |world, engine, _| async move {
        write_all(&world, &engine).await;
        let slots = pool(&engine).await.groups[1].usable_bytes >> 20;
        let reserved = ByteCount::mib(slots - 4);
        let fill = tier0_api::AdminRequest::VolumeCreate {
            pool: None,
            name: "own".into(),
            size: reserved,
            thin: false,
            write_cache: Default::default(),
            group: Some("flash".into()),
        };
        done(&engine, fill).await;
        done(&engine, place(VolumePlace::Auto)).await;
        rest(&world, 6).await;
        let equal: Vec<u64> = (0..8).collect();
        heat(&world, &engine, &equal, 600).await;
        let resident = on_flash(&engine).await;
        assert_eq!(resident.len(), 3, "one slot is kept free");
        let before = tier(&engine).await.moves;
        heat(&world, &engine, &equal, 3000).await;
        assert_eq!(tier(&engine).await.moves, before, "no extent is worth another's place");
        heat(&world, &engine, &[20, 21, 22], 9000).await;
        assert_eq!(on_flash(&engine).await, [20, 21, 22]);
        verify(&world, &engine).await;
    });
}
