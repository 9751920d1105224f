//! Clones of volumes: what each holds while both are written, after power cuts, and where the other is gone.

use crate::rig::{Drives, MIB, create_volume, done, expect, fill, pool, refused, try_write, volume, write};
use tier0_api::AdminRequest;
use tier0_array::engine::Engine;
use tier0_block::BlockTarget;
use tier0_units::{ByteCount, Lba, Nanos};
use tier0_world::{IoError, World};

fn clone(volume: &str, name: &str) -> AdminRequest {
    AdminRequest::VolumeClone { volume: volume.to_owned(), name: name.to_owned() }
}

fn delete(name: &str) -> AdminRequest {
    AdminRequest::VolumeDelete { volume: name.to_owned(), force: false }
}

async fn used(engine: &Engine) -> u64 {
    pool(engine).await.space.used_bytes
}

/// What extents of a volume hold in their first 64 sectors, and that the rest of them has zeros.
async fn expect_extents(world: &World, engine: &Engine, name: &str, values: &[u8]) {
    let volume = volume(engine, name);
    for (extent, value) in (0u64..).zip(values) {
        expect(world, &volume, extent * MIB, 64, *value).await;
        expect(world, &volume, extent * MIB + 64, MIB as u32 - 64, 0).await;
    }
}

#[test]
fn a_clone_holds_what_its_volume_held_and_neither_sees_what_the_other_is_written() {
    for (raid, drives, shards) in [("raid1", 2, 1), ("raid5", 4, 3), ("raid6", 5, 2)] {
        let array = Drives::founded(raid, drives, drives, shards, 91);
        array.life(1, move |world, engine, _| async move {
            let lun0 = volume(&engine, "lun0");
            for extent in 0..5u8 {
                write(&world, &lun0, u64::from(extent) * MIB, 64, 10 + extent).await;
            }
            engine.drain().await.expect("destaged");
            let before = used(&engine).await;
            let said = done(&engine, clone("lun0", "copy")).await;
            assert_eq!(said, "created volume copy as a clone of lun0");
            assert_eq!(used(&engine).await, before, "a clone takes no space");
            expect_extents(&world, &engine, "copy", &[10, 11, 12, 13, 14, 0]).await;
            write(&world, &lun0, 0, 64, 20).await;
            let copy = volume(&engine, "copy");
            write(&world, &copy, MIB, 64, 31).await;
            write(&world, &copy, 5 * MIB, 64, 35).await;
            copy.write_zeroes(Lba(2 * MIB), MIB, true, false).await.expect("zeros");
            expect_extents(&world, &engine, "lun0", &[20, 11, 12, 13, 14, 0]).await;
            expect_extents(&world, &engine, "copy", &[10, 31, 0, 13, 14, 35]).await;
            engine.drain().await.expect("destaged");
            // What was written has been copied. Extents of mirrors have a MiB here: one was emptied, and takes nothing.
            if raid == "raid1" {
                assert_eq!(used(&engine).await, 8 << 20);
            }
        });
        array.life(2, |world, engine, _| async move {
            expect_extents(&world, &engine, "lun0", &[20, 11, 12, 13, 14, 0]).await;
            expect_extents(&world, &engine, "copy", &[10, 31, 0, 13, 14, 35]).await;
            // What is not destaged when the power fails needs a copy again afterwards.
            write(&world, &volume(&engine, "lun0"), 3 * MIB, 64, 23).await;
            write(&world, &volume(&engine, "copy"), 4 * MIB + 8, 8, 44).await;
        });
        array.life(3, |world, engine, _| async move {
            expect_extents(&world, &engine, "lun0", &[20, 11, 12, 23, 14, 0]).await;
            expect_extents(&world, &engine, "copy", &[10, 31, 0, 13]).await;
            let copy = volume(&engine, "copy");
            expect(&world, &copy, 4 * MIB, 8, 14).await;
            expect(&world, &copy, 4 * MIB + 8, 8, 44).await;
            done(&engine, delete("lun0")).await;
            expect_extents(&world, &engine, "copy", &[10, 31, 0, 13]).await;
            engine.drain().await.expect("destaged");
            let alone = used(&engine).await;
            // A clone of a clone, whose family's first volume is gone.
            done(&engine, clone("copy", "third")).await;
            done(&engine, delete("copy")).await;
            expect_extents(&world, &engine, "third", &[10, 31, 0, 13]).await;
            assert_eq!(used(&engine).await, alone);
        });
        array.life(4, |world, engine, _| async move {
            expect_extents(&world, &engine, "third", &[10, 31, 0, 13]).await;
            done(&engine, delete("third")).await;
            assert_eq!(used(&engine).await, 0);
        });
    }
}

#[test]
fn a_full_pool_refuses_what_would_need_a_copy_and_takes_it_when_the_other_is_gone() {
    let array = Drives::founded("raid1", 2, 2, 2, 92);
    array.life(1, |world, engine, _| async move {
        write(&world, &volume(&engine, "lun0"), 0, 64, 1).await;
        done(&engine, clone("lun0", "copy")).await;
        done(&engine, create_volume("rest", ByteCount::mib(400), true)).await;
        fill(&world, &engine, "rest").await;
        for name in ["lun0", "copy"] {
            let written = try_write(&world, &volume(&engine, name), 8, 8, 9).await;
            assert_eq!(written, Err(IoError::NoSpace), "{name}");
            expect_extents(&world, &engine, name, &[1]).await;
        }
        done(&engine, delete("copy")).await;
        write(&world, &volume(&engine, "lun0"), 8, 8, 9).await;
        engine.drain().await.expect("destaged");
    });
    array.life(2, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 8, 8, 9).await;
    });
}

#[test]
fn a_clone_is_made_while_its_volume_is_written() {
    for shards in [1, 3] {
        let array = Drives::founded("raid10", 4, 4, shards, 93);
        array.life(1, move |world, engine, _| async move {
            let lun0 = volume(&engine, "lun0");
            // Each round writes its number to all extents, one after the other.
            let (writer, clock) = (lun0.clone(), world.clone());
            let writing = world.spawn(async move {
                for round in 1..200u8 {
                    for extent in 0..6 {
                        write(&clock, &writer, extent * MIB, 8, round).await;
                    }
                }
            });
            world.sleep(Nanos::from_millis(3)).await;
            done(&engine, clone("lun0", "copy")).await;
            let copy = volume(&engine, "copy");
            let mut held = Vec::new();
            for extent in 0..6 {
                let (result, buf) = copy.read(Lba(extent * MIB), world.buffer(8)).await;
                result.expect("a read succeeds");
                held.push(buf.as_slice()[0]);
            }
            // A moment of it: some extents have the round, those behind them the one before.
            let round = held[0];
            let behind = held.iter().take_while(|value| **value == round).count();
            assert!(held[behind..].iter().all(|value| *value + 1 == round), "{shards} shards: {held:?}");
            writing.await;
            for (extent, value) in (0..6).zip(held) {
                expect(&world, &copy, extent * MIB, 8, value).await;
                expect(&world, &lun0, extent * MIB, 8, 199).await;
            }
        });
    }
}

#[test]
fn what_cannot_be_cloned_is_refused() {
    Drives::founded("raid1", 2, 2, 1, 94).life(1, |_, engine, _| async move {
        done(&engine, create_volume("thick", ByteCount::mib(2), false)).await;
        for (volume, name, says) in [
            ("none", "copy", "no volume"),
            ("lun0", "thick", "already"),
            ("lun0", "a b", "is not a valid name"),
            ("thick", "copy", "only thin volumes can be cloned"),
        ] {
            let text = refused(&engine, clone(volume, name)).await;
            assert!(text.contains(says), "{volume} {name}: {text}");
        }
    });
}
