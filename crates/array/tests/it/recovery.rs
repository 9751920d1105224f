//! The last resort: pools that no start opens, assembled by decision.

use std::rc::Rc;

use tier0_api::Health;
use tier0_array::engine::{Engine, StartOptions, start};
use tier0_array::open::recover::{ByteRange, Recovery, Role, recover_drives};
use tier0_block::BlockTarget;
use tier0_pool::metadata::survey;
use tier0_units::{Lba, Nanos};
use tier0_world::IoError;

use crate::rig::trouble::within;
use crate::rig::{Drives, describe, expect, live, pool, volume, write};

impl Drives {
    /// What all drives hold, byte by byte.
    fn images(&self) -> Vec<Vec<u8>> {
        let image = |medium: &tier0_drive::sim::SimMedium| {
            let mut bytes = vec![0; 32 << 20];
            medium.peek(Lba(0), &mut bytes);
            bytes
        };
        self.media.iter().map(image).collect()
    }

    /// Records members as lost although the pool cannot do without them, as builds before decision 0008 did.
    fn record_lost(&self, seed: u64, members: &'static [u32]) {
        let own = self.clone();
        live(seed, |world| async move {
            let found = survey(own.open(&world)).await.pools.remove(0);
            let metadata = found.open(&world, Rc::new(|_, _| {})).await.expect("opens");
            for member in members {
                metadata.lose(*member, IoError::Gone).await.expect("recorded");
            }
        });
        self.cut();
    }

    /// What a start says where it is refused.
    fn refused_start(&self, seed: u64) -> String {
        let own = self.clone();
        let refused = live(seed, |world| async move {
            start(&world, own.open(&world), &StartOptions::default()).await.err()
        });
        refused.expect("the start is refused").to_string()
    }

    /// Looks, checks that looking writes nothing, and says what is told of the only pool.
    fn looked_at(&self, seed: u64) -> Recovery {
        let before = self.images();
        let own = self.clone();
        let told =
            live(seed, |world| async move { recover_drives(&world, own.open(&world), &[], false).await });
        assert!(before == self.images(), "a look has written");
        told.expect("it can be looked at").remove(0)
    }

    fn assembled(&self, seed: u64) -> Recovery {
        let own = self.clone();
        let told =
            live(seed, |world| async move { recover_drives(&world, own.open(&world), &[], true).await });
        self.cut();
        told.expect("it is assembled").remove(0)
    }
}

fn role(told: &Recovery, drive: &str) -> Role {
    told.drives.iter().find(|one| one.name == drive).expect("it is listed").role
}

/// Both legs of a mirror were recorded lost at different times; both are there, and no start believed either.
#[test]
fn of_two_lost_legs_the_last_one_is_believed_and_has_everything() {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\", \"d3\"]";
    let array = Drives::described(describe("raid1", 4, 2, log), 4, 1, 1);
    array.life(1, |world, engine, _| async move {
        write(&world, &volume(&engine, "lun0"), 0, 8, 1).await;
        engine.drain().await.expect("destaged");
    });
    array.media[0].unplug();
    array.life(2, |world, engine, _| async move {
        write(&world, &volume(&engine, "lun0"), 0, 8, 2).await;
        engine.drain().await.expect("destaged");
    });
    array.media[0].reconnect();
    array.record_lost(3, &[1]);
    assert!(array.refused_start(4).contains("d1"));
    let told = array.looked_at(5);
    assert_eq!((told.obstacle.as_deref(), told.is_needed), (None, true));
    assert_eq!((role(&told, "d0"), role(&told, "d1")), (Role::Stale, Role::Readmitted));
    assert!(told.volumes[0].is_nothing(), "{:?}", told.volumes);
    assert_eq!(array.assembled(6), told);
    array.life(7, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 0, 8, 2).await;
        write(&world, &volume(&engine, "lun0"), 8, 8, 3).await;
        engine.drain().await.expect("destaged");
    });
    array.life(8, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 0, 8, 2).await;
        expect(&world, &volume(&engine, "lun0"), 8, 8, 3).await;
        let status = pool(&engine).await;
        assert_eq!((status.sets.failed, status.paused), (0, None), "{:?}", status.problems);
    });
    let told = array.looked_at(9);
    assert!(!told.is_needed && told.obstacle.is_none(), "{told:?}");
}

/// RAID 5 lost a drive, went on, and lost another one for good: the first is there, and stale. It is believed, what may be
/// old is told, and reads give one answer or an error, before and after a restart.
#[test]
fn a_stale_column_stands_in_and_what_may_be_old_is_told() {
    let array = Drives::founded("raid5", 4, 4, 1, 11);
    array.life(11, |world, engine, _| async move {
        let lun = volume(&engine, "lun0");
        write(&world, &lun, 0, 2048, 1).await;
        write(&world, &lun, 8000, 8, 5).await;
        engine.drain().await.expect("destaged");
    });
    array.media[1].unplug();
    array.life(12, |world, engine, _| async move {
        write(&world, &volume(&engine, "lun0"), 0, 64, 2).await;
        engine.drain().await.expect("destaged");
    });
    array.media[1].reconnect();
    array.media[3].unplug();
    assert!(array.refused_start(13).contains("d3"));
    let told = array.looked_at(14);
    assert_eq!(told.obstacle, None);
    assert_eq!((role(&told, "d1"), role(&told, "d3")), (Role::Readmitted, Role::Missing));
    let loss = &told.volumes[0];
    assert!(loss.lost.is_empty() && loss.log_bytes_max == 0, "{loss:?}");
    let listed = |byte: u64| {
        loss.stale.iter().any(|range: &ByteRange| range.first_byte <= byte && byte < range.end_byte)
    };
    assert!(listed(0) && listed(8000 * 512), "{loss:?}");
    assert!(!listed(5 << 20), "what was never written is not listed: {loss:?}");
    array.assembled(15);
    let read = async |world: &tier0_world::World, lun: &tier0_array::Volume| {
        let mut all = Vec::new();
        for lba in (0..2048).step_by(8).chain([8000]) {
            let (result, buf) = lun.read(Lba(lba), world.buffer(8)).await;
            all.push(result.map(|()| buf.as_slice()[0]));
        }
        all
    };
    let first =
        array.life(16, move |world, engine, _| async move { read(&world, &volume(&engine, "lun0")).await });
    // What did not change since the drive left is there; what did is old, new, or an error.
    assert_eq!(first.last(), Some(&Ok(5)));
    assert!(first[8..256].iter().all(|value| *value == Ok(1)), "{first:?}");
    assert!(first[..8].iter().all(|value| matches!(value, Ok(1 | 2) | Err(_))), "{first:?}");
    let again = array.life(17, move |world, engine, _| async move {
        let lun = volume(&engine, "lun0");
        let all = read(&world, &lun).await;
        // What is written now is right.
        write(&world, &lun, 0, 2048, 7).await;
        engine.drain().await.expect("destaged");
        all
    });
    assert_eq!(first, again);
    array.life(18, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 0, 2048, 7).await;
    });
}

/// A drive is believed for the sets that need it. The others make its columns anew: their mirrors are current.
#[test]
fn sets_that_do_without_the_drive_make_it_anew() {
    let array = Drives::founded("raid10", 4, 2, 1, 21);
    let fill = |value: u8| {
        move |world: tier0_world::World, engine: tier0_array::engine::Engine, _: Drives| async move {
            write(&world, &volume(&engine, "lun0"), 0, 12_000, value).await;
            engine.drain().await.expect("destaged");
        }
    };
    array.life(21, fill(1));
    array.media[0].unplug();
    array.life(22, fill(2));
    array.media[0].reconnect();
    array.media[1].unplug();
    let told = array.looked_at(23);
    assert!(told.is_needed, "a set has exactly these two");
    assert_eq!((told.obstacle.as_deref(), role(&told, "d0")), (None, Role::Readmitted));
    array.assembled(24);
    let listed: Vec<ByteRange> = told.volumes[0].stale.clone();
    array.life(25, move |world, engine, _| async move {
        let lun = volume(&engine, "lun0");
        world.sleep(Nanos::from_secs(60)).await;
        assert!(pool(&engine).await.rebuild.is_none(), "made anew: {:?}", pool(&engine).await);
        for lba in (0..12_000).step_by(8) {
            let (result, buf) = lun.read(Lba(lba), world.buffer(8)).await;
            let may_be_old =
                listed.iter().any(|range| (range.first_byte..range.end_byte).contains(&(lba * 512)));
            let found = result.map(|()| buf.as_slice()[0]);
            assert!(found == Ok(2) || may_be_old, "sector {lba}: {found:?}");
        }
    });
}

/// All drives with the write log are gone for good: a new one on blank drives, and what only the old one held is lost.
#[test]
fn a_log_that_is_gone_begins_anew_on_blank_drives() {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\", \"d3\"]";
    let mut array = Drives::described(describe("raid1", 4, 2, log), 4, 2, 31);
    array.life(31, |world, engine, _| async move {
        let lun = volume(&engine, "lun0");
        write(&world, &lun, 0, 8, 1).await;
        engine.drain().await.expect("destaged");
        write(&world, &lun, 0, 8, 2).await;
    });
    array.media[2].unplug();
    array.media[3].unplug();
    assert!(array.refused_start(32).contains("write log"));
    let told = array.looked_at(33);
    let obstacle = told.obstacle.expect("there is no room");
    assert!(obstacle.contains("blank drive"), "{obstacle}");
    array.plug_in();
    array.plug_in();
    let told = array.looked_at(34);
    assert_eq!(
        (told.obstacle.as_deref(), role(&told, "d4"), role(&told, "d5")),
        (None, Role::Joins, Role::Joins)
    );
    assert!(told.volumes[0].log_bytes_max >= 1 << 20, "{:?}", told.volumes);
    array.assembled(35);
    array.life(36, |world, engine, _| async move {
        let lun = volume(&engine, "lun0");
        expect(&world, &lun, 0, 8, 1).await;
        write(&world, &lun, 0, 8, 3).await;
        let status = pool(&engine).await;
        assert_eq!(status.log.map(|log| log.copies), Some(2));
    });
    array.life(37, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 0, 8, 3).await;
    });
}

/// The copies that the log has, and those that it is to have.
async fn copies(engine: &Engine) -> (u32, u32) {
    let log = pool(engine).await.log.expect("a log");
    (log.copies, log.copies_wanted)
}

/// The log had one copy for ever where one blank drive only had been there, and status called it whole.
#[test]
fn a_log_that_began_anew_on_one_drive_gets_its_second_copy_from_the_next() {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\", \"d3\"]";
    let mut array = Drives::described(describe("raid1", 4, 2, log), 4, 2, 61);
    array.life(61, |world, engine, _| async move {
        write(&world, &volume(&engine, "lun0"), 0, 8, 1).await;
        engine.drain().await.expect("destaged");
    });
    array.media[2].unplug();
    array.media[3].unplug();
    array.plug_in();
    assert_eq!(array.assembled(62).obstacle, None);
    array.life(63, |world, engine, _| async move {
        write(&world, &volume(&engine, "lun0"), 0, 8, 2).await;
        assert_eq!(copies(&engine).await, (1, 2));
        let told = pool(&engine).await;
        assert!(told.health > Health::Warning, "{told:?}");
    });
    let name = array.plug_in();
    let medium = array.media.last().expect("a new one").clone();
    array.life(64, |world, engine, _| async move {
        assert_eq!(copies(&engine).await, (1, 2));
        engine.add_drive(0, &name, medium.open(&world)).await.expect("it joins");
        assert!(within(&world, Nanos::from_secs(60), async || copies(&engine).await == (2, 2)).await);
        write(&world, &volume(&engine, "lun0"), 8, 8, 3).await;
    });
    // The drive that had the only copy may go.
    array.media[4].unplug();
    array.life(65, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 0, 8, 2).await;
        expect(&world, &volume(&engine, "lun0"), 8, 8, 3).await;
    });
}

/// A refused start had recorded that both drives with the log are lost. Nothing could be acknowledged since, so the log is
/// what it was.
#[test]
fn a_log_whose_drives_were_called_lost_is_believed_again() {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\", \"d3\"]";
    let array = Drives::described(describe("raid1", 4, 2, log), 4, 2, 41);
    array.life(41, |world, engine, _| async move {
        write(&world, &volume(&engine, "lun0"), 0, 8, 1).await;
    });
    array.record_lost(42, &[2, 3]);
    let told = array.looked_at(43);
    assert_eq!((told.obstacle.as_deref(), role(&told, "d3")), (None, Role::Readmitted));
    assert!(told.volumes[0].is_nothing(), "{:?}", told.volumes);
    array.assembled(44);
    array.life(45, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 0, 8, 1).await;
    });
}

/// What no drive holds is told, and nothing is written.
#[test]
fn sets_that_are_gone_are_refused_with_what_is_lost() {
    let array = Drives::founded("raid5", 3, 3, 1, 51);
    array.life(51, |world, engine, _| async move {
        write(&world, &volume(&engine, "lun0"), 0, 8, 1).await;
        engine.drain().await.expect("destaged");
    });
    array.media[1].unplug();
    array.media[2].unplug();
    let before = array.images();
    let told = array.assembled(52);
    assert!(before == array.images(), "a refusal has written");
    assert!(told.obstacle.expect("refused").contains("RAID sets lack"));
    assert_eq!(told.volumes[0].lost.first().map(|range| range.first_byte), Some(0));
    array.media[1].reconnect();
    array.media[2].reconnect();
    array.life(53, |world, engine, _| async move {
        expect(&world, &volume(&engine, "lun0"), 0, 8, 1).await;
        assert_eq!(pool(&engine).await.health, Health::Healthy);
    });
}
