//! Sectors of the write log that cannot be read cost no drive: only one that is gone is done without.

use std::rc::Rc;

use tier0_api::{DriveState, PoolStatus};
use tier0_array::engine::{StartOptions, start};
use tier0_pool::metadata::survey;
use tier0_units::Nanos;

use crate::rig::{Drives, describe, expect, live, pool, volume, write};

/// A mirror whose log lies on drives of its own.
fn with_log_drives(seed: u64) -> Drives {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\", \"d3\"]";
    let array = Drives::described(describe("raid1", 4, 2, log), 4, 1, seed);
    array.life(seed, |world, engine, _| async move {
        write(&world, &volume(&engine, "lun0"), 100, 8, 7).await;
    });
    array
}

/// The sectors of the first ring's frames on each of its drives, by the number of the drive.
fn log_sectors(array: &Drives) -> Vec<(usize, std::ops::Range<u64>)> {
    let drives = array.clone();
    live(99, |world| async move {
        let found = survey(drives.open(&world)).await.pools.remove(0);
        let inspected = found.inspect(&world).await.expect("it can be read");
        let copies = inspected.state().log().rings[0].copies.clone();
        let frames = copies.into_iter().map(|copy| {
            let first = copy.first_sector + 16;
            (copy.member as usize, first..first + 8)
        });
        frames.collect()
    })
}

/// Drives that serve, and copies of the log.
fn serving(status: &PoolStatus) -> (usize, u32) {
    let serving = status.drives.iter().filter(|drive| drive.state == DriveState::Active);
    (serving.count(), status.log.as_ref().map_or(0, |log| log.copies))
}

/// An unreadable sector of one copy of the log is read from the other and written again.
#[test]
fn a_bad_sector_in_one_copy_of_the_log_costs_no_drive() {
    let array = with_log_drives(1);
    let (drive, sectors) = log_sectors(&array).remove(0);
    array.media[drive].make_unreadable(sectors.clone());
    array.life(2, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 100, 8, 7).await;
        let status = pool(&engine).await;
        assert_eq!(serving(&status), (4, 2), "{:?}", status.problems);
    });
    assert!(array.media[drive].is_readable(sectors), "it was written again");
}

/// A sector that no copy of the log could read made a start call all drives with the log lost, one after the other, for
/// good. They are there: the start is refused, and the array goes on when one of them reads again.
#[test]
fn a_log_that_no_drive_can_read_costs_no_drive() {
    let array = with_log_drives(3);
    let places = log_sectors(&array);
    assert_eq!(places.len(), 2);
    let mut held = vec![0; 8 * 512];
    array.media[places[0].0].peek(tier0_units::Lba(places[0].1.start), &mut held);
    places.iter().for_each(|(drive, sectors)| array.media[*drive].make_unreadable(sectors.clone()));
    let own = array.clone();
    let error = live(4, |world| async move {
        let refused = start(&world, own.open(&world), &StartOptions::default())
            .await
            .err()
            .expect("refused")
            .to_string();
        world.sleep(Nanos::from_secs(60)).await;
        refused
    });
    array.cut();
    assert!(error.contains("no copy of the log is readable"), "{error}");
    // The sector reads again, as after a retry that the drive at last succeeds with.
    let (own, held) = (array.clone(), Rc::new(held));
    let (drive, sectors) = places[0].clone();
    live(5, |world| async move {
        let handle = own.media[drive].open(&world);
        let mut buf = world.buffer(8);
        buf.as_mut_slice().copy_from_slice(&held);
        handle.write(tier0_units::Lba(sectors.start), buf.freeze(), true).await.expect("written");
    });
    array.life(6, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 100, 8, 7).await;
        let status = pool(&engine).await;
        assert_eq!(serving(&status), (4, 2), "{:?}", status.problems);
    });
}
