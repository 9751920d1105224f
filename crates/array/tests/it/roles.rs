//! Drives that hold the write log and no data: they take columns only for want of others, and give them back; and drives that
//! replace others, which get what those had.

use crate::rig::{Drives, GROW, create_volume, describe, done, expect_filled, fill, pool, refused};
use tier0_api::{AdminRequest, DriveStatus, Health, PoolStatus};
use tier0_array::engine::Engine;
use tier0_units::{ByteCount, Nanos};
use tier0_world::World;

/// Mirrors on d0 to d3, and the log alone on d4 and d5; one drive more, which is not in the array yet.
fn founded(shards: usize, seed: u64) -> Drives {
    let drives = "drives = [\"d0\", \"d1\", \"d2\", \"d3\"]\nlog_drives = [\"d4\", \"d5\"]";
    let mut array = Drives::described(describe("raid1", 6, 2, drives), 6, shards, seed);
    assert_eq!(array.plug_in(), "d6");
    array
}

fn drive<'a>(pool: &'a PoolStatus, name: &str) -> &'a DriveStatus {
    pool.drives.iter().find(|drive| drive.name == name).unwrap_or_else(|| panic!("there is no {name}"))
}

/// Columns on drives that are not for data.
fn misplaced(pool: &PoolStatus) -> u64 {
    pool.drives.iter().filter(|drive| !drive.for_data).map(|drive| drive.misplaced_columns).sum()
}

/// Waits until nothing is rebuilt or moved any more; the pool then.
async fn settled(world: &World, engine: &Engine) -> PoolStatus {
    for _ in 0..1200 {
        let now = pool(engine).await;
        if now.rebuild.is_none() && now.restripe.is_none() {
            return now;
        }
        world.sleep(Nanos::from_millis(50)).await;
    }
    panic!("after a minute, columns are still under way: {:?}", pool(engine).await.rebuild);
}

async fn filled(world: &World, engine: &Engine) -> u64 {
    done(engine, create_volume("data", ByteCount::mib(20), true)).await;
    fill(world, engine, "data").await
}

async fn fail(engine: &Engine, name: &str) {
    done(engine, AdminRequest::DriveFail { drive: name.to_owned() }).await;
}

async fn replace(world: &World, engine: &Engine, drives: &Drives, old: &str) {
    let new = drives.media[6].open(world);
    engine.replace_drive(old, "d6", new).await.expect("it joins");
}

/// What drives that are not for data have of sets is told in every place.
async fn expect_told(engine: &Engine, pool: &PoolStatus) {
    assert_eq!((pool.sets.degraded, pool.health), (0, Health::Warning), "{:?}", pool.problems);
    let finding =
        pool.problems.iter().find(|problem| problem.contains("for the write log or the flash cache alone"));
    let finding = finding.unwrap_or_else(|| panic!("it is not told: {:?}", pool.problems));
    assert!(finding.contains("tier0 drive add"), "{finding}");
    let events = engine.status().await.events;
    let told =
        |event: &&tier0_api::Event| event.thing == "drive d4" && event.what.contains("columns of sets");
    assert!(events.iter().any(|event| told(&event)), "{events:?}");
}

/// The drives of the log became drives of data when a drive of data failed, for good and silently: the pool grew into them, and
/// the drive that replaced the failed one stayed empty.
#[test]
fn drives_of_the_log_give_columns_back_to_the_drive_that_replaces_a_lost_one() {
    for shards in [1, 2] {
        let array = founded(shards, 61);
        let extents = array.life(1, move |world, engine, drives| async move {
            let extents = filled(&world, &engine).await;
            let before = pool(&engine).await;
            let had = drive(&before, "d1").chunklets_used;
            assert!(before.drives.iter().all(|drive| drive.for_data != ["d4", "d5"].contains(&&*drive.name)));
            fail(&engine, "d1").await;
            let degraded = settled(&world, &engine).await;
            assert_eq!(misplaced(&degraded), had, "there was no room elsewhere: {:?}", degraded.drives);
            expect_told(&engine, &degraded).await;
            let text = refused(&engine, GROW).await;
            assert!(text.contains("add drives"), "the drives of the log are no room to grow: {text}");
            replace(&world, &engine, &drives, "d1").await;
            let after = settled(&world, &engine).await;
            assert_eq!(misplaced(&after), 0, "{:?}", after.drives);
            assert_eq!(drive(&after, "d6").chunklets_used, had);
            for name in ["d0", "d2", "d3", "d4", "d5"] {
                let now = drive(&after, name).chunklets_used;
                assert_eq!(now, drive(&before, name).chunklets_used, "drive {name}");
            }
            assert_eq!(after.health, Health::Healthy, "{:?}", after.problems);
            expect_filled(&world, &engine, "data", extents).await;
            extents
        });
        array.life(2, move |world, engine, _| async move {
            let now = pool(&engine).await;
            assert!(now.drives.iter().all(|drive| drive.for_data != ["d4", "d5"].contains(&&*drive.name)));
            assert_eq!(misplaced(&now), 0);
            expect_filled(&world, &engine, "data", extents).await;
        });
    }
}

/// After a restart a drive that had columns was one of data.
#[test]
fn what_drives_are_for_outlives_restarts_and_a_drive_that_is_added_takes_their_columns() {
    let array = founded(2, 62);
    let (extents, had) = array.life(1, |world, engine, _| async move {
        let extents = filled(&world, &engine).await;
        let had = drive(&pool(&engine).await, "d1").chunklets_used;
        fail(&engine, "d1").await;
        settled(&world, &engine).await;
        (extents, had)
    });
    array.life(2, move |world, engine, drives| async move {
        let now = settled(&world, &engine).await;
        assert_eq!(misplaced(&now), had);
        expect_told(&engine, &now).await;
        let new = drives.media[6].open(&world);
        engine.add_drive(0, "d6", new).await.expect("it joins");
        let now = settled(&world, &engine).await;
        assert_eq!((misplaced(&now), drive(&now, "d6").chunklets_used), (0, had));
        let events = engine.status().await.events;
        assert!(events.iter().any(|event| event.what.contains("no columns of sets any more")), "{events:?}");
        expect_filled(&world, &engine, "data", extents).await;
    });
}

/// A drive that is taken back has room again.
#[test]
fn columns_go_back_when_the_lost_drive_is_taken_back() {
    let array = founded(1, 63);
    array.life(1, |world, engine, drives| async move {
        let extents = filled(&world, &engine).await;
        fail(&engine, "d1").await;
        assert!(misplaced(&settled(&world, &engine).await) > 0);
        engine.rejoin_drive(0, "d1", drives.media[1].open(&world)).await.expect("it joins");
        let now = settled(&world, &engine).await;
        assert_eq!((misplaced(&now), now.sets.degraded), (0, 0), "{:?}", now.problems);
        expect_filled(&world, &engine, "data", extents).await;
    });
}

/// No set is less redundant while its column moves back: each survives the loss of any drive at any moment.
#[test]
fn nothing_is_less_redundant_while_columns_go_back() {
    for moment in 0..6u64 {
        let array = founded(2, 70 + moment);
        array.life(moment, move |world, engine, drives| async move {
            let extents = under_way(&world, &engine, &drives, moment).await;
            assert_eq!(pool(&engine).await.sets.degraded, 0, "moment {moment}");
            drives.media[2].unplug();
            expect_filled(&world, &engine, "data", extents).await;
        });
    }
}

#[test]
fn columns_go_on_going_back_after_a_power_cut() {
    for moment in 0..6u64 {
        let array = founded(2, 80 + moment);
        let extents = array.life(moment, move |world, engine, drives| async move {
            under_way(&world, &engine, &drives, moment).await
        });
        array.life(1000 + moment, move |world, engine, _| async move {
            let now = settled(&world, &engine).await;
            assert_eq!((misplaced(&now), now.sets.degraded), (0, 0), "moment {moment}: {:?}", now.problems);
            expect_filled(&world, &engine, "data", extents).await;
        });
    }
}

/// Fills a pool, and has d6 replace d1, which was lost: so long ago. How many extents were filled.
async fn under_way(world: &World, engine: &Engine, drives: &Drives, moment: u64) -> u64 {
    let extents = filled(world, engine).await;
    fail(engine, "d1").await;
    settled(world, engine).await;
    replace(world, engine, drives, "d1").await;
    world.sleep(Nanos::from_millis(moment * moment * 20)).await;
    extents
}

/// A power cut at many moments of the replacement of a drive that serves: the next life ends it or knows nothing of it. The
/// columns of the old drive moved to the new one, and the old one stayed.
#[test]
fn a_power_cut_while_a_serving_drive_is_replaced_leaves_it_as_it_was_or_has_it_leave() {
    let (mut stayed, mut left) = (0, 0);
    for moment in 0..60u64 {
        let array = founded(2, 100 + moment);
        let (extents, had) = array.life(moment, move |world, engine, drives| async move {
            let extents = filled(&world, &engine).await;
            engine.drain().await.expect("destaged");
            let had = drive(&pool(&engine).await, "d1").chunklets_used;
            let clock = world.clone();
            world.spawn(async move { replace(&clock, &engine, &drives, "d1").await }).detach();
            world.sleep(Nanos(1 + moment * 100_000)).await;
            (extents, had)
        });
        let has_left = array.life(1000 + moment, move |world, engine, _| async move {
            world.sleep(Nanos::from_secs(1)).await;
            let now = settled(&world, &engine).await;
            let used = |name: &str| {
                let known = now.drives.iter().find(|drive| drive.name == name);
                known.map(|drive| (drive.chunklets_used, drive.leaving))
            };
            match (used("d1"), used("d6")) {
                (Some(old), new) => {
                    assert_eq!(old, (had, false), "moment {moment}: {new:?}");
                    assert_eq!(new.unwrap_or_default(), (0, false), "moment {moment}");
                }
                (None, new) => assert_eq!(new, Some((had, false)), "moment {moment}"),
            }
            assert_eq!(
                (now.sets.degraded, now.health),
                (0, Health::Healthy),
                "moment {moment}: {:?}",
                now.problems
            );
            expect_filled(&world, &engine, "data", extents).await;
            used("d1").is_none()
        });
        *(if has_left { &mut left } else { &mut stayed }) += 1;
    }
    assert!(stayed > 0 && left > 0, "the moments are all before or all after: {stayed}, {left}");
}

/// Emptying a drive restores nothing, so it does not take the drives of the log.
#[test]
fn a_drive_is_not_emptied_onto_drives_of_the_log() {
    let array = founded(1, 64);
    array.life(1, |world, engine, drives| async move {
        let extents = filled(&world, &engine).await;
        let remove = AdminRequest::DriveRemove { drive: "d1".to_owned(), force: false, stop: false };
        let text = refused(&engine, remove).await;
        assert!(text.contains("lacking"), "{text}");
        // One that is replaced while it serves goes to the new drive alone.
        let had = drive(&pool(&engine).await, "d1").chunklets_used;
        replace(&world, &engine, &drives, "d1").await;
        let now = settled(&world, &engine).await;
        assert_eq!((misplaced(&now), drive(&now, "d6").chunklets_used), (0, had));
        expect_filled(&world, &engine, "data", extents).await;
    });
}

/// Spares on other drives had taken over what a drive had, and the one that replaced it got only what those were short of.
#[test]
fn a_drive_that_replaces_a_lost_one_gets_what_spares_have_taken_over() {
    let mut array = Drives::founded("raid1", 5, 2, 1, 65);
    (0..2).for_each(|_| drop(array.plug_in()));
    array.life(1, |world, engine, drives| async move {
        let extents = filled(&world, &engine).await;
        // Room that no set has, on a drive that nothing is told to use.
        engine.add_drive(0, "d5", drives.media[5].open(&world)).await.expect("it joins");
        let before = settled(&world, &engine).await;
        let had = drive(&before, "d1").chunklets_used - u64::from(drive(&before, "d1").holds_log);
        fail(&engine, "d1").await;
        let spread = settled(&world, &engine).await;
        assert_eq!((spread.sets.degraded, drive(&spread, "d5").chunklets_used >= had), (0, true));
        engine.replace_drive("d1", "d6", drives.media[6].open(&world)).await.expect("it joins");
        let after = settled(&world, &engine).await;
        assert!(drive(&after, "d6").chunklets_used >= had, "{:?}", after.drives);
        expect_filled(&world, &engine, "data", extents).await;
    });
}
