//! Volumes that are created, grow and are deleted while the array runs, and power cuts in between.

use crate::rig::{Drives, create_volume, done, expect, pool, refused, try_write, volume, write};
use tier0_api::AdminRequest;
use tier0_block::BlockTarget;
use tier0_units::{ByteCount, Lba, Nanos};
use tier0_world::IoError;

fn delete(name: &str) -> AdminRequest {
    AdminRequest::VolumeDelete { volume: name.to_owned(), force: false }
}

fn resize(name: &str, size: ByteCount) -> AdminRequest {
    AdminRequest::VolumeResize { volume: name.to_owned(), size }
}

#[test]
fn a_volume_is_of_use_as_soon_as_it_is_created_and_survives_a_power_cut() {
    for (raid, drives, shards) in [("raid1", 2, 1), ("raid5", 4, 3)] {
        let array = Drives::founded(raid, drives, drives, shards, 31);
        array.life(1, |world, engine, _| async move {
            write(&world, &volume(&engine, "lun0"), 0, 64, 1).await;
            done(&engine, create_volume("logs", ByteCount::mib(8), true)).await;
            let logs = volume(&engine, "logs");
            for extent in 0..4 {
                write(&world, &logs, extent * 4096, 64, 10 + extent as u8).await;
            }
            world.sleep(Nanos::from_secs(20)).await;
            write(&world, &logs, 8, 8, 77).await;
        });
        array.life(2, |world, engine, _| async move {
            let names: Vec<String> =
                engine.volumes().iter().map(|volume| volume.name().to_string()).collect();
            assert_eq!(names, ["lun0", "logs"]);
            let logs = volume(&engine, "logs");
            expect(&world, &logs, 0, 8, 10).await;
            expect(&world, &logs, 8, 8, 77).await;
            expect(&world, &logs, 3 * 4096, 64, 13).await;
            expect(&world, &volume(&engine, "lun0"), 0, 64, 1).await;
        });
    }
}

#[test]
fn what_cannot_be_is_refused() {
    Drives::founded("raid1", 2, 2, 1, 32).life(1, |_, engine, _| async move {
        for (name, size, says) in [
            ("lun0", ByteCount::mib(1), "already"),
            ("a b", ByteCount::mib(1), "is not a valid name"),
            ("odd", ByteCount(1000), "4KiB"),
            ("huge", ByteCount::mib(4096), "does not fit"),
        ] {
            let text = refused(&engine, create_volume(name, size, false)).await;
            assert!(text.contains(says), "{name}: {text}");
        }
        assert!(refused(&engine, delete("none")).await.contains("no volume"));
        assert!(refused(&engine, resize("lun0", ByteCount::mib(1))).await.contains("larger only"));
    });
}

#[test]
fn a_volume_that_grew_has_zeros_at_its_end() {
    let array = Drives::founded("raid10", 4, 4, 2, 33);
    array.life(1, |world, engine, _| async move {
        let lun0 = volume(&engine, "lun0");
        write(&world, &lun0, 0, 64, 5).await;
        assert_eq!(try_write(&world, &lun0, (7 << 20) / 512, 8, 6).await, Err(IoError::OutOfRange));
        done(&engine, resize("lun0", ByteCount::mib(12))).await;
        expect(&world, &lun0, (11 << 20) / 512, 64, 0).await;
        write(&world, &lun0, (7 << 20) / 512, 8, 6).await;
    });
    array.life(2, |world, engine, _| async move {
        let lun0 = volume(&engine, "lun0");
        expect(&world, &lun0, 0, 64, 5).await;
        expect(&world, &lun0, (7 << 20) / 512, 8, 6).await;
        assert_eq!(pool(&engine).await.volumes[0].size_bytes, 12 << 20);
    });
}

#[test]
fn a_deleted_volume_gives_its_space_back_and_nothing_of_it_comes_again() {
    for (raid, drives, shards) in [("raid1", 2, 1), ("raid6", 5, 3)] {
        let array = Drives::founded(raid, drives, drives, shards, 34);
        array.life(1, |world, engine, _| async move {
            let before = pool(&engine).await.space.used_bytes;
            // More in all than the pool has room for: space must come back from the one before.
            for round in 0..6u8 {
                done(&engine, create_volume("logs", ByteCount::mib(8), round % 2 == 0)).await;
                let logs = volume(&engine, "logs");
                expect(&world, &logs, 0, 512, 0).await;
                for extent in 0..8 {
                    write(&world, &logs, extent * 2048, 256, 10 + round).await;
                }
                if round == 3 {
                    engine.drain().await.expect("destaged");
                }
                done(&engine, delete("logs")).await;
                assert_eq!(try_write(&world, &logs, 0, 8, 1).await, Err(IoError::Gone));
                assert_eq!(pool(&engine).await.space.used_bytes, before, "round {round}");
            }
            write(&world, &volume(&engine, "lun0"), 0, 64, 3).await;
        });
        array.life(2, |world, engine, _| async move {
            assert_eq!(engine.volumes().len(), 1);
            expect(&world, &volume(&engine, "lun0"), 0, 64, 3).await;
            done(&engine, create_volume("logs", ByteCount::mib(8), true)).await;
            expect(&world, &volume(&engine, "logs"), 0, 4096, 0).await;
        });
    }
}

/// What hosts had trimmed was shown as taken for half a minute more.
#[test]
fn what_was_discarded_is_free_when_somebody_asks() {
    Drives::founded("raid1", 2, 2, 2, 37).life(1, |world, engine, _| async move {
        done(&engine, create_volume("thin", ByteCount::mib(8), true)).await;
        let thin = volume(&engine, "thin");
        let before = pool(&engine).await.space.used_bytes;
        for extent in 0..4 {
            write(&world, &thin, extent * 2048, 256, 7).await;
        }
        engine.drain().await.expect("destaged");
        assert!(pool(&engine).await.space.used_bytes > before);
        thin.discard(Lba(0), 4 * 2048).await.expect("discarded");
        assert_eq!(pool(&engine).await.space.used_bytes, before);
    });
}

/// A power cut at many moments of a deletion: the volume is there with all it held, or gone with all its space; its
/// neighbour, which takes over its slots, holds what it was given in either case.
#[test]
fn a_power_cut_during_a_deletion_loses_nothing_that_stays() {
    for moment in 0..40 {
        let array = Drives::founded("raid5", 4, 4, 2, 35 + moment);
        let deleted = array.life(moment, move |world, engine, _| async move {
            done(&engine, create_volume("logs", ByteCount::mib(8), true)).await;
            let (logs, lun0) = (volume(&engine, "logs"), volume(&engine, "lun0"));
            for extent in 0..4 {
                write(&world, &logs, extent * 2048, 128, 20 + extent as u8).await;
            }
            world.sleep(Nanos::from_secs(if moment % 2 == 0 { 0 } else { 30 })).await;
            write(&world, &logs, 64, 64, 33).await;
            let ended = std::rc::Rc::new(std::cell::Cell::new(false));
            let (told, asked) = (ended.clone(), engine.clone());
            let task = async move {
                done(&asked, delete("logs")).await;
                told.set(true);
            };
            world.spawn(task).detach();
            world.sleep(Nanos(1 + moment * moment * 4000)).await;
            for extent in 0..4 {
                write(&world, &lun0, extent * 2048, 128, 50 + extent as u8).await;
            }
            ended.get()
        });
        array.life(moment, move |world, engine, _| async move {
            let lun0 = volume(&engine, "lun0");
            for extent in 0..4 {
                expect(&world, &lun0, extent * 2048, 128, 50 + extent as u8).await;
            }
            let there = engine.volumes().len() == 2;
            assert!(!(there && deleted), "moment {moment}: what was deleted is there");
            if there {
                let logs = volume(&engine, "logs");
                expect(&world, &logs, 0, 64, 20).await;
                expect(&world, &logs, 64, 64, 33).await;
                expect(&world, &logs, 3 * 2048, 128, 23).await;
            }
            engine.drain().await.expect("destaged");
            let used: u64 = pool(&engine).await.volumes.iter().map(|volume| volume.mapped_bytes).sum();
            assert_eq!(pool(&engine).await.space.used_bytes, used);
        });
    }
}
