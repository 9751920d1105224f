//! A whole protected array in one virtual world on drives that lose power: what was acknowledged is there afterwards.

use tier0_api::{DriveState, Health};
use tier0_units::Nanos;

use crate::rig::{Drives, expect, volume, write};

const SHAPES: [(&str, usize); 6] =
    [("raid0", 2), ("raid1", 2), ("raid10", 4), ("raid5", 4), ("raid50", 6), ("raid6", 5)];

#[test]
fn what_was_acknowledged_survives_a_power_cut() {
    for (raid, drives) in SHAPES {
        for (seed, shards) in [(1, 1), (2, 3)] {
            let array = Drives::founded(raid, drives, drives, shards, seed);
            array.life(seed, move |world, engine, _| async move {
                let lun = volume(&engine, "lun0");
                for (i, lba) in [0, 8, 100, 2040, 4096, 9000].into_iter().enumerate() {
                    write(&world, &lun, lba, 20, 1 + i as u8).await;
                }
                // Some of it is destaged, some is not.
                world.sleep(Nanos::from_secs(seed * 15)).await;
                write(&world, &lun, 8, 4, 77).await;
            });
            array.life(seed + 10, move |world, engine, _| async move {
                let lun = volume(&engine, "lun0");
                expect(&world, &lun, 0, 8, 1).await;
                expect(&world, &lun, 8, 4, 77).await;
                expect(&world, &lun, 12, 16, 2).await;
                expect(&world, &lun, 100, 20, 3).await;
                expect(&world, &lun, 2040, 20, 4).await;
                expect(&world, &lun, 9000, 20, 6).await;
                expect(&world, &lun, 9020, 400, 0).await;
                let status = engine.status().await;
                assert_eq!(status.health, Health::Healthy, "{raid}: {}", status.summary);
                engine.drain().await.expect("destaged");
                expect(&world, &lun, 8, 4, 77).await;
            });
        }
    }
}

#[test]
fn a_lost_drive_is_rebuilt_on_spares() {
    for (raid, drives, spares) in [("raid10", 5, 1), ("raid5", 5, 1), ("raid6", 6, 1)] {
        let array = Drives::with_spares(raid, drives, spares, 2, 5);
        array.life(7, move |world, engine, own| async move {
            let lun = volume(&engine, "lun0");
            for i in 0..40 {
                write(&world, &lun, i * 256, 16, 1 + i as u8).await;
            }
            engine.drain().await.expect("destaged");
            own.media[1].unplug();
            for i in 0..40 {
                expect(&world, &lun, i * 256, 16, 1 + i as u8).await;
                write(&world, &lun, i * 256 + 8, 8, 101 + i as u8).await;
            }
            engine.drain().await.expect("destaged without the drive");
            for _ in 0..600 {
                if engine.status().await.pools[0].sets.degraded == 0 {
                    break;
                }
                world.sleep(Nanos::from_secs(1)).await;
            }
            let status = engine.status().await;
            assert_eq!(status.pools[0].sets.degraded, 0, "{raid}: {}", status.summary);
            own.media[2].unplug();
            for i in 0..40 {
                expect(&world, &lun, i * 256, 8, 1 + i as u8).await;
                expect(&world, &lun, i * 256 + 8, 8, 101 + i as u8).await;
            }
        });
        array.media[1].reconnect();
        array.life(8, |world, engine, _| async move {
            let lun = volume(&engine, "lun0");
            for i in 0..40 {
                expect(&world, &lun, i * 256, 8, 1 + i as u8).await;
                expect(&world, &lun, i * 256 + 8, 8, 101 + i as u8).await;
            }
        });
    }
}

#[test]
fn a_lost_log_drive_is_replaced_and_the_other_may_die_after() {
    let mut array = Drives::with_spares("raid6", 6, 1, 2, 9);
    array.life(9, |world, engine, own| async move {
        let lun = volume(&engine, "lun0");
        for lost in [0, 1] {
            own.media[lost].unplug();
            for i in 0..10 {
                write(&world, &lun, i * 512, 16, lost as u8 * 20 + i as u8 + 1).await;
            }
            for _ in 0..600 {
                if engine.status().await.pools[0].log.as_ref().expect("there is a log").copies == 3 {
                    break;
                }
                world.sleep(Nanos::from_secs(1)).await;
            }
            let status = engine.status().await;
            assert_eq!(status.pools[0].log.as_ref().expect("there is a log").copies, 3, "{}", status.summary);
        }
        for i in 0..10 {
            write(&world, &lun, i * 512, 8, 91 + i as u8).await;
        }
    });
    array.media.drain(..2);
    array.life(10, |world, engine, _| async move {
        let lun = volume(&engine, "lun0");
        for i in 0..10 {
            expect(&world, &lun, i * 512, 8, 91 + i as u8).await;
            expect(&world, &lun, i * 512 + 8, 8, 21 + i as u8).await;
        }
    });
}

/// Generations of superblocks lasted as long as a run: half a mirror that was put back to an image of the same run passed
/// for whole, and served old data once the other half had died.
#[test]
fn a_drive_put_back_to_an_image_of_the_same_run_is_not_believed() {
    let array = Drives::founded("raid1", 2, 2, 1, 7);
    let older = array.life(1, |world, engine, drives| async move {
        let lun = volume(&engine, "lun0");
        write(&world, &lun, 0, 64, 1).await;
        engine.drain().await.expect("destaged");
        let image = drives.media[1].image();
        for value in 2..6 {
            write(&world, &lun, 0, 64, value).await;
            world.sleep(Nanos::from_secs(60)).await;
        }
        image
    });
    array.media[1].restore(&older);
    array.life(2, |world, engine, _| async move {
        let status = engine.status().await;
        let drive = status.pools[0].drives.iter().find(|drive| drive.name == "d1").expect("it is a member");
        assert_eq!(drive.state, DriveState::Lost, "{}", status.summary);
        expect(&world, &volume(&engine, "lun0"), 0, 64, 5).await;
    });
}
