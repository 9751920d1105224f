//! Drives that fail for a while, or hang, or are full: nothing is lost that can be waited for (decision 0008).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tier0_api::{AdminReply, AdminRequest, DriveState, Health, PoolStatus};
use tier0_array::Volume;
use tier0_array::engine::Engine;
use tier0_block::BlockTarget;
use tier0_units::{ByteCount, Lba, Nanos, WriteCache};
use tier0_world::{IoError, World};
use tracing::Level;

use crate::rig::told::Told;
use crate::rig::trouble::within;
use crate::rig::{Drives, describe, done, expect, pool, refused, try_write, volume, write};

const SECOND: Nanos = Nanos::from_secs(1);

fn seconds(count: u64) -> Nanos {
    Nanos::from_secs(count)
}

/// By page: what was acknowledged last, and what was sent since and not acknowledged.
type Pages = BTreeMap<u64, (u8, Vec<u8>)>;

/// A host that writes pages all over a volume, each again and again, one after the other.
#[derive(Clone)]
struct Host {
    pages: Rc<RefCell<Pages>>,
    stops: Rc<Cell<bool>>,
    errors: Rc<Cell<u32>>,
    acknowledged: Rc<Cell<u64>>,
}

impl Host {
    fn start(world: &World, volume: &Volume) -> Host {
        let host = Host {
            pages: Rc::default(),
            stops: Rc::default(),
            errors: Rc::default(),
            acknowledged: Rc::default(),
        };
        for writer in 0..4 {
            let (own, world, volume) = (host.clone(), world.clone(), volume.clone());
            let spawner = world.clone();
            spawner.spawn(async move { own.write_on(&world, &volume, writer).await }).detach();
        }
        host
    }

    async fn write_on(&self, world: &World, volume: &Volume, writer: u64) {
        let mut round = 0u64;
        while !self.stops.get() {
            let page = (round * 7 + 13) % 300 * 4 + writer;
            let value = (round % 250) as u8 + 1;
            self.pages.borrow_mut().entry(page).or_default().1.push(value);
            match try_write(world, volume, page * 8, 8, value).await {
                Ok(()) => {
                    self.acknowledged.set(self.acknowledged.get() + 1);
                    self.pages.borrow_mut().insert(page, (value, Vec::new()));
                }
                Err(error) => {
                    assert!(matches!(error, IoError::Timeout | IoError::NoSpace), "{error}");
                    self.errors.set(self.errors.get() + 1);
                }
            }
            round += 1;
            world.sleep(Nanos::from_millis(20)).await;
        }
    }

    /// Everything reads as it was acknowledged last, or as something that was sent later.
    async fn check(&self, world: &World, volume: &Volume) {
        let pages = self.pages.borrow().clone();
        for (page, (value, since)) in pages {
            let (result, buf) = volume.read(Lba(page * 8), world.buffer(8)).await;
            result.expect("a read succeeds");
            let found = buf.as_slice()[0];
            assert!(
                found == value || since.contains(&found),
                "page {page}: {found}, not {value} or {since:?}"
            );
        }
    }

    /// There is space again: no request fails any more, nothing is lost, and the array is whole.
    async fn goes_on(&self, world: &World, engine: &Engine, volume: &Volume) {
        world.sleep(seconds(5)).await;
        let errors = self.errors.get();
        world.sleep(seconds(5)).await;
        assert_eq!(self.errors.get(), errors, "there is space again");
        self.stop(world).await;
        volume.flush().await.expect("stable");
        engine.drain().await.expect("destaged");
        self.check(world, volume).await;
        whole(engine).await;
    }

    /// Stops, and waits for the last requests.
    async fn stop(&self, world: &World) {
        self.stops.set(true);
        world.sleep(seconds(5)).await;
    }
}

fn lost(pool: &PoolStatus) -> usize {
    pool.drives.iter().filter(|drive| drive.state == DriveState::Lost).count()
}

async fn whole(engine: &Engine) {
    let pool = pool(engine).await;
    assert_eq!((lost(&pool), pool.sets.degraded, pool.paused), (0, 0, None));
    assert_eq!(pool.health, Health::Healthy, "{:?}", pool.problems);
}

/// Both legs of a mirror failed for a second under load, and the array called both lost: all drives were healthy again and
/// the pool never opened any more.
#[test]
fn a_second_of_errors_on_both_legs_of_a_mirror_loses_nothing() {
    for error in [IoError::Medium, IoError::Gone, IoError::Os(5)] {
        let array = Drives::founded("raid1", 2, 2, 2, 1);
        let host = Rc::new(RefCell::new(None));
        let kept = host.clone();
        array.troubled_life(2, move |world, engine, troubles| async move {
            let lun = volume(&engine, "lun0");
            let host = Host::start(&world, &lun);
            world.sleep(seconds(3)).await;
            troubles.of.iter().for_each(|trouble| trouble.fail_writes(error));
            world.sleep(SECOND).await;
            troubles.of.iter().for_each(|trouble| trouble.fail(None));
            world.sleep(seconds(3)).await;
            host.stop(&world).await;
            assert_eq!(host.errors.get(), 0, "{error}");
            host.check(&world, &lun).await;
            engine.drain().await.expect("destaged");
            whole(&engine).await;
            *kept.borrow_mut() = Some(host);
        });
        array.life(3, move |world, engine, _| async move {
            let host = host.borrow_mut().take().expect("a host");
            host.check(&world, &volume(&engine, "lun0")).await;
            whole(&engine).await;
        });
    }
}

/// What cannot be survived is waited for: hosts wait, get errors after the pause timeout, and everything goes on when the
/// drives are back, also what was acknowledged from memory.
#[test]
fn a_mirror_whose_legs_are_away_for_ten_minutes_is_whole_when_they_return() {
    for mode in [WriteCache::Durable, WriteCache::Volatile] {
        let array = Drives::founded("raid1", 2, 2, 2, 4);
        array.troubled_life(5, move |world, engine, troubles| async move {
            let cache =
                AdminRequest::VolumeCache { volume: "lun0".to_owned(), read: None, write: Some(mode) };
            done(&engine, cache).await;
            let lun = volume(&engine, "lun0");
            write(&world, &lun, 11_000, 8, 99).await;
            engine.drain().await.expect("destaged");
            let host = Host::start(&world, &lun);
            world.sleep(seconds(3)).await;
            troubles.of.iter().for_each(|trouble| trouble.fail(Some(IoError::Gone)));
            let gone = world.now();
            world.sleep(seconds(60)).await;
            let status = pool(&engine).await;
            assert_eq!((lost(&status), status.health), (0, Health::Critical), "{:?}", status.problems);
            let pause = status.paused.expect("it is paused");
            assert_eq!(pause.drives, ["d0", "d1"]);
            assert!(status.problems[0].contains("bring them back"), "{}", status.problems[0]);
            assert_eq!(host.errors.get(), 0);
            let (reader, own) = (lun.clone(), world.clone());
            let read = world.spawn(async move {
                let result = reader.read(Lba(11_000), own.buffer(8)).await.0;
                (result, own.now())
            });
            let (flusher, own) = (lun.clone(), world.clone());
            let flush = world.spawn(async move { (flusher.flush().await, own.now()) });
            let (result, at) = read.await;
            let waited = at.saturating_sub(gone);
            assert_eq!(result, Err(IoError::Timeout));
            assert!(waited > seconds(118) && waited < seconds(135), "{waited:?}");
            if mode == WriteCache::Volatile {
                assert_eq!(flush.await.0, Err(IoError::Timeout), "what is in memory alone is not stable");
            }
            world.sleep(seconds(480)).await;
            assert_eq!(lost(&pool(&engine).await), 0);
            if mode == WriteCache::Durable {
                assert!(host.errors.get() > 0, "writers got errors");
                assert!(lun.flush().await.is_err() || host.errors.get() > 0);
            }
            troubles.of.iter().for_each(|trouble| trouble.fail(None));
            let resumed = within(&world, seconds(10), async || pool(&engine).await.paused.is_none()).await;
            assert!(resumed, "{:?}", pool(&engine).await);
            world.sleep(seconds(3)).await;
            let before = host.acknowledged.get();
            world.sleep(seconds(2)).await;
            assert!(host.acknowledged.get() > before, "the host goes on");
            host.stop(&world).await;
            lun.flush().await.expect("a flush after the pause is true");
            engine.drain().await.expect("destaged");
            host.check(&world, &lun).await;
            expect(&world, &lun, 11_000, 8, 99).await;
            whole(&engine).await;
            let events = engine.status().await.events;
            assert!(events.iter().any(|event| event.what.contains("goes on after a pause")), "{events:?}");
        });
    }
}

/// A drive that had been taken back and not been verified was trusted by the verdict on its partner, which an administrator is
/// refused.
#[test]
fn the_only_drive_that_is_surely_right_is_waited_for() {
    let array = Drives::founded("raid1", 2, 2, 2, 6);
    array.troubled_life(6, |world, engine, troubles| async move {
        let lun = volume(&engine, "lun0");
        write(&world, &lun, 11_000, 800, 99).await;
        engine.drain().await.expect("destaged");
        done(&engine, AdminRequest::DriveFail { drive: "d1".to_owned() }).await;
        engine.rejoin_drive(0, "d1", troubles.handle(1)).await.expect("it joins");
        // A scrub that takes an hour stands for one of a large drive.
        done(&engine, AdminRequest::ScrubStart { pool: None, rate: Some(ByteCount(1000)) }).await;
        let rebuilt = async || pool(&engine).await.sets.degraded == 0;
        assert!(within(&world, seconds(60), rebuilt).await, "{:?}", pool(&engine).await);
        let fail = AdminRequest::DriveFail { drive: "d0".to_owned() };
        assert!(refused(&engine, fail).await.contains("may hold the only good copy"));
        let host = Host::start(&world, &lun);
        troubles.of[0].fail(Some(IoError::Gone));
        world.sleep(seconds(40)).await;
        let status = pool(&engine).await;
        assert_eq!(status.drives[0].state, DriveState::Active, "{:?}", status.problems);
        let pause = status.paused.expect("it is paused");
        assert_eq!(pause.drives, ["d0"]);
        assert!(
            pause.why.contains("drive d1 was taken back, or overwritten, and not verified yet"),
            "{}",
            pause.why
        );
        troubles.of[0].fail(None);
        let resumed = within(&world, seconds(10), async || pool(&engine).await.paused.is_none()).await;
        assert!(resumed, "{:?}", pool(&engine).await);
        host.stop(&world).await;
        host.check(&world, &lun).await;
        // Who does not want to wait says so.
        troubles.of[0].fail(Some(IoError::Gone));
        let remove = AdminRequest::DriveRemove { drive: "d0".to_owned(), force: true, stop: false };
        done(&engine, remove).await;
        expect(&world, &lun, 11_000, 800, 99).await;
    });
}

/// A pause filled the log with drives that did not answer its probes, which had been told.
#[test]
fn a_pause_tells_once_of_a_drive_that_answers_no_probe() {
    let ((), told) = Told::by(|| {
        let array = Drives::founded("raid1", 2, 2, 2, 4);
        array.troubled_life(5, |world, engine, troubles| async move {
            let lun = volume(&engine, "lun0");
            let host = Host::start(&world, &lun);
            world.sleep(seconds(3)).await;
            troubles.of.iter().for_each(|trouble| trouble.fail(Some(IoError::Gone)));
            world.sleep(seconds(60)).await;
            assert!(pool(&engine).await.paused.is_some());
            troubles.of.iter().for_each(|trouble| trouble.fail(None));
            assert!(within(&world, seconds(30), async || pool(&engine).await.paused.is_none()).await);
            host.stop(&world).await;
        });
    });
    let probes = |level| told.count(level, "a drive does not answer a probe");
    let (aloud, quietly) = (probes(Level::WARN), probes(Level::DEBUG));
    assert!(aloud <= 2, "two drives are told {aloud} times");
    assert!(aloud + quietly > 2, "nobody was probed again: {aloud} and {quietly}");
}

/// A change of a paused pool had no answer before the drives were back, and the administrator was not told why.
#[test]
fn a_change_of_a_paused_pool_is_answered_and_goes_on_when_the_drives_are_back() {
    let array = Drives::founded("raid1", 2, 2, 2, 4);
    array.troubled_life(5, |world, engine, troubles| async move {
        let lun = volume(&engine, "lun0");
        let host = Host::start(&world, &lun);
        world.sleep(seconds(3)).await;
        troubles.of.iter().for_each(|trouble| trouble.fail(Some(IoError::Gone)));
        world.sleep(seconds(60)).await;
        let asked = world.now();
        let off = Some(WriteCache::Off);
        let request = AdminRequest::VolumeCache { volume: "lun0".to_owned(), read: None, write: off };
        let AdminReply::Failed(text) = engine.administer(request).await else { panic!("it cannot be done") };
        assert!(text.contains("paused and waits for drives d0, d1"), "{text}");
        let events = engine.status().await.events;
        let paused: Vec<&str> = events.iter().map(|event| &*event.what).collect();
        let paused: Vec<&&str> = paused.iter().filter(|what| what.starts_with("paused")).collect();
        assert_eq!(paused, [&"paused: it waits for drives d0, d1"], "one was named, and both are needed");
        assert!(world.now() - asked < seconds(7));
        troubles.of.iter().for_each(|trouble| trouble.fail(None));
        let ended = async || {
            let events = engine.status().await.events;
            events.iter().any(|event| event.what.starts_with("admin: volume lun0: write cache off"))
        };
        assert!(within(&world, seconds(30), ended).await, "{:?}", engine.status().await.events);
        host.stop(&world).await;
        engine.drain().await.expect("destaged");
        host.check(&world, &lun).await;
        whole(&engine).await;
    });
}

/// A drive that fails for good is lost a few seconds later, and hosts notice no more than that.
#[test]
fn a_leg_that_fails_for_good_is_lost_and_rebuilt() {
    let array = Drives::with_spares("raid1", 3, 1, 2, 6);
    array.troubled_life(7, |world, engine, troubles| async move {
        let lun = volume(&engine, "lun0");
        let host = Host::start(&world, &lun);
        world.sleep(seconds(3)).await;
        troubles.of[0].fail(Some(IoError::Gone));
        let failed = world.now();
        assert!(within(&world, seconds(20), async || lost(&pool(&engine).await) == 1).await);
        let took = world.now().saturating_sub(failed);
        assert!(took >= seconds(3) && took < seconds(9), "{took:?}");
        let rebuilt = async || pool(&engine).await.sets.degraded == 0;
        assert!(within(&world, seconds(120), rebuilt).await, "{:?}", pool(&engine).await);
        host.stop(&world).await;
        assert_eq!(host.errors.get(), 0);
        host.check(&world, &lun).await;
        let events = engine.status().await.events;
        assert!(
            events.iter().any(|event| event.thing == "drive d0" && event.what.starts_with("failed")),
            "{events:?}"
        );
    });
}

/// The drives of the write log alone went away, and were called lost one after the other.
#[test]
fn a_pool_whose_log_is_away_waits_for_it() {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\", \"d3\"]";
    let array = Drives::described(describe("raid1", 4, 2, log), 4, 2, 8);
    array.troubled_life(9, |world, engine, troubles| async move {
        let lun = volume(&engine, "lun0");
        write(&world, &lun, 0, 8, 1).await;
        engine.drain().await.expect("destaged");
        troubles.of[2].fail(Some(IoError::Gone));
        troubles.of[3].fail(Some(IoError::Gone));
        let (writer, own) = (lun.clone(), world.clone());
        let written = world.spawn(async move { try_write(&own, &writer, 8, 8, 2).await });
        world.sleep(seconds(40)).await;
        let status = pool(&engine).await;
        assert_eq!(lost(&status), 0);
        assert!(status.paused.is_some(), "{:?}", status.problems);
        expect(&world, &lun, 0, 8, 1).await;
        troubles.of[2].fail(None);
        troubles.of[3].fail(None);
        assert_eq!(written.await, Ok(()));
        expect(&world, &lun, 8, 8, 2).await;
        assert!(within(&world, seconds(10), async || pool(&engine).await.paused.is_none()).await);
        whole(&engine).await;
    });
}

/// An administrator could fail the only drive that had the log.
#[test]
fn the_last_copy_of_the_log_is_not_failed_by_hand() {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\"]";
    let array = Drives::described(describe("raid1", 3, 2, log), 3, 1, 10);
    array.life(11, |_, engine, _| async move {
        let fail = AdminRequest::DriveFail { drive: "d2".to_owned() };
        let text = refused(&engine, fail).await;
        assert!(text.contains("write log"), "{text}");
        let status = pool(&engine).await;
        assert_eq!((lost(&status), status.health), (0, Health::Warning));
        assert!(status.problems[0].contains("less redundant"), "{:?}", status.problems);
    });
}

#[test]
fn a_drive_that_hangs_is_lost_after_its_patience_and_not_before() {
    for (hangs, gone) in [(20, false), (60, true)] {
        let array = Drives::founded("raid1", 2, 2, 1, 12);
        array.troubled_life(13, move |world, engine, troubles| async move {
            let lun = volume(&engine, "lun0");
            let host = Host::start(&world, &lun);
            world.sleep(seconds(2)).await;
            troubles.of[1].hang();
            world.sleep(seconds(hangs)).await;
            troubles.answer(1);
            world.sleep(seconds(5)).await;
            host.stop(&world).await;
            assert_eq!(host.errors.get(), 0);
            assert_eq!(lost(&pool(&engine).await), usize::from(gone), "after {hangs} s");
            host.check(&world, &lun).await;
            engine.drain().await.expect("destaged");
        });
    }
}

/// A full file system under a drive's file took the drive out. The log is elsewhere, or has its space already.
#[test]
fn a_full_backing_store_is_no_failure_of_the_drive() {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\", \"d3\"]";
    let array = Drives::described(describe("raid1", 4, 2, log), 4, 1, 14);
    array.troubled_life(15, |world, engine, troubles| async move {
        let lun = volume(&engine, "lun0");
        write(&world, &lun, 11_000, 8, 99).await;
        engine.drain().await.expect("destaged");
        let host = Host::start(&world, &lun);
        world.sleep(seconds(2)).await;
        troubles.of[0].fail_writes(IoError::NoSpace);
        let told = async || pool(&engine).await.problems.iter().any(|problem| problem.contains("is full"));
        assert!(within(&world, seconds(60), told).await);
        let acknowledged = host.acknowledged.get();
        world.sleep(seconds(300)).await;
        assert_eq!(lost(&pool(&engine).await), 0);
        assert!(host.acknowledged.get() > acknowledged, "the log takes what it has room for");
        assert!(host.errors.get() > 1000, "nobody waits for room: {}", host.errors.get());
        expect(&world, &lun, 11_000, 8, 99).await;
        troubles.of[0].fail(None);
        host.goes_on(&world, &engine, &lun).await;
    });
}

/// Hosts stood still for ever when the write log itself found no space: its drive was not judged, and their writes were
/// not refused.
#[test]
fn a_log_without_space_is_waited_for_as_long_as_a_drive() {
    let log = "drives = [\"d0\", \"d1\"]\nlog_drives = [\"d2\", \"d3\"]";
    let array = Drives::described(describe("raid1", 4, 2, log), 4, 1, 15);
    array.troubled_life(16, |world, engine, troubles| async move {
        let lun = volume(&engine, "lun0");
        write(&world, &lun, 11_000, 8, 99).await;
        troubles.of[3].fail_writes(IoError::NoSpace);
        let host = Host::start(&world, &lun);
        world.sleep(seconds(100)).await;
        assert_eq!(host.errors.get(), 0, "patience has not run out");
        world.sleep(seconds(60)).await;
        assert!(host.errors.get() > 10, "nobody waits for ever: {}", host.errors.get());
        let status = pool(&engine).await;
        assert_eq!(lost(&status), 0);
        assert!(status.problems.iter().any(|problem| problem.contains("is full")), "{:?}", status.problems);
        expect(&world, &lun, 11_000, 8, 99).await;
        troubles.of[3].fail(None);
        host.goes_on(&world, &engine, &lun).await;
    });
}

/// While the loss of one drive was being written to the others, a second one hung: the first waited for the superblock of
/// the second, and the judgement of the second for the first.
#[test]
fn two_drives_of_raid_6_that_fail_together_are_lost_together() {
    for seed in 0..6 {
        let array = Drives::founded("raid6", 6, 6, 2, 20 + seed);
        array.troubled_life(30 + seed, move |world, engine, troubles| async move {
            let lun = volume(&engine, "lun0");
            let host = Host::start(&world, &lun);
            world.sleep(seconds(2)).await;
            let fail = |drive: usize| match seed % 3 {
                0 => troubles.of[drive].fail(Some(IoError::Gone)),
                1 => troubles.of[drive].fail_writes(IoError::Medium),
                _ => troubles.of[drive].hang(),
            };
            fail(1);
            world.sleep(Nanos::from_millis(700 * seed)).await;
            fail(4);
            assert!(within(&world, seconds(120), async || lost(&pool(&engine).await) == 2).await);
            world.sleep(seconds(3)).await;
            let acknowledged = host.acknowledged.get();
            world.sleep(seconds(2)).await;
            assert!(host.acknowledged.get() > acknowledged, "the host goes on");
            host.stop(&world).await;
            assert_eq!(host.errors.get(), 0);
            host.check(&world, &lun).await;
            engine.drain().await.expect("destaged");
            let status = pool(&engine).await;
            assert_eq!((status.paused, status.sets.failed), (None, 0));
        });
    }
}

/// Any drives fail in any way at any time, all of them at once too, and answer again some time later: whatever is lost, the
/// pool does without, everything that was acknowledged is there, and nothing is left waiting.
#[test]
fn whatever_fails_for_a_while_nothing_is_lost_and_nothing_is_stuck() {
    for seed in 0..8 {
        let (raid, drives) = [("raid1", 2), ("raid5", 4), ("raid6", 6), ("raid10", 4)][seed as usize % 4];
        let array = Drives::founded(raid, drives, drives, 2, 40 + seed);
        let host = Rc::new(RefCell::new(None));
        let kept = host.clone();
        array.troubled_life(60 + seed, move |world, engine, troubles| async move {
            let lun = volume(&engine, "lun0");
            let host = Host::start(&world, &lun);
            let mut random = world.random(99);
            for _ in 0..6 {
                world.sleep(Nanos::from_millis(random.below(3000))).await;
                let all = random.chance(0.5);
                let only = random.below(drives as u64) as usize;
                let hit = (0..drives).filter(|drive| all || *drive == only);
                for drive in hit.clone() {
                    match random.below(3) {
                        0 => troubles.of[drive].fail(Some(IoError::Gone)),
                        1 => troubles.of[drive].fail_writes(IoError::Medium),
                        _ => troubles.of[drive].hang(),
                    }
                    world.sleep(Nanos::from_millis(random.below(2000))).await;
                }
                let longest = [2, 20, 200][random.below(3) as usize];
                world.sleep(seconds(random.below(longest))).await;
                for drive in hit {
                    troubles.of[drive].fail(None);
                    troubles.answer(drive);
                    world.sleep(Nanos::from_millis(random.below(500))).await;
                }
                let resumed = async || pool(&engine).await.paused.is_none();
                assert!(within(&world, seconds(60), resumed).await, "{:?}", pool(&engine).await.problems);
            }
            world.sleep(seconds(10)).await;
            let errors = host.errors.get();
            world.sleep(seconds(5)).await;
            assert_eq!(host.errors.get(), errors, "seed {seed}: no errors when all drives answer");
            host.stop(&world).await;
            lun.flush().await.expect("stable");
            engine.drain().await.expect("destaged");
            host.check(&world, &lun).await;
            let status = pool(&engine).await;
            assert_eq!((status.paused, status.sets.failed), (None, 0), "seed {seed}");
            *kept.borrow_mut() = Some(host);
        });
        array.life(80 + seed, move |world, engine, _| async move {
            let host = host.borrow_mut().take().expect("a host");
            host.check(&world, &volume(&engine, "lun0")).await;
        });
    }
}
