//! Drives that were lost and come back while the array runs: what has changed since is rebuilt on them, and no more.

mod needed;

use std::cell::Cell;
use std::rc::Rc;

use tier0_api::{AdminRequest, DriveState, DriveStatus, RebuildStatus};
use tier0_array::engine::{Engine, StartOptions, start};
use tier0_drive::sim::SimMedium;
use tier0_drive::{Command, Drive, DriveHandle, DriveInfo};
use tier0_units::{ByteCount, Lba, Nanos, SECTOR_BYTES};
use tier0_world::{Completion, World};

use crate::rig::{Drives, create_volume, done, expect, live, pool, volume, write};

const SECTORS: u32 = 1024;
const PIECES: u64 = 12;
/// Sectors between two pieces: each lies in a slot of its own.
const STRIDE: u64 = 2048;

/// Counts the sectors that are written to a drive.
struct Counting {
    drive: DriveHandle,
    written: Rc<Cell<u64>>,
}

impl Drive for Counting {
    fn info(&self) -> &DriveInfo {
        self.drive.info()
    }

    fn world(&self) -> &World {
        self.drive.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        if let Command::Write { buf, .. } = &command {
            self.written.set(self.written.get() + u64::from(buf.sectors()));
        }
        self.drive.submit(command, completion);
    }
}

async fn fill(world: &World, engine: &Engine, pieces: std::ops::Range<u64>, value: u8) {
    for piece in pieces {
        write(world, &volume(engine, "big"), piece * STRIDE, SECTORS, value + piece as u8).await;
    }
}

async fn check(world: &World, engine: &Engine, pieces: std::ops::Range<u64>, value: u8) {
    for piece in pieces {
        expect(world, &volume(engine, "big"), piece * STRIDE, SECTORS, value + piece as u8).await;
    }
}

async fn whole(world: &World, engine: &Engine) {
    for _ in 0..600 {
        let status = pool(engine).await;
        let all_serve = status.drives.iter().all(|drive| drive.state == DriveState::Active);
        if all_serve && status.sets.degraded == 0 && status.rebuild.is_none() {
            return;
        }
        world.sleep(Nanos::from_millis(100)).await;
    }
    panic!("after a minute: {:?}", pool(engine).await.problems);
}

/// Takes `d1` back; how many sectors were written to it until all was well.
async fn rejoin(world: &World, engine: &Engine, drives: &Drives) -> u64 {
    let written = Rc::new(Cell::new(0));
    let counting = Counting { drive: drives.media[1].open(world), written: written.clone() };
    engine.rejoin_drive(0, "d1", DriveHandle::new(counting)).await.expect("it joins");
    whole(world, engine).await;
    written.get()
}

/// A drive that was out for a moment was written anew from its first sector to its last.
#[test]
fn what_has_not_changed_since_a_drive_was_lost_is_not_written_to_it() {
    for (raid, drives, set_size, shards) in
        [("raid1", 2, 2, 1), ("raid10", 4, 4, 2), ("raid5", 4, 4, 2), ("raid6", 5, 5, 3)]
    {
        let array = Drives::founded(raid, drives, set_size, shards, 61);
        array.life(1, move |world, engine, drives| async move {
            done(&engine, create_volume("big", ByteCount::mib(PIECES), true)).await;
            fill(&world, &engine, 0..PIECES, 1).await;
            engine.drain().await.expect("destaged");
            let fail = || AdminRequest::DriveFail { drive: "d1".to_owned() };
            done(&engine, fail()).await;
            fill(&world, &engine, 0..1, 101).await;
            engine.drain().await.expect("destaged");
            let some = rejoin(&world, &engine, &drives).await;
            // What it holds counts again.
            scrub(&world, &engine).await;
            assert_eq!(pool(&engine).await.scrub.map(|scrub| scrub.repaired), Some(0), "{raid}");
            check(&world, &engine, 0..1, 101).await;
            check(&world, &engine, 1..PIECES, 1).await;
            // All of it changes, and all of it is written.
            done(&engine, fail()).await;
            fill(&world, &engine, 0..PIECES, 51).await;
            engine.drain().await.expect("destaged");
            let all = rejoin(&world, &engine, &drives).await;
            assert!(some * 3 < all, "{raid}: {some} sectors for a slot, {all} for {PIECES}");
            drives.media[0].unplug();
            check(&world, &engine, 0..PIECES, 51).await;
        });
    }
}

/// What a drive had not made stable when it was lost is not on it, although no host has written since.
#[test]
fn what_was_in_the_cache_of_a_drive_that_was_lost_is_written_again() {
    for moment in 0..12u64 {
        let array = Drives::founded("raid5", 4, 4, 2, 70 + moment);
        array.life(1, move |world, engine, drives| async move {
            done(&engine, create_volume("big", ByteCount::mib(PIECES), true)).await;
            fill(&world, &engine, 0..PIECES, 1).await;
            let draining = engine.clone();
            let drain = world.spawn(async move { draining.drain().await });
            world.sleep(Nanos::from_micros(moment * moment * 150)).await;
            drives.media[1].lose_power();
            drives.media[1].disconnect();
            drain.await.expect("destaged to the others");
            if pool(&engine).await.drives.iter().all(|drive| drive.state == DriveState::Active) {
                // All had been stable before.
                engine.administer(AdminRequest::DriveFail { drive: "d1".to_owned() }).await;
            }
            drives.media[1].reconnect();
            rejoin(&world, &engine, &drives).await;
            drives.media[0].unplug();
            check(&world, &engine, 0..PIECES, 1).await;
        });
    }
}

/// A column that was rebuilt by what had changed, moved to another drive and came back to its chunklet was believed to be
/// there again: nothing was copied, and what had been written meanwhile was lost.
#[test]
fn a_chunklet_that_returned_is_not_believed_again_when_its_column_was_elsewhere_since() {
    let mut array = Drives::founded("raid1", 2, 2, 1, 62);
    let spare = array.plug_in();
    array.life(1, move |world, engine, drives| async move {
        done(&engine, create_volume("big", ByteCount::mib(PIECES), true)).await;
        fill(&world, &engine, 0..PIECES, 1).await;
        engine.drain().await.expect("destaged");
        done(&engine, AdminRequest::DriveFail { drive: "d1".to_owned() }).await;
        fill(&world, &engine, 0..1, 101).await;
        engine.drain().await.expect("destaged");
        engine.rejoin_drive(0, "d1", drives.media[1].open(&world)).await.expect("it joins");
        let medium = drives.media.last().expect("it was plugged in");
        engine.add_drive(0, &spare, medium.open(&world)).await.expect("it joins");
        let leave = |stop| AdminRequest::DriveRemove { drive: "d1".to_owned(), force: false, stop };
        done(&engine, leave(false)).await;
        let moved = async || {
            let status = pool(&engine).await;
            status.drives.iter().find(|drive| drive.name == spare).map_or(0, |drive| drive.chunklets_used)
        };
        while moved().await < PIECES {
            world.sleep(Nanos::from_micros(50)).await;
        }
        done(&engine, leave(true)).await;
        fill(&world, &engine, 0..PIECES, 51).await;
        engine.drain().await.expect("destaged");
        done(&engine, AdminRequest::DriveFail { drive: spare.clone() }).await;
        while pool(&engine).await.sets.degraded > 0 {
            world.sleep(Nanos::from_millis(100)).await;
        }
        scrub(&world, &engine).await;
        assert_eq!(pool(&engine).await.scrub.map(|scrub| scrub.repaired), Some(0));
        check(&world, &engine, 0..PIECES, 51).await;
    });
}

/// Damages all of a drive that [`fill`] has written, as far as it is the same in all bytes of a sector.
fn damage(medium: &SimMedium) {
    let mut sector = [0; SECTOR_BYTES as usize];
    for lba in 0..medium.options().info.sectors.0 {
        medium.peek(Lba(lba), &mut sector);
        if sector[0] != 0 && sector.iter().all(|byte| *byte == sector[0]) {
            medium.rot(Lba(lba));
        }
    }
}

/// Scrubs the pool.
async fn scrub(world: &World, engine: &Engine) {
    done(engine, AdminRequest::ScrubStart { pool: None, rate: None }).await;
    while pool(engine).await.scrub.is_none_or(|scrub| scrub.running) {
        world.sleep(Nanos::from_millis(100)).await;
    }
}

/// A drive that was taken back after a restart was written over, although what it held was the only right copy of what had
/// rotted on another one.
#[test]
fn what_only_a_drive_holds_that_is_taken_back_is_kept() {
    for (raid, drives, rotten) in [("raid1", 2, 1), ("raid10", 4, 1), ("raid5", 4, 1), ("raid6", 5, 2)] {
        let array = Drives::founded(raid, drives, drives, 2, 63);
        array.life(1, move |world, engine, _| async move {
            done(&engine, create_volume("big", ByteCount::mib(PIECES), true)).await;
            fill(&world, &engine, 0..PIECES, 1).await;
            engine.drain().await.expect("destaged");
        });
        // What the log still holds is brought to all drives, and not to those alone that are left.
        array.life(2, |_, engine, _| async move { engine.drain().await.expect("destaged") });
        array.media[1].disconnect();
        live(3, move |world| async move {
            let drives = array;
            let without = vec!["d1".to_owned()];
            let engine =
                start(&world, drives.open(&world), &StartOptions { without, ..StartOptions::default() })
                    .await
                    .expect("started");
            for medium in drives.media.iter().filter(|medium| medium.options().info.name != "d1").take(rotten)
            {
                damage(medium);
            }
            drives.media[1].reconnect();
            rejoin(&world, &engine, &drives).await;
            scrub(&world, &engine).await;
            check(&world, &engine, 0..PIECES, 1).await;
            let status = pool(&engine).await;
            assert_eq!(status.integrity.unrecoverable, 0, "{raid}: {:?}", status.problems);
            assert!(status.integrity.repaired > 0, "{raid}: something had rotted");
        });
    }
}

/// Waits until spares have taken over what a lost drive had.
async fn taken_over(world: &World, engine: &Engine) {
    while pool(engine).await.sets.degraded > 0 || pool(engine).await.rebuild.is_some() {
        world.sleep(Nanos::from_millis(100)).await;
    }
}

/// Fills a volume, and has the drive join that was plugged in last.
async fn fill_and_add(world: &World, engine: &Engine, drives: &Drives, spare: &str) {
    done(engine, create_volume("big", ByteCount::mib(PIECES), true)).await;
    fill(world, engine, 0..PIECES, 1).await;
    engine.drain().await.expect("destaged");
    let medium = drives.media.last().expect("it was plugged in");
    engine.add_drive(0, spare, medium.open(world)).await.expect("it joins");
}

/// An array with a drive more than its sets need, of which `d1` is gone since all was on it.
fn with_a_spare(raid: &str, drives: usize, seed: u64) -> Drives {
    let mut array = Drives::founded(raid, drives, drives, 2, seed);
    let spare = array.plug_in();
    array.life(1, move |world, engine, drives| async move {
        fill_and_add(&world, &engine, &drives, &spare).await;
    });
    // What the log still holds is brought to all drives, and not to those alone that are left.
    array.life(2, |_, engine, _| async move { engine.drain().await.expect("destaged") });
    array.media[1].disconnect();
    array
}

/// Starts without `d1`, and lets the spare take over while so many other drives have rotted.
async fn taken_over_with_loss(world: &World, drives: &Drives, rotten: usize) -> Engine {
    let options = StartOptions { without: vec!["d1".to_owned()], ..StartOptions::default() };
    let engine = start(world, drives.open(world), &options).await.expect("started");
    let others = drives.media.iter().filter(|medium| medium.options().info.name != "d1");
    others.take(rotten).for_each(damage);
    taken_over(world, &engine).await;
    assert!(pool(&engine).await.integrity.unrecoverable > 0, "something is lost");
    engine
}

/// Spares had taken over what a lost drive held, with pages lost that had rotted elsewhere, and what the drive held of them
/// was let go when it was taken back.
#[test]
fn what_only_a_drive_holds_is_kept_although_spares_have_taken_over() {
    for (raid, drives, rotten) in [("raid1", 2, 1), ("raid5", 4, 1), ("raid6", 5, 2)] {
        for restarts in [false, true] {
            let array = with_a_spare(raid, drives, 64);
            let drives = array.clone();
            live(3, move |world| async move {
                let engine = taken_over_with_loss(&world, &drives, rotten).await;
                if !restarts {
                    come_back(&world, &engine, &drives, raid).await;
                }
            });
            if restarts {
                live(4, move |world| async move {
                    let engine =
                        start(&world, array.open(&world), &StartOptions::default()).await.expect("started");
                    come_back(&world, &engine, &array, raid).await;
                });
            }
        }
    }
}

/// Takes `d1` back; all is right then.
async fn come_back(world: &World, engine: &Engine, drives: &Drives, raid: &str) {
    drives.media[1].reconnect();
    rejoin(world, engine, drives).await;
    scrub(world, engine).await;
    check(world, engine, 0..PIECES, 1).await;
    let status = pool(engine).await;
    assert!(status.integrity.lost.is_empty(), "{raid}: {:?}", status.problems);
    let back = status.drives.iter().find(|drive| drive.name == "d1").expect("it is back");
    assert!(back.chunklets_used > 0, "{raid}: it has what it had");
    // It is needed no longer where all is right.
    done(engine, AdminRequest::DriveFail { drive: "d1".to_owned() }).await;
    taken_over(world, engine).await;
    rejoin(world, engine, drives).await;
    check(world, engine, 0..PIECES, 1).await;
}

/// A crash between the moment at which a drive had joined again and the return of its columns gave its chunklets to others.
#[test]
fn what_only_a_drive_holds_is_kept_although_the_power_fails_while_it_is_taken_back() {
    let mut had_joined = 0;
    for moment in 0..30u64 {
        let array = with_a_spare("raid5", 4, 66);
        let drives = array.clone();
        live(3, move |world| async move {
            let engine = taken_over_with_loss(&world, &drives, 1).await;
            drives.media[1].reconnect();
            let medium = drives.media[1].open(&world);
            let joining = world.spawn(async move { engine.rejoin_drive(0, "d1", medium).await });
            world.sleep(Nanos::from_micros(moment * 400)).await;
            drop(joining);
        });
        array.cut();
        had_joined += u32::from(live(4, move |world| async move {
            let drives = array;
            let engine = start(&world, drives.open(&world), &StartOptions::default()).await.expect("started");
            let status = pool(&engine).await;
            let is_it = |drive: &DriveStatus| drive.name == "d1" && drive.state == DriveState::Active;
            let has_joined = status.drives.iter().any(is_it);
            if has_joined {
                whole(&world, &engine).await;
            } else {
                rejoin(&world, &engine, &drives).await;
            }
            scrub(&world, &engine).await;
            check(&world, &engine, 0..PIECES, 1).await;
            has_joined
        }));
    }
    assert!((5..30).contains(&had_joined), "{had_joined} of 30 had joined");
}

/// Waits until a spare has some of what it is to take over.
async fn half_taken_over(world: &World, engine: &Engine) {
    let has_some =
        |rebuild: &RebuildStatus| rebuild.slots_done > 1 && rebuild.slots_done < rebuild.slots_total;
    for _ in 0..100_000 {
        if pool(engine).await.rebuild.as_ref().is_some_and(has_some) {
            return;
        }
        world.sleep(Nanos::from_micros(50)).await;
    }
    panic!("no rebuild was seen half way");
}

/// A spare that was lost while it took over what a drive had kept the columns of that drive from it when it was taken back: what
/// is kept for them was free for nobody, them included. What the spare had been given meanwhile is on it alone.
#[test]
fn a_drive_is_taken_back_although_the_spare_that_took_over_is_lost() {
    for (raid, drives) in [("raid1", 2), ("raid5", 3), ("raid6", 4)] {
        for restarts in [false, true] {
            let mut array = Drives::founded(raid, drives, drives, 2, 67);
            let spare = array.plug_in();
            let fail = |drive: &str| AdminRequest::DriveFail { drive: drive.to_owned() };
            array.life(1, move |world, engine, drives| async move {
                fill_and_add(&world, &engine, &drives, &spare).await;
                done(&engine, fail("d1")).await;
                half_taken_over(&world, &engine).await;
                fill(&world, &engine, 0..PIECES, 51).await;
                engine.drain().await.expect("destaged");
                done(&engine, fail(&spare)).await;
                if !restarts {
                    all_returns(&world, &engine, &drives, &spare).await;
                }
            });
            if restarts {
                let spare = array.media.last().expect("it was plugged in").options().info.name.clone();
                array.life(2, move |world, engine, drives| async move {
                    all_returns(&world, &engine, &drives, &spare).await;
                });
            }
        }
    }
}

/// Takes `d1` back without the spare; it has what it had, and as it is now.
async fn all_returns(world: &World, engine: &Engine, drives: &Drives, spare: &str) {
    engine.rejoin_drive(0, "d1", drives.media[1].open(world)).await.expect("it joins");
    done(engine, AdminRequest::DriveRemove { drive: spare.to_owned(), force: false, stop: false }).await;
    whole(world, engine).await;
    scrub(world, engine).await;
    assert_eq!(pool(engine).await.scrub.map(|scrub| scrub.repaired), Some(0));
    drives.media[0].unplug();
    check(world, engine, 0..PIECES, 51).await;
}

/// The drive to which all was moving died, and no chunklet was free: what had been moved was on it alone, and stayed without
/// redundancy for ever, although the old drive serves.
#[test]
fn what_was_moving_to_a_drive_that_is_lost_is_rebuilt_where_it_is() {
    for (raid, drives) in [("raid1", 2), ("raid5", 3)] {
        let mut array = Drives::founded(raid, drives, drives, 1, 83);
        let new = array.plug_in();
        array.life(1, move |world, engine, drives| async move {
            fill_and_add(&world, &engine, &drives, &new).await;
            let leave = |stop| AdminRequest::DriveRemove { drive: "d1".to_owned(), force: false, stop };
            done(&engine, leave(false)).await;
            half_taken_over(&world, &engine).await;
            done(&engine, AdminRequest::DriveFail { drive: new.clone() }).await;
            done(&engine, leave(true)).await;
            let forget = AdminRequest::DriveRemove { drive: new.clone(), force: false, stop: false };
            done(&engine, forget).await;
            whole(&world, &engine).await;
            assert!(pool(&engine).await.drives.iter().all(|drive| drive.name != new));
            drives.media[0].unplug();
            check(&world, &engine, 0..PIECES, 1).await;
        });
    }
}
