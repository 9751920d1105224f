//! Volumes that are made smaller or renamed while the array runs, and power cuts in between.

use std::cell::Cell;
use std::rc::Rc;

use crate::rig::trouble::within;
use crate::rig::{Drives, MIB, create_volume, done, expect, pool, refused, try_write, volume, write};
use tier0_api::{AdminReply, AdminRequest};
use tier0_array::Volume;
use tier0_array::engine::Engine;
use tier0_block::BlockTarget;
use tier0_units::{ByteCount, Lba, Nanos};
use tier0_world::{IoError, World};

fn shrink(name: &str, size: ByteCount) -> AdminRequest {
    AdminRequest::VolumeShrink { volume: name.to_owned(), size, force: false }
}

fn grow(name: &str, size: ByteCount) -> AdminRequest {
    AdminRequest::VolumeResize { volume: name.to_owned(), size }
}

fn rename(name: &str, new: &str) -> AdminRequest {
    AdminRequest::VolumeRename { volume: name.to_owned(), name: new.to_owned() }
}

fn clone(name: &str, new: &str) -> AdminRequest {
    AdminRequest::VolumeClone { volume: name.to_owned(), name: new.to_owned() }
}

/// 2.5 MiB: the last extent stays in part.
const SMALL: ByteCount = ByteCount((5 << 20) / 2);
const SMALL_SECTORS: u64 = SMALL.0 / 512;

/// Writes all of the first `extents` extents, each with its own value.
async fn write_all(world: &World, volume: &Volume, extents: u64, first: u8) {
    for extent in 0..extents {
        write(world, volume, extent * MIB, MIB as u32, first + extent as u8).await;
    }
}

/// The first 2.5 MiB hold what [`write_all`] wrote.
async fn expect_front(world: &World, volume: &Volume, first: u8) {
    expect(world, volume, 0, MIB as u32, first).await;
    expect(world, volume, MIB, MIB as u32, first + 1).await;
    expect(world, volume, 2 * MIB, (MIB / 2) as u32, first + 2).await;
}

/// Slots in use are those that volumes have.
async fn expect_no_leak(engine: &Engine) {
    engine.drain().await.expect("destaged");
    let pool = pool(engine).await;
    let mapped: u64 = pool.volumes.iter().map(|volume| volume.mapped_bytes).sum();
    assert_eq!(pool.space.used_bytes, mapped, "slots leak");
}

#[test]
fn a_volume_that_shrank_keeps_its_front_and_gives_its_tail_back() {
    // An extent is a whole number of rows, which of three data columns makes 1.125 MiB.
    for (raid, drives, shards, thin, settled, extent) in [
        ("raid1", 2, 1, true, false, 1 << 20),
        ("raid5", 4, 3, true, true, 9 << 17),
        ("raid10", 4, 2, false, false, 1 << 20),
    ] {
        let array = Drives::founded(raid, drives, drives, shards, 61);
        array.life(1, move |world, engine, _| async move {
            done(&engine, create_volume("logs", ByteCount::mib(6), thin)).await;
            let logs = volume(&engine, "logs");
            write_all(&world, &logs, 6, 20).await;
            if settled {
                engine.drain().await.expect("destaged");
            }
            let before = pool(&engine).await.space;
            done(&engine, shrink("logs", SMALL)).await;
            let space = pool(&engine).await.space;
            let taken = |space: &tier0_api::SpaceStatus| space.used_bytes + space.reserved_bytes;
            assert_eq!(taken(&before) - taken(&space), 3 * extent, "{raid}: three of six extents are free");
            expect_front(&world, &logs, 20).await;
            assert_eq!(try_write(&world, &logs, SMALL_SECTORS, 8, 1).await, Err(IoError::OutOfRange));
            write(&world, &logs, 64, 8, 99).await;
            expect_no_leak(&engine).await;
        });
        array.life(2, move |world, engine, _| async move {
            let logs = volume(&engine, "logs");
            assert_eq!(logs.info().sectors.0, SMALL_SECTORS, "{raid}: the size is durable");
            expect(&world, &logs, 64, 8, 99).await;
            expect(&world, &logs, 2 * MIB, (MIB / 2) as u32, 22).await;
            // Nothing of the tail comes back.
            done(&engine, grow("logs", ByteCount::mib(6))).await;
            expect(&world, &logs, SMALL_SECTORS, (6 * MIB - SMALL_SECTORS) as u32, 0).await;
        });
    }
}

/// What the write log still had of the tail was replayed when the volume had grown again.
#[test]
fn a_log_that_had_the_tail_does_not_bring_it_back() {
    let array = Drives::founded("raid5", 4, 4, 2, 62);
    array.life(1, |world, engine, _| async move {
        let lun0 = volume(&engine, "lun0");
        write_all(&world, &lun0, 6, 40).await;
        done(&engine, shrink("lun0", SMALL)).await;
        done(&engine, grow("lun0", ByteCount::mib(6))).await;
        write(&world, &lun0, 5 * MIB, 8, 7).await;
    });
    array.life(2, |world, engine, _| async move {
        let lun0 = volume(&engine, "lun0");
        expect_front(&world, &lun0, 40).await;
        expect(&world, &lun0, SMALL_SECTORS, (5 * MIB - SMALL_SECTORS) as u32, 0).await;
        expect(&world, &lun0, 5 * MIB, 8, 7).await;
        expect(&world, &lun0, 5 * MIB + 8, (MIB - 8) as u32, 0).await;
        expect_no_leak(&engine).await;
    });
}

#[test]
fn a_clone_keeps_what_its_original_gives_up() {
    let array = Drives::founded("raid1", 2, 2, 2, 63);
    array.life(1, |world, engine, _| async move {
        let lun0 = volume(&engine, "lun0");
        write_all(&world, &lun0, 6, 60).await;
        done(&engine, clone("lun0", "copy")).await;
        done(&engine, shrink("lun0", SMALL)).await;
        expect_front(&world, &lun0, 60).await;
    });
    array.life(2, |world, engine, _| async move {
        let (lun0, copy) = (volume(&engine, "lun0"), volume(&engine, "copy"));
        for extent in 0..6 {
            expect(&world, &copy, extent * MIB, MIB as u32, 60 + extent as u8).await;
        }
        expect_front(&world, &lun0, 60).await;
        done(&engine, shrink("copy", ByteCount::mib(1))).await;
        expect_front(&world, &lun0, 60).await;
        engine.drain().await.expect("destaged");
        let used = pool(&engine).await.space.used_bytes;
        assert_eq!(used, 3 << 20, "the original has three extents, and shares the first one with the clone");
    });
}

#[test]
fn what_cannot_shrink_is_refused_and_stays_as_it_is() {
    Drives::founded("raid1", 2, 2, 1, 64).life(1, |world, engine, _| async move {
        let lun0 = volume(&engine, "lun0");
        write(&world, &lun0, 5 * MIB, 8, 3).await;
        for (request, says) in [
            (shrink("none", ByteCount::mib(1)), "no volume"),
            (shrink("lun0", ByteCount(0)), "4KiB"),
            (shrink("lun0", ByteCount(1000)), "4KiB"),
            (shrink("lun0", ByteCount::mib(7)), "volume resize"),
        ] {
            let text = refused(&engine, request).await;
            assert!(text.contains(says), "{text}");
        }
        assert!(done(&engine, shrink("lun0", ByteCount::mib(6))).await.contains("nothing changed"));
        expect(&world, &lun0, 5 * MIB, 8, 3).await;
    });
}

/// A power cut at many moments of a shrink: the volume has its old size or its new one and all of its front; the tail holds
/// what it held, or zeros, and is zeros where the volume has shrunk; no slot leaks.
#[test]
fn a_power_cut_during_a_shrink_leaves_one_of_both_sizes() {
    let (mut shrunk_before, mut shrunk_after) = (0, 0);
    for moment in 0..40 {
        let array = Drives::founded("raid5", 4, 4, 2, 300 + moment);
        let has_ended = array.life(moment, move |world, engine, _| async move {
            done(&engine, create_volume("logs", ByteCount::mib(6), moment % 3 > 0)).await;
            let logs = volume(&engine, "logs");
            write_all(&world, &logs, 6, 20).await;
            if moment % 2 == 1 {
                engine.drain().await.expect("destaged");
            }
            let ended = Rc::new(Cell::new(false));
            let (told, asked) = (ended.clone(), engine.clone());
            let task = async move {
                done(&asked, shrink("logs", SMALL)).await;
                told.set(true);
            };
            world.spawn(task).detach();
            world.sleep(Nanos(1 + moment * moment * 100_000)).await;
            ended.get()
        });
        let size = array.life(moment, move |world, engine, _| async move {
            let logs = volume(&engine, "logs");
            expect_front(&world, &logs, 20).await;
            let size = logs.info().sectors.bytes();
            match size == SMALL {
                true => _ = done(&engine, grow("logs", ByteCount::mib(6))).await,
                false => assert_eq!(size, ByteCount::mib(6), "moment {moment}"),
            }
            for page in (SMALL_SECTORS..6 * MIB).step_by(8) {
                let (result, buf) = logs.read(Lba(page), world.buffer(8)).await;
                result.expect("a read succeeds");
                let value = buf.as_slice()[0];
                let old = 20 + (page / MIB) as u8;
                let may_be = value == 0 || (size != SMALL && value == old);
                assert!(may_be, "moment {moment}: page at {page} holds {value}");
            }
            expect_no_leak(&engine).await;
            size
        });
        assert!(!has_ended || size == SMALL, "moment {moment}: a shrink that was acknowledged is undone");
        shrunk_before += u32::from(size == SMALL && has_ended);
        shrunk_after += u32::from(size != SMALL);
    }
    assert!(shrunk_before > 0 && shrunk_after > 0, "the moments are all before or all after the shrink");
}

/// The volume was held for as long as the drives were away, and no other change began.
#[test]
fn a_shrink_during_which_a_pool_pauses_ends_and_everything_goes_on() {
    let (mut given_up, mut shrunk) = (0, 0);
    for moment in 0..24 {
        let array = Drives::founded("raid1", 2, 2, 2, 500 + moment);
        let (was_held, has_shrunk) = array.troubled_life(moment, move |world, engine, troubles| async move {
            done(&engine, create_volume("logs", ByteCount::mib(6), moment % 3 > 0)).await;
            let logs = volume(&engine, "logs");
            write_all(&world, &logs, 6, 20).await;
            engine.drain().await.expect("destaged");
            let asked = engine.clone();
            let shrinking = world.spawn(async move { asked.administer(shrink("logs", SMALL)).await });
            world.sleep(Nanos(1 + moment * moment * 60_000)).await;
            troubles.of.iter().for_each(|trouble| trouble.fail(Some(IoError::Gone)));
            let reply = shrinking.await;
            world.sleep(Nanos::from_secs(40)).await;
            let events = engine.status().await.events;
            let is_given_up = events.iter().any(|event| event.what.contains("keeps its size"));
            let was_held = events.iter().any(|event| event.what.contains("its drives took too long"));
            if is_given_up {
                // Another change has its turn while the drives are away.
                assert!(
                    matches!(&reply, AdminReply::Failed(text) if text.contains("not completed yet")),
                    "{reply:?}"
                );
                assert!(done(&engine, grow("logs", ByteCount::mib(6))).await.contains("nothing changed"));
            }
            troubles.of.iter().for_each(|trouble| trouble.fail(None));
            let goes_on = within(&world, Nanos::from_secs(20), async || pool(&engine).await.paused.is_none());
            assert!(goes_on.await, "moment {moment}: {:?}", pool(&engine).await.paused);
            write(&world, &logs, 64, 8, 99).await;
            let size = logs.info().sectors.bytes();
            assert_eq!(is_given_up, size != SMALL, "moment {moment}: {reply:?}");
            if is_given_up {
                done(&engine, shrink("logs", SMALL)).await;
            }
            expect(&world, &logs, 64, 8, 99).await;
            write(&world, &logs, 64, 8, 20).await;
            expect_front(&world, &logs, 20).await;
            expect_no_leak(&engine).await;
            (was_held, !is_given_up)
        });
        given_up += u32::from(was_held);
        shrunk += u32::from(has_shrunk);
        array.life(moment, |world, engine, _| async move {
            let logs = volume(&engine, "logs");
            assert_eq!(logs.info().sectors.0, SMALL_SECTORS);
            expect_front(&world, &logs, 20).await;
        });
    }
    assert!(given_up > 0 && shrunk > 0, "the moments are all before or all after: {given_up}, {shrunk}");
}

#[test]
fn a_renamed_volume_goes_on_and_keeps_its_name() {
    let array = Drives::founded("raid1", 2, 2, 2, 65);
    array.life(1, |world, engine, _| async move {
        let lun0 = volume(&engine, "lun0");
        write(&world, &lun0, 0, 64, 5).await;
        for (name, says) in [("lun0", "nothing changed"), ("redo", "renamed volume lun0 to redo")] {
            assert!(done(&engine, rename("lun0", name)).await.contains(says), "{name}");
        }
        assert_eq!(&*lun0.name(), "redo");
        write(&world, &lun0, 64, 64, 6).await;
        assert!(refused(&engine, rename("lun0", "other")).await.contains("no volume \"lun0\""));
        // The old name is free.
        done(&engine, create_volume("lun0", ByteCount::mib(1), true)).await;
        assert!(refused(&engine, rename("redo", "lun0")).await.contains("already"));
        assert!(refused(&engine, rename("redo", "a b")).await.contains("is not a valid name"));
        expect(&world, &volume(&engine, "lun0"), 0, 64, 0).await;
    });
    array.life(2, |world, engine, _| async move {
        expect(&world, &volume(&engine, "redo"), 0, 64, 5).await;
        expect(&world, &volume(&engine, "redo"), 64, 64, 6).await;
        expect(&world, &volume(&engine, "lun0"), 0, 64, 0).await;
        let names: Vec<String> = pool(&engine).await.volumes.into_iter().map(|volume| volume.name).collect();
        assert_eq!(names, ["redo", "lun0"]);
    });
}

/// A power cut at many moments of a rename: the volume has one of both names, with all that it held.
#[test]
fn a_power_cut_during_a_rename_leaves_one_of_both_names() {
    let (mut old, mut new) = (0, 0);
    for moment in 0..20 {
        let array = Drives::founded("raid1", 2, 2, 2, 400 + moment);
        let has_ended = array.life(moment, move |world, engine, _| async move {
            write(&world, &volume(&engine, "lun0"), 0, 64, 5).await;
            let ended = Rc::new(Cell::new(false));
            let (told, asked) = (ended.clone(), engine.clone());
            let task = async move {
                done(&asked, rename("lun0", "redo")).await;
                told.set(true);
            };
            world.spawn(task).detach();
            world.sleep(Nanos(1 + moment * moment * 2000)).await;
            ended.get()
        });
        let name = array.life(moment, move |world, engine, _| async move {
            let names: Vec<String> =
                engine.volumes().iter().map(|volume| volume.name().to_string()).collect();
            let [name] = &names[..] else { panic!("moment {moment}: {names:?}") };
            expect(&world, &volume(&engine, name), 0, 64, 5).await;
            name.clone()
        });
        assert!(!has_ended || name == "redo", "moment {moment}: a rename that was acknowledged is undone");
        match name.as_str() {
            "lun0" => old += 1,
            "redo" => new += 1,
            other => panic!("moment {moment}: {other}"),
        }
    }
    assert!(old > 0 && new > 0, "the moments are all before or all after the rename");
}
