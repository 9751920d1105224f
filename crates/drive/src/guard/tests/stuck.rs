//! Recoveries that get stuck, and what happens beside them.

use super::*;
use tier0_world::{Completion, Payload};

use crate::sim::PowerCut;
use crate::{Command, DriveInfo};

/// The first command on these sectors takes a day.
fn stuck(sectors: std::ops::Range<u64>) -> FaultPlan {
    FaultPlan { range: Some(sectors), ..FaultPlan::once(Fault::Latency(S(86_400))) }
}

/// A drive hung while its guard wrote again what it might have lost: the guard did not ask for a verdict, and hosts
/// waited for ever.
#[test]
fn a_drive_that_hangs_when_it_is_written_again_goes_to_the_arbiter() {
    run(async |rig| {
        rig.write(0, 1).await.expect("it is well");
        rig.arbiter.verdict.set(Verdict::Lost);
        rig.medium.inject(FaultPlan::once(Fault::FlushError));
        rig.medium.inject(stuck(0..8));
        assert_eq!(rig.drive.flush().await, Err(IoError::Gone));
        assert!(rig.world.now() >= S(30) && rig.world.now() < S(35), "{}", rig.world.now());
        assert_eq!(rig.guard.health().strays(), 1, "what was written again is still below");
    });
}

/// A write that hung when its drive was lost might land on what had been rebuilt, once the drive was taken back.
#[test]
fn a_write_that_hangs_in_a_lost_drive_is_known_until_it_ends() {
    run(async |rig| {
        rig.arbiter.verdict.set(Verdict::Lost);
        rig.medium.inject(FaultPlan { range: Some(0..8), ..FaultPlan::once(Fault::Latency(S(100))) });
        rig.medium.inject(FaultPlan { range: Some(16..24), ..FaultPlan::once(Fault::Latency(S(100))) });
        let read = rig.world.spawn({
            let drive = rig.drive.clone();
            async move { drive.read(Lba(16), BufMut::new(8, PayloadWidth::REAL)).await.0 }
        });
        assert_eq!(rig.write(0, 1).await, Err(IoError::Gone));
        assert_eq!(read.await, Err(IoError::Gone));
        assert_eq!(rig.guard.health().strays(), 1, "a read changes nothing");
        rig.world.sleep(S(100)).await;
        assert_eq!(rig.guard.health().strays(), 0);
    });
}

/// The probe after a bad sector hung, and the read waited for it without end.
#[test]
fn a_drive_that_hangs_when_it_is_probed_goes_to_the_arbiter() {
    run(async |rig| {
        rig.arbiter.verdict.set(Verdict::Lost);
        rig.medium.make_unreadable(512..513);
        rig.medium.inject(FaultPlan { times: None, ..stuck(128..136) });
        assert_eq!(rig.read(512).await, Err(IoError::Gone));
        assert!(rig.world.now() < S(70), "{}", rig.world.now());
    });
}

/// The kernel lost one read. Its caller had been told of an error, and still no outage of the drive ended.
#[test]
fn a_command_that_was_given_up_holds_up_no_recovery() {
    run(async |rig| {
        rig.medium.inject(stuck(16..24));
        rig.guard.health().refuse_reads(true);
        assert_eq!(rig.read(16).await, Err(IoError::Timeout));
        rig.guard.health().refuse_reads(false);
        let began = rig.world.now();
        rig.write(0, 1).await.expect("it is well");
        rig.medium.inject(FaultPlan::once(Fault::FlushError));
        assert_eq!(rig.drive.flush().await, Ok(()));
        assert!(rig.world.now().0 - began.0 < S(2).0);
        rig.world.sleep(S(6)).await;
        assert_eq!(rig.standing(), Standing::Healthy);
    });
}

/// A drive lost its cache for the second time while one shard's guard was still at the first. The other shard had its
/// drive back already, heard nothing of it, and believed the next flush.
#[test]
fn an_outage_in_a_recovery_is_another_one() {
    run(async |rig| {
        let knows_it = TestArbiter {
            verdict: Cell::new(Verdict::Wait),
            knows: RefCell::new(Ok(())),
            asked: Cell::new(0),
        };
        let other = Guard::new(rig.guard.bare().clone(), Patience::default(), rig.guard.health().clone());
        other.obey(Rc::new(knows_it));
        let drive = other.handle();
        drive.write(Lba(32), page(7), false).await.expect("it is well");
        *rig.arbiter.knows.borrow_mut() = Err("the shard is slow to believe it".to_owned());
        rig.medium.inject(FaultPlan::once(Fault::FlushError));
        let flush = rig.world.spawn({
            let drive = rig.drive.clone();
            async move { drive.flush().await }
        });
        rig.world.sleep(S(1)).await;
        drive.flush().await.expect("it is made good");
        drive.write(Lba(64), page(9), false).await.expect("it is well");
        rig.medium.disconnect();
        rig.medium.power_cut(PowerCut::KeepNothing);
        rig.world.sleep(S(2)).await;
        rig.medium.reconnect();
        *rig.arbiter.knows.borrow_mut() = Ok(());
        drive.flush().await.expect("it is well again");
        flush.await.expect("it is well again");
        rig.medium.power_cut(PowerCut::KeepNothing);
        let mut bytes = vec![0; 512];
        rig.medium.peek(Lba(64), &mut bytes);
        assert_eq!(bytes[0], 9);
        assert_eq!(rig.guard.health().snapshot().outages, 2);
    });
}

/// A drive whose file system is full for a while.
struct Full {
    drive: DriveHandle,
    left: Cell<u32>,
}

impl Drive for Full {
    fn info(&self) -> &DriveInfo {
        self.drive.info()
    }

    fn world(&self) -> &World {
        self.drive.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        let is_write = matches!(command, Command::Write { .. });
        match self.left.get().checked_sub(1).filter(|_| is_write) {
            Some(left) => {
                self.left.set(left);
                command.refuse(IoError::NoSpace, completion);
            }
            None => self.drive.submit(command, completion),
        }
    }
}

/// Between two tries of a write that found no space, status said that there was space.
#[test]
fn a_lack_of_space_is_told_until_the_write_succeeds() {
    run(async |rig| {
        let full = DriveHandle::new(Full { drive: rig.guard.bare().clone(), left: Cell::new(5) });
        let guard = Guard::new(full, Patience::default(), Health::new());
        guard.obey(rig.arbiter.clone());
        let write = rig.world.spawn({
            let drive = guard.handle();
            async move { drive.write(Lba(0), page(1), false).await }
        });
        rig.world.sleep(Nanos::from_millis(100)).await;
        while !write.is_finished() {
            assert!(guard.health().snapshot().no_space, "at {}", rig.world.now());
            rig.world.sleep(Nanos::from_micros(900)).await;
        }
        assert!(rig.world.now() >= S(5));
        assert_eq!((write.await, guard.health().snapshot().no_space), (Ok(()), false));
        assert_eq!(rig.arbiter.asked.get(), 0);
    });
}

/// A device whose writes alone fail, as if it were away.
struct ReadOnly(DriveHandle);

impl Drive for ReadOnly {
    fn info(&self) -> &DriveInfo {
        self.0.info()
    }

    fn world(&self) -> &World {
        self.0.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        match command {
            Command::Write { .. } => completion.complete(Err(IoError::Os(libc::EPERM)), Payload::None),
            command => self.0.submit(command, completion),
        }
    }
}

/// A loop device was made read-only. It answered every probe, failed the same write again, and so on three million
/// times; the arbiter was not asked for a verdict, and the host waited for ever.
#[test]
fn a_device_that_takes_no_writes_is_judged_although_it_answers() {
    run(async |rig| {
        let guard = Guard::new(
            DriveHandle::new(ReadOnly(rig.guard.bare().clone())),
            Patience::default(),
            Health::new(),
        );
        guard.obey(rig.arbiter.clone());
        rig.arbiter.verdict.set(Verdict::Lost);
        let drive = guard.handle();
        assert_eq!(drive.write(Lba(0), page(1), false).await, Err(IoError::Gone));
        assert!(rig.world.now() >= S(3) && rig.world.now() < S(10), "{}", rig.world.now());
        assert!(guard.health().snapshot().outages < 50);
    });
}
