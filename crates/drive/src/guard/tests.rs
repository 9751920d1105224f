//! Every row of the table in decision 0008, in virtual time.

mod stuck;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::{BufMut, IoError, PayloadWidth, VirtualRuntime, World};

use super::*;
use crate::sim::{PowerSwitch, SimMedium, SimOptions};
use crate::{Fault, FaultPlan};

const S: fn(u64) -> Nanos = Nanos::from_secs;

/// Answers what it is told to, and counts.
struct TestArbiter {
    verdict: Cell<Verdict>,
    knows: RefCell<Result<(), String>>,
    asked: Cell<u32>,
}

impl Arbiter for TestArbiter {
    fn arbitrate(&self, _: IoError) -> Pin<Box<dyn Future<Output = Verdict>>> {
        self.asked.set(self.asked.get() + 1);
        let verdict = self.verdict.get();
        Box::pin(async move { verdict })
    }

    fn recognise(&self, _: DriveHandle) -> Pin<Box<dyn Future<Output = Result<(), String>>>> {
        let knows = self.knows.borrow().clone();
        Box::pin(async move { knows })
    }
}

struct Rig {
    world: World,
    medium: SimMedium,
    guard: Guard,
    drive: DriveHandle,
    arbiter: Rc<TestArbiter>,
}

fn run<F: Future<Output = ()> + 'static>(test: impl FnOnce(Rig) -> F) {
    let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
    let world = runtime.world().clone();
    let mut options = SimOptions::new("d", SectorCount(4096), 7);
    options.slow_share = 0.0;
    let medium = SimMedium::new(options, &PowerSwitch::new());
    let guard = Guard::new(medium.open(&world), Patience::default(), Health::new());
    let arbiter = Rc::new(TestArbiter {
        verdict: Cell::new(Verdict::Wait),
        knows: RefCell::new(Ok(())),
        asked: Cell::new(0),
    });
    guard.obey(arbiter.clone());
    let drive = guard.handle();
    runtime.run(test(Rig { world, medium, guard, drive, arbiter }));
}

fn page(byte: u8) -> tier0_world::Buf {
    BufMut::copy_from(&[byte; 4096], PayloadWidth::REAL).freeze()
}

impl Rig {
    fn fail(&self, fault: Fault) {
        self.medium.inject(FaultPlan::share(fault, 1.0));
    }

    fn fail_all(&self) {
        for fault in [Fault::ReadError, Fault::WriteError, Fault::FlushError] {
            self.fail(fault);
        }
    }

    fn later(&self, time: Nanos, act: impl FnOnce(&SimMedium) + 'static) {
        let (world, medium) = (self.world.clone(), self.medium.clone());
        let act = async move {
            world.sleep(time).await;
            act(&medium);
        };
        self.world.spawn(act).detach();
    }

    async fn write(&self, lba: u64, byte: u8) -> Result<(), IoError> {
        self.drive.write(Lba(lba), page(byte), false).await
    }

    async fn read(&self, lba: u64) -> Result<u8, IoError> {
        let (result, buf) = self.drive.read(Lba(lba), self.world.buffer(8)).await;
        result.map(|()| buf.as_slice()[0])
    }

    fn standing(&self) -> Standing {
        self.guard.health().snapshot().standing
    }
}

#[test]
fn errors_that_pass_are_seen_by_nobody_but_the_counters() {
    run(async |rig| {
        rig.write(0, 1).await.expect("it is well");
        rig.fail_all();
        rig.later(S(1), SimMedium::clear_plans);
        assert_eq!(rig.write(0, 2).await, Ok(()));
        assert!(rig.world.now() >= S(1));
        assert_eq!((rig.read(0).await, rig.arbiter.asked.get()), (Ok(2), 0));
        let health = rig.guard.health().snapshot();
        assert!(health.write_errors > 1 && health.retried == 1, "{health:?}");
        assert_eq!(health.standing, Standing::Healthy);
    });
}

/// A device that was pulled fails what is written with EIO, as a bad sector does. Where nothing else was asked of it, its path was
/// not opened again when it was back, and the pool waited until hosts got errors.
#[test]
fn a_drive_that_writes_and_reads_nothing_is_away() {
    run(async |rig| {
        rig.fail_all();
        rig.later(S(20), SimMedium::clear_plans);
        *rig.arbiter.knows.borrow_mut() = Err("it is another one".to_owned());
        let (world, arbiter) = (rig.world.clone(), rig.arbiter.clone());
        let known = async move {
            world.sleep(S(40)).await;
            *arbiter.knows.borrow_mut() = Ok(());
        };
        rig.world.spawn(known).detach();
        assert_eq!(rig.write(0, 2).await, Ok(()));
        assert!(rig.world.now() >= S(40), "it is written to a drive that was not recognised");
        assert!(rig.guard.health().outages() > 0);
    });
}

#[test]
fn a_drive_that_cannot_be_done_without_is_waited_for() {
    run(async |rig| {
        rig.fail_all();
        rig.later(S(600), SimMedium::clear_plans);
        let (world, guard) = (rig.world.clone(), rig.guard.clone());
        let look = async move {
            world.sleep(S(2)).await;
            assert_eq!(guard.health().snapshot().standing, Standing::Suspect);
            world.sleep(S(4)).await;
            assert_eq!(guard.health().snapshot().standing, Standing::Awaited);
        };
        let look = rig.world.spawn(look);
        assert_eq!(rig.write(0, 2).await, Ok(()));
        look.await;
        assert!(rig.arbiter.asked.get() > 100);
        assert_eq!((rig.read(0).await, rig.standing()), (Ok(2), Standing::Healthy));
    });
}

#[test]
fn after_a_verdict_of_loss_everything_fails_at_once() {
    run(async |rig| {
        rig.arbiter.verdict.set(Verdict::Lost);
        rig.fail_all();
        assert_eq!(rig.write(0, 2).await, Err(IoError::Gone));
        assert!(rig.world.now() >= S(3) && rig.world.now() < S(5));
        rig.medium.clear_plans();
        let began = rig.world.now();
        assert_eq!(rig.read(0).await, Err(IoError::Gone));
        assert_eq!((rig.world.now(), rig.standing()), (began, Standing::Lost));
    });
}

#[test]
fn a_bad_sector_is_no_bad_drive() {
    run(async |rig| {
        rig.write(512, 3).await.expect("it is well");
        rig.medium.make_unreadable(512..513);
        assert_eq!(rig.read(512).await, Err(IoError::Medium));
        assert_eq!((rig.arbiter.asked.get(), rig.standing()), (0, Standing::Healthy));
        // One copy of the superblock is as any other sector.
        rig.medium.make_unreadable(128..136);
        assert_eq!(rig.read(128).await, Err(IoError::Medium));
        assert_eq!((rig.arbiter.asked.get(), rig.standing()), (0, Standing::Healthy));
    });
}

#[test]
fn what_a_drive_lost_with_its_cache_is_written_again() {
    run(async |rig| {
        for (lba, byte) in [(0, 1), (8, 2), (4, 3), (16, 4)] {
            rig.write(lba, byte).await.expect("it is well");
        }
        rig.medium.unplug();
        rig.later(S(20), SimMedium::reconnect);
        assert_eq!(rig.drive.flush().await, Ok(()));
        assert!(rig.world.now() >= S(20));
        rig.medium.power_cut(crate::sim::PowerCut::KeepNothing);
        let mut bytes = vec![0; 24 * 512];
        rig.medium.peek(Lba(0), &mut bytes);
        let sectors: Vec<u8> = bytes.chunks(512).map(|sector| sector[0]).collect();
        assert_eq!(sectors, [[1; 4], [3; 4], [3; 4], [2; 4], [4; 4], [4; 4]].concat());
    });
}

/// The control task's guard kept its discards, and after an outage repeated them over what shards had written since, through
/// guards of their own: pages of both mirrors were lost.
#[test]
fn a_discard_does_not_come_again_after_an_outage() {
    run(async |rig| {
        let other = Guard::new(rig.guard.bare().clone(), Patience::default(), rig.guard.health().clone());
        other.obey(rig.arbiter.clone());
        rig.drive.discard(Lba(16), 8).await.expect("it can");
        other.handle().write(Lba(16), page(5), false).await.expect("it is well");
        other.handle().flush().await.expect("it is well");
        rig.medium.unplug();
        rig.later(S(1), SimMedium::reconnect);
        rig.write(0, 1).await.expect("it came back");
        rig.drive.flush().await.expect("it is well");
        assert_eq!(rig.read(16).await, Ok(5));
    });
}

/// A discard that failed made a healthy drive fail.
#[test]
fn a_discard_that_fails_says_nothing_of_the_drive() {
    run(async |rig| {
        rig.medium.unplug();
        assert!(rig.drive.discard(Lba(16), 8).await.is_err());
        rig.medium.reconnect();
        assert_eq!((rig.world.now().0 < S(1).0, rig.arbiter.asked.get()), (true, 0));
        assert_eq!((rig.read(16).await, rig.standing()), (Ok(0), Standing::Healthy));
        assert_eq!(rig.guard.health().strays(), 0);
    });
}

#[test]
fn a_flush_that_failed_is_not_believed_before_all_is_written_again() {
    run(async |rig| {
        rig.write(0, 1).await.expect("it is well");
        rig.medium.inject(FaultPlan::once(Fault::FlushError));
        assert_eq!(rig.drive.flush().await, Ok(()));
        rig.medium.power_cut(crate::sim::PowerCut::KeepNothing);
        let mut bytes = vec![0; 512];
        rig.medium.peek(Lba(0), &mut bytes);
        assert_eq!(bytes[0], 1);
        assert_eq!(rig.guard.health().snapshot().outages, 1);
    });
}

#[test]
fn an_outage_that_one_shard_saw_counts_for_all() {
    run(async |rig| {
        // The second shard's guard; it asks for nothing while the drive is away.
        let other = Guard::new(rig.guard.bare().clone(), Patience::default(), rig.guard.health().clone());
        other.obey(rig.arbiter.clone());
        let drive = other.handle();
        drive.write(Lba(64), page(9), false).await.expect("it is well");
        rig.medium.unplug();
        rig.later(S(1), SimMedium::reconnect);
        rig.write(0, 1).await.expect("it came back");
        drive.flush().await.expect("it is well");
        rig.medium.power_cut(crate::sim::PowerCut::KeepNothing);
        let mut bytes = vec![0; 512];
        rig.medium.peek(Lba(64), &mut bytes);
        assert_eq!(bytes[0], 9);
    });
}

/// A write to a device that had no sectors any more was taken for one that wants for space, and waited without end.
#[test]
fn a_drive_that_ends_too_early_is_away() {
    run(async |rig| {
        let mut told = Vec::new();
        for _ in 0..2 {
            rig.medium.unplug();
            rig.later(S(5), SimMedium::reconnect);
            assert_eq!(rig.write(0, 1).await, Ok(()));
            told.push(rig.guard.health().snapshot().last_error.expect("it was away"));
        }
        assert_eq!(told.iter().filter(|why| why.contains("ends too early")).count(), 1, "{told:?}");
        assert!(rig.arbiter.asked.get() > 0 && !rig.guard.health().snapshot().no_space);
        rig.arbiter.verdict.set(Verdict::Lost);
        rig.medium.unplug();
        assert_eq!(rig.write(0, 1).await, Err(IoError::Gone));
    });
}

#[test]
fn another_drive_in_its_place_is_not_taken() {
    run(async |rig| {
        rig.medium.disconnect();
        *rig.arbiter.knows.borrow_mut() = Err("another drive is in its place".to_owned());
        rig.later(S(1), SimMedium::reconnect);
        let write = rig.world.spawn({
            let drive = rig.drive.clone();
            async move { drive.write(Lba(0), page(1), false).await }
        });
        rig.world.sleep(S(10)).await;
        let health = rig.guard.health().snapshot();
        assert_eq!(health.standing, Standing::Awaited);
        assert_eq!(health.last_error.as_deref(), Some("another drive is in its place"));
        *rig.arbiter.knows.borrow_mut() = Ok(());
        assert_eq!(write.await, Ok(()));
    });
}

#[test]
fn a_drive_that_hangs_for_a_while_is_waited_for_and_one_that_hangs_for_long_goes_to_the_arbiter() {
    run(async |rig| {
        rig.medium.inject(FaultPlan::once(Fault::Latency(S(20))));
        assert_eq!(rig.write(0, 1).await, Ok(()));
        let health = rig.guard.health().snapshot();
        assert_eq!((health.slow, rig.arbiter.asked.get()), (1, 0));
        rig.medium.inject(FaultPlan::once(Fault::Latency(S(60))));
        assert_eq!(rig.write(0, 2).await, Ok(()));
        assert!(rig.arbiter.asked.get() > 10);
        rig.arbiter.verdict.set(Verdict::Lost);
        rig.medium.inject(FaultPlan::once(Fault::Latency(S(60))));
        let began = rig.world.now();
        assert_eq!(rig.read(0).await, Err(IoError::Gone));
        assert_eq!(rig.world.now().0 - began.0, S(30).0);
        rig.world.sleep(S(60)).await;
        assert_eq!(rig.world.pending_count(), 0);
    });
}

#[test]
fn time_in_which_nobody_looked_does_not_count() {
    run(async |rig| {
        rig.arbiter.verdict.set(Verdict::Lost);
        rig.medium.inject(FaultPlan::once(Fault::Latency(S(20))));
        let write = rig.world.spawn({
            let drive = rig.drive.clone();
            async move { drive.write(Lba(0), page(1), false).await }
        });
        rig.world.sleep(S(1)).await;
        rig.world.stall(S(3600));
        assert_eq!(write.await, Ok(()));
        assert_eq!((rig.arbiter.asked.get(), rig.world.slow_turns().count), (0, 1));
    });
}

#[test]
fn reads_that_wait_are_refused_when_somebody_says_so() {
    run(async |rig| {
        rig.medium.disconnect();
        let read = rig.world.spawn({
            let (drive, buf) = (rig.drive.clone(), rig.world.buffer(8));
            async move { drive.read(Lba(0), buf).await.0 }
        });
        let write = rig.world.spawn({
            let drive = rig.drive.clone();
            async move { drive.write(Lba(0), page(1), false).await }
        });
        rig.world.sleep(S(10)).await;
        rig.guard.health().refuse_reads(true);
        assert_eq!(read.await, Err(IoError::Timeout));
        assert_eq!(rig.read(0).await, Err(IoError::Timeout));
        rig.guard.health().refuse_reads(false);
        rig.medium.reconnect();
        assert_eq!(write.await, Ok(()));
        assert_eq!(rig.read(0).await, Ok(1));
    });
}

#[test]
fn without_an_arbiter_patience_ends_with_the_error() {
    run(async |rig| {
        let guard = Guard::new(rig.guard.bare().clone(), Patience::default(), Health::new());
        let drive = guard.handle();
        rig.medium.disconnect();
        assert_eq!(drive.write(Lba(0), page(1), false).await, Err(IoError::Gone));
        let at = rig.world.now();
        assert!(at >= S(3) && at < S(4));
        // Once tired, it tries no longer than it must.
        assert_eq!(drive.read(Lba(0), rig.world.buffer(8)).await.0, Err(IoError::Gone));
        assert!(rig.world.now() < S(4));
        rig.medium.reconnect();
        rig.medium.inject(FaultPlan::once(Fault::Latency(S(100))));
        let began = rig.world.now();
        assert_eq!(drive.read(Lba(0), rig.world.buffer(8)).await.0, Err(IoError::Timeout));
        assert_eq!(rig.world.now().0 - began.0, S(30).0);
    });
}

#[test]
fn what_is_refused_is_refused_at_once() {
    run(async |rig| {
        assert_eq!(rig.drive.read(Lba(4095), rig.world.buffer(8)).await.0, Err(IoError::OutOfRange));
        assert_eq!((rig.world.now(), rig.standing()), (Nanos::ZERO, Standing::Healthy));
    });
}

/// A guard that made good what another had seen counted an outage of its own, and so had the other make it good again:
/// after one outage, every flush of either shard closed the gate of both, for ever.
#[test]
fn an_outage_is_counted_once_however_many_guards_make_it_good() {
    run(|rig| async move {
        let other = Guard::new(rig.guard.bare().clone(), Patience::default(), rig.guard.health().clone());
        other.obey(rig.arbiter.clone());
        rig.medium.inject(FaultPlan::once(Fault::FlushError));
        rig.drive.flush().await.expect("it passes");
        for _ in 0..4 {
            other.handle().flush().await.expect("a flush");
            rig.drive.flush().await.expect("a flush");
        }
        assert_eq!(rig.guard.health().snapshot().outages, 1);
    });
}

/// A drive lost its cache, and only one shard's guard noticed. Another shard read there, before its next flush, what had
/// lain under a write of its own that the drive had acknowledged.
#[test]
fn a_read_sees_what_was_acknowledged_though_another_shard_saw_the_outage() {
    run(|rig| async move {
        let other = Guard::new(rig.guard.bare().clone(), Patience::default(), rig.guard.health().clone());
        other.obey(rig.arbiter.clone());
        rig.write(8, 1).await.expect("a write");
        rig.medium.disconnect();
        rig.medium.power_cut(crate::sim::PowerCut::KeepNothing);
        rig.later(S(1), SimMedium::reconnect);
        other.handle().flush().await.expect("it passes");
        assert_eq!(rig.read(8).await, Ok(1));
    });
}

/// A drive that failed every read and took every flush was recovered and failed again for ever, and a start that met it
/// never ended.
#[test]
fn a_drive_that_only_flushes_does_not_answer() {
    run(async |rig| {
        let guard = Guard::new(rig.guard.bare().clone(), Patience::default(), Health::new());
        let drive = guard.handle();
        rig.fail(Fault::ReadError);
        let (result, _) = drive.read(Lba(0), rig.world.buffer(8)).await;
        assert_eq!(result, Err(IoError::Medium));
        assert!(rig.world.now() < S(5));
    });
}

/// A write that was tried again asked whether the drive answers, and that read hung. Meanwhile the drive was found failed, and
/// everything answered; the write came later to a gate that nobody opened any more.
#[test]
fn a_write_whose_probe_outlives_the_drive_is_answered() {
    run(async |rig| {
        rig.arbiter.verdict.set(Verdict::Lost);
        rig.fail(Fault::WriteError);
        let hangs = Fault::Latency(S(60));
        rig.medium.inject(FaultPlan {
            fault: hangs,
            probability: 1.0,
            range: Some(128..136),
            times: Some(1),
        });
        rig.fail(Fault::ReadError);
        let drive = rig.drive.clone();
        let write = rig.world.spawn(async move { drive.write(Lba(512), page(1), false).await });
        rig.world.sleep(S(1)).await;
        rig.fail(Fault::FlushError);
        assert_eq!(rig.drive.flush().await, Err(IoError::Gone));
        let ended = Rc::new(Cell::new(None));
        let told = ended.clone();
        rig.world.spawn(async move { told.set(Some(write.await)) }).detach();
        rig.world.sleep(S(3600)).await;
        assert_eq!(ended.get(), Some(Err(IoError::Gone)), "after an hour");
    });
}
