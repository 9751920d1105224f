//! Another number of shards than before: the write log is emptied and cut anew.

use tier0_array::engine::{Repartition, repartition};
use tier0_world::IoError;

use crate::rig::{Drives, describe, expect, pool, volume, write};

/// The first sector of the chunklets of these small drives. Superblocks and metadata are before it.
const DATA_START: u64 = 1152;

/// A start on other cores waited for ever where a drive had no space for what the log holds, and no host was served.
#[test]
fn a_log_that_cannot_be_emptied_for_want_of_space_stays_as_it_is() {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\", \"d3\"]";
    let array = Drives::described(describe("raid1", 4, 2, log), 4, 2, 21);
    array.troubled_life(1, |world, engine, troubles| async move {
        troubles.of[0].fail_writes_from(DATA_START, IoError::NoSpace);
        let lun = volume(&engine, "lun0");
        for page in 0..40 {
            write(&world, &lun, page * 8, 8, page as u8 + 1).await;
        }
    });
    let done = array.on_troubled(2, |world, handles, troubles| async move {
        troubles.of[0].fail_writes_from(DATA_START, IoError::NoSpace);
        repartition(&world, handles, 1).await.expect("nothing fails")
    });
    let Repartition::Kept(why) = done else { panic!("the log was cut though it is not empty") };
    assert!(why.contains("no space") && why.contains("\"d0\""), "{why}");
    array.life(3, |world, engine, _| async move {
        let lun = volume(&engine, "lun0");
        for page in 0..40 {
            expect(&world, &lun, page * 8, 8, page as u8 + 1).await;
        }
        engine.drain().await.expect("destaged");
        assert_eq!(pool(&engine).await.sets.degraded, 0);
    });
    let done = array.on_troubled(4, |world, handles, _| async move {
        repartition(&world, handles, 1).await.expect("nothing fails")
    });
    assert_eq!(done, Repartition::Done);
}
