//! Ceilings of volumes, over two shards in virtual time: held in each second, with bursts, until they are lifted, and after a
//! power cut.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures_util::future::join_all;
use tier0_api::{AdminRequest, Ceilings};
use tier0_array::Volume;
use tier0_array::engine::Engine;
use tier0_block::BlockTarget;
use tier0_units::{Lba, Nanos};
use tier0_world::{PlantedBug, World, plant};

use crate::rig::{Drives, done, pool, refused, write};

/// Requests that each shard has under way.
const DEPTH: u64 = 16;
/// What a host does between two of its requests: reads of zeros take no time.
const THINKS: Nanos = Nanos::from_millis(1);
/// Sectors of a request.
const SECTORS: u32 = 16;

fn limit(iops: Option<u32>, mbps: Option<u32>, burst: Option<u32>) -> AdminRequest {
    let volume = "lun0".to_owned();
    AdminRequest::VolumeCeilings { volume, iops_max: iops, mbps_max: mbps, burst_seconds: burst }
}

/// The volume as hosts of each shard have it.
fn in_shards(engine: &Engine, shards: usize) -> Vec<Volume> {
    (0..shards).map(|shard| engine.volumes_in(shard).remove(0)).collect()
}

/// Reads of hosts of these shards that end in each of so many seconds.
async fn reads(world: &World, volumes: &[Volume], seconds: usize) -> Vec<u32> {
    let ended = Rc::new(RefCell::new(vec![0; seconds]));
    let began = world.now();
    let host = |(volume, number): (&Volume, u64)| {
        let (clock, volume, ended) = (world.clone(), volume.clone(), ended.clone());
        let reading = async move {
            for round in 0.. {
                let lba = Lba((number + round * DEPTH) % 100 * u64::from(SECTORS));
                volume.admit(u64::from(SECTORS), &|| false).await;
                let (result, _) = volume.read(lba, clock.buffer(SECTORS)).await;
                result.expect("it is read");
                let second = (clock.now() - began).0 as usize / 1_000_000_000;
                match ended.borrow_mut().get_mut(second) {
                    Some(count) => *count += 1,
                    None => return,
                }
                clock.sleep(THINKS).await;
            }
        };
        world.spawn(reading)
    };
    let hosts = volumes.iter().flat_map(|volume| (0..DEPTH).map(move |number| (volume, number)));
    join_all(hosts.map(host).collect::<Vec<_>>()).await;
    ended.take()
}

/// The ceiling of requests a second, and whether each of these seconds is as full as it may be.
fn are_held(ceiling: u32, seconds: &[u32]) -> bool {
    seconds.iter().all(|count| count.abs_diff(ceiling) <= ceiling / 20)
}

/// What two shards read in five seconds under 1000 IOPS.
fn at_a_thousand() -> Vec<u32> {
    Drives::founded("raid1", 2, 2, 2, 61).life(1, |world, engine, _| async move {
        done(&engine, limit(Some(1000), None, None)).await;
        reads(&world, &in_shards(&engine, 2), 5).await
    })
}

#[test]
fn two_shards_share_a_ceiling_of_requests() {
    let seconds = at_a_thousand();
    assert!(are_held(1000, &seconds), "{seconds:?}");
}

#[test]
fn a_budget_that_each_shard_has_for_itself_is_found() {
    let _planted = plant(PlantedBug::LeaseTwice);
    let seconds = at_a_thousand();
    assert!(!are_held(1000, &seconds), "{seconds:?}");
}

#[test]
fn a_shard_has_the_whole_ceiling_where_the_other_asks_for_nothing() {
    Drives::founded("raid1", 2, 2, 2, 62).life(1, |world, engine, _| async move {
        done(&engine, limit(Some(1000), None, None)).await;
        let seconds = reads(&world, &in_shards(&engine, 1), 3).await;
        assert!(are_held(1000, &seconds), "{seconds:?}");
    });
}

#[test]
fn bytes_are_held_too_and_the_lower_ceiling_counts() {
    Drives::founded("raid1", 2, 2, 2, 63).life(1, |world, engine, _| async move {
        // 8 KiB each.
        done(&engine, limit(Some(2000), Some(8), None)).await;
        let seconds = reads(&world, &in_shards(&engine, 2), 3).await;
        assert!(are_held(8_000_000 / 8192, &seconds), "{seconds:?}");
    });
}

#[test]
fn what_was_not_used_is_a_burst() {
    Drives::founded("raid1", 2, 2, 2, 64).life(1, |world, engine, _| async move {
        done(&engine, limit(Some(500), None, Some(2))).await;
        let volumes = in_shards(&engine, 2);
        let seconds = reads(&world, &volumes, 2).await;
        assert!(are_held(500, &seconds), "nothing is saved at first: {seconds:?}");
        world.sleep(Nanos::from_secs(30)).await;
        let seconds = reads(&world, &volumes, 3).await;
        assert!(are_held(1500, &seconds[..1]) && are_held(500, &seconds[1..]), "{seconds:?}");
    });
}

#[test]
fn ceilings_that_are_lifted_let_go_of_what_waits_and_a_power_cut_keeps_them() {
    let array = Drives::founded("raid1", 2, 2, 2, 65);
    array.life(1, |world, engine, _| async move {
        let volumes = in_shards(&engine, 2);
        let free = reads(&world, &volumes, 1).await[0];
        done(&engine, limit(Some(1), None, None)).await;
        let waiting = {
            let (world, volumes) = (world.clone(), volumes.clone());
            world.clone().spawn(async move { reads(&world, &volumes, 2).await })
        };
        world.sleep(Nanos::from_millis(500)).await;
        done(&engine, limit(Some(0), None, None)).await;
        let seconds = waiting.await;
        assert!(seconds[0] > 2 && seconds[1].abs_diff(free) <= free / 20, "{seconds:?} of {free}");
        assert_eq!(pool(&engine).await.volumes[0].ceilings, None);
        done(&engine, limit(Some(200), Some(100), Some(1))).await;
    });
    array.life(2, |world, engine, _| async move {
        let known = Ceilings { iops_max: Some(200), mbps_max: Some(100), burst_seconds: 1 };
        assert_eq!(pool(&engine).await.volumes[0].ceilings, Some(known));
        let seconds = reads(&world, &in_shards(&engine, 2), 1).await;
        assert!(seconds[0] <= 410, "a second of a burst at most: {seconds:?}");
        let report = engine.io_report().await;
        let throttled = &report.pools[0].throttling[0];
        assert!(throttled.requests > 0 && throttled.wait_ms_mean().is_some_and(|wait| wait > 1.0));
    });
}

#[test]
fn a_request_of_more_than_a_second_gets_through_and_flushes_are_free() {
    Drives::founded("raid1", 2, 2, 2, 66).life(1, |world, engine, _| async move {
        done(&engine, limit(None, Some(1), None)).await;
        let lun0 = in_shards(&engine, 2).remove(0);
        let began = world.now();
        lun0.admit(6 * 2048, &|| false).await;
        write(&world, &lun0, 0, 6 * 2048, 3).await;
        assert!(world.now() - began < Nanos::from_secs(1), "it starts in its turn");
        lun0.flush().await.expect("flushed");
        lun0.admit(0, &|| false).await;
        lun0.discard(Lba(0), 8).await.expect("discarded");
        lun0.admit(8, &|| false).await;
        write(&world, &lun0, 0, 8, 4).await;
        let took = (world.now() - began).as_secs_f64();
        assert!((6.0..6.5).contains(&took), "6 MiB at 1 MB/s are paid for first: {took}");
    });
}

/// Requests that waited for a ceiling began long after their client had gone, over what others had written since, and others waited
/// for their share.
#[test]
fn what_a_departed_client_has_asked_for_does_not_begin() {
    Drives::founded("raid1", 2, 2, 2, 67).life(1, |world, engine, _| async move {
        done(&engine, limit(Some(1), None, None)).await;
        let lun0 = in_shards(&engine, 2).remove(0);
        assert!(lun0.admit(8, &|| false).await);
        let is_gone = Rc::new(Cell::new(false));
        let waits = (0..20).map(|_| {
            let (volume, is_gone) = (lun0.clone(), is_gone.clone());
            world.spawn(async move { volume.admit(8, &|| is_gone.get()).await })
        });
        let waits: Vec<_> = waits.collect();
        world.sleep(Nanos::from_millis(10)).await;
        is_gone.set(true);
        assert_eq!(join_all(waits).await, [false; 20]);
        let began = world.now();
        assert!(lun0.admit(8, &|| false).await);
        assert!(world.now() - began < Nanos::from_secs(2), "their share is there for others");
    });
}

#[test]
fn what_cannot_be_a_ceiling_is_refused() {
    Drives::founded("raid1", 2, 2, 1, 67).life(1, |_, engine, _| async move {
        for (request, says) in [
            (limit(None, None, None), "set iops.max, mbps.max or burst"),
            (limit(None, None, Some(5)), "no ceiling that a burst could exceed"),
            (limit(Some(u32::MAX), None, None), "iops.max is at most 10000000 requests"),
        ] {
            let text = refused(&engine, request).await;
            assert!(text.contains(says), "{text}");
        }
        let text = done(&engine, limit(Some(0), None, None)).await;
        assert!(text.contains("no ceilings already"), "{text}");
    });
}
