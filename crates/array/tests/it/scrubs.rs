//! What the status says of scrubs: how far they are, and how the last one ended.

use crate::rig::{Drives, create_volume, describe, done, fill, pool};
use tier0_api::{AdminRequest, ScrubResult, ScrubStatus};
use tier0_array::engine::Engine;
use tier0_units::{ByteCount, Nanos};
use tier0_world::World;

fn scrub_at(rate: ByteCount) -> AdminRequest {
    AdminRequest::ScrubStart { pool: None, rate: Some(rate) }
}

async fn scrub_of(engine: &Engine) -> ScrubStatus {
    pool(engine).await.scrub.expect("one has begun")
}

/// The status once no scrub runs; its progress never falls on the way there.
async fn ended(world: &World, engine: &Engine) -> ScrubStatus {
    let mut before = 0.0;
    for _ in 0..3600 {
        let scrub = scrub_of(engine).await;
        assert!(scrub.progress >= before && scrub.progress <= 1.0, "{before}, then {scrub:?}");
        if !scrub.running {
            return scrub;
        }
        before = scrub.progress;
        world.sleep(Nanos::from_millis(500)).await;
    }
    panic!("the scrub does not end: {:?}", scrub_of(engine).await)
}

/// Extents that had moved before the scrub came to them were missing from what it had seen: it ended at "90.7 %".
#[test]
fn a_scrub_beside_a_restripe_ends_at_all_of_it() {
    // Four slots in a set, so that new sets take some of them.
    let description = describe("raid1", 2, 2, "extent = \"256KiB\"\nstripe_unit = \"64KiB\"");
    let mut array = Drives::described(description, 2, 2, 71);
    (0..2).for_each(|_| drop(array.plug_in()));
    array.life(1, |world, engine, drives| async move {
        done(&engine, create_volume("early", ByteCount::mib(400), true)).await;
        fill(&world, &engine, "early").await;
        engine.drain().await.expect("destaged");
        let used = pool(&engine).await.space.used_bytes;
        for number in 2..4 {
            let drive = drives.media[number].open(&world);
            engine.add_drive(0, &format!("d{number}"), drive).await.expect("it joins");
        }
        done(&engine, scrub_at(ByteCount::mib(1))).await;
        done(&engine, AdminRequest::PoolGrow { pool: None, stop: false }).await;
        let scrub = ended(&world, &engine).await;
        assert!(pool(&engine).await.restripe.is_none(), "both ran at once");
        assert!(scrub.bytes_verified < used, "no extent has moved away from the scrub");
        let last = scrub.last.expect("it has ended");
        assert_eq!((last.result, scrub.progress), (ScrubResult::Finished, 1.0));
        assert_eq!((last.repaired, last.unrecoverable, last.extents_skipped), (0, 0, 0));
        assert_eq!(pool(&engine).await.scrubs_finished, 1);
    });
}

/// The part of a scrub that had been done before it was stopped was missing from its progress.
#[test]
fn a_scrub_that_was_stopped_goes_on_with_its_progress() {
    let array = Drives::founded("raid1", 2, 2, 1, 72);
    let stopped_at = array.life(1, |world, engine, _| async move {
        done(&engine, create_volume("early", ByteCount::mib(400), true)).await;
        fill(&world, &engine, "early").await;
        engine.drain().await.expect("destaged");
        assert!(pool(&engine).await.scrub.is_none());
        done(&engine, scrub_at(ByteCount::mib(1))).await;
        while scrub_of(&engine).await.progress < 0.4 {
            world.sleep(Nanos::from_secs(1)).await;
        }
        done(&engine, AdminRequest::ScrubStop { pool: None }).await;
        let stopped = ended(&world, &engine).await;
        let last = stopped.last.expect("it has ended");
        assert_eq!(last.result, ScrubResult::Stopped);
        assert!(stopped.progress >= 0.4 && stopped.progress < 1.0, "{stopped:?}");
        world.sleep(Nanos::from_secs(60)).await;
        let later = scrub_of(&engine).await.last.expect("it has ended");
        assert!((60..70).contains(&later.ended_s), "{later:?}");
        stopped.progress
    });
    array.life(2, move |world, engine, _| async move {
        // It goes on by itself after the start.
        let scrub = scrub_of(&engine).await;
        assert!(scrub.progress >= stopped_at - 0.1, "{scrub:?} after {stopped_at}");
        let ended = ended(&world, &engine).await;
        let last = ended.last.expect("it has ended");
        assert_eq!((last.result, ended.progress), (ScrubResult::Finished, 1.0));
        assert_eq!(pool(&engine).await.scrubs_finished, 1);
    });
}
