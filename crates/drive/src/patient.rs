//! A drive that is given up when it does not answer in time, around any other drive.
//!
//! A command that takes longer than the limit ends with [`IoError::Timeout`]; what the drive does with it afterwards
//! nobody learns, and a buffer that was being filled stays with the drive until it is done. Whoever meets a timeout
//! should take the drive out of service: it may still carry out an old write later.
//!
//! What it does not do: it makes nothing faster, and does not itself refuse what comes after a timeout.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tier0_units::Nanos;
use tier0_world::{BufMut, Completion, IoError, Payload, UnderWay, World};

use crate::{Command, Drive, DriveHandle, DriveInfo};

/// How long drives are waited for: as long as the Linux SCSI layer waits for a command (30 s), so that the kernel's own
/// recovery of a real device has had its turn.
pub const PATIENCE: Nanos = Nanos::from_secs(30);

/// Fewer commands than this behind one that is late are not looked through for those that have ended.
const LOOKED_THROUGH_MIN: usize = 1024;

/// A drive and a limit.
pub struct PatientDrive {
    drive: DriveHandle,
    limit: Nanos,
    watch: Rc<Watch>,
}

impl PatientDrive {
    /// `drive`, given up on any command after `limit`.
    pub fn new(drive: DriveHandle, limit: Nanos) -> PatientDrive {
        let watch = Watch { world: drive.world().clone(), commands: RefCell::default() };
        PatientDrive { drive, limit, watch: Rc::new(watch) }
    }
}

impl Drive for PatientDrive {
    fn info(&self) -> &DriveInfo {
        self.drive.info()
    }

    fn world(&self) -> &World {
        self.drive.world()
    }

    fn submit(&self, command: Command, completion: Completion) {
        let read_sectors = match &command {
            Command::Read { buf, .. } => Some(buf.sectors()),
            _ => None,
        };
        let deadline = self.world().now().saturating_add(self.limit);
        self.watch.add(Watched { deadline, io: completion.under_way(), read_sectors });
        self.drive.submit(command, completion);
    }
}

/// Watches over the commands of a drive.
struct Watch {
    world: World,
    commands: RefCell<Commands>,
}

#[derive(Default)]
struct Commands {
    /// The earliest deadline first. Those that have ended stay behind those that have not.
    watched: VecDeque<Watched>,
    /// So many are looked through for those that have ended.
    looked_through_at: usize,
    /// Whether a task waits for the next deadline.
    attended: bool,
}

struct Watched {
    deadline: Nanos,
    io: UnderWay,
    read_sectors: Option<u32>,
}

impl Watch {
    fn add(self: &Rc<Self>, watched: Watched) {
        let mut commands = self.commands.borrow_mut();
        commands.forget_ended(&self.world);
        commands.watched.push_back(watched);
        if !std::mem::replace(&mut commands.attended, true) {
            self.world.spawn(self.clone().attend()).detach();
        }
    }

    /// Gives up what is late, until nothing is left.
    async fn attend(self: Rc<Self>) {
        while let Some(deadline) = self.next_deadline() {
            self.world.sleep_until(deadline).await;
            self.give_up_late();
        }
    }

    fn next_deadline(&self) -> Option<Nanos> {
        let mut commands = self.commands.borrow_mut();
        commands.forget_ended(&self.world);
        let next = commands.watched.front().map(|watched| watched.deadline);
        commands.attended = next.is_some();
        next
    }

    fn give_up_late(&self) {
        let now = self.world.now();
        let mut commands = self.commands.borrow_mut();
        while let Some(late) = commands.watched.pop_front_if(|watched| watched.deadline <= now) {
            let payload = match late.read_sectors {
                Some(sectors) if late.io.is_live(&self.world) => {
                    Payload::Read(BufMut::zeroed(sectors, self.world.width()))
                }
                _ => Payload::None,
            };
            late.io.give_up(&self.world, IoError::Timeout, payload);
        }
    }
}

impl Commands {
    fn forget_ended(&mut self, world: &World) {
        while self.watched.pop_front_if(|watched| !watched.io.is_live(world)).is_some() {}
        // One that hangs shall not keep a memory of all that came after it.
        if self.watched.len() >= self.looked_through_at.max(LOOKED_THROUGH_MIN) {
            self.watched.retain(|watched| watched.io.is_live(world));
            self.looked_through_at = 2 * self.watched.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use tier0_units::{Lba, SectorCount};
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;
    use crate::{Fault, FaultDrive, FaultPlan, StoreDrive};

    /// Runs `test` with a drive that can be made to hang, and with the one of limited patience around it.
    fn run<F: Future<Output = ()> + 'static>(
        limit: Nanos,
        test: impl FnOnce(World, FaultDrive, Rc<PatientDrive>) -> F,
    ) {
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let world = runtime.world().clone();
        let store = DriveHandle::new(StoreDrive::new(&world, "d", SectorCount(64)));
        let faulty = FaultDrive::new(store, 1);
        let patient = Rc::new(PatientDrive::new(DriveHandle::new(faulty.clone()), limit));
        runtime.run(test(world, faulty, patient));
    }

    #[test]
    fn a_drive_that_hangs_is_given_up_and_a_slow_one_is_not() {
        run(Nanos::from_secs(1), |world, faulty, patient| async move {
            let drive = DriveHandle::from_rc(patient);
            faulty.inject(FaultPlan::once(Fault::Latency(Nanos::from_millis(900))));
            assert_eq!(drive.read(Lba(0), world.buffer(8)).await.0, Ok(()));
            faulty.inject(FaultPlan::once(Fault::Latency(Nanos::from_secs(5))));
            let begun = world.now();
            let (result, buf) = drive.read(Lba(0), world.buffer(8)).await;
            assert_eq!((result, buf.sectors()), (Err(IoError::Timeout), 8));
            assert_eq!(world.now().0 - begun.0, Nanos::from_secs(1).0);
            faulty.inject(FaultPlan::once(Fault::Latency(Nanos::from_secs(5))));
            assert_eq!(drive.flush().await, Err(IoError::Timeout));
            assert_eq!(world.pending_count(), 4, "two commands hang, and the drive sleeps over them");
            world.sleep(Nanos::from_secs(9)).await;
            assert_eq!(world.pending_count(), 0);
        });
    }

    #[test]
    fn each_command_has_its_own_limit() {
        run(Nanos::from_secs(1), |world, faulty, patient| async move {
            let drive = DriveHandle::from_rc(patient);
            for wait in [0, 300, 700] {
                let (drive, faulty, reader) = (drive.clone(), faulty.clone(), world.clone());
                let read = async move {
                    reader.sleep(Nanos::from_millis(wait)).await;
                    faulty.inject(FaultPlan::once(Fault::Latency(Nanos::from_secs(5))));
                    assert_eq!(drive.read(Lba(0), reader.buffer(8)).await.0, Err(IoError::Timeout));
                    assert_eq!(reader.now(), Nanos::from_millis(1_000 + wait));
                };
                world.spawn(read).detach();
            }
            world.sleep(Nanos::from_millis(900)).await;
            assert_eq!(drive.read(Lba(8), world.buffer(8)).await.0, Ok(()));
            world.sleep(Nanos::from_secs(9)).await;
        });
    }

    #[test]
    fn what_has_ended_is_forgotten_even_behind_one_that_hangs() {
        run(PATIENCE, |world, faulty, patient| async move {
            let drive = DriveHandle::from_rc(patient.clone());
            faulty.inject(FaultPlan::once(Fault::Latency(Nanos::from_secs(5))));
            let hangs = world.spawn({
                let (drive, buf) = (drive.clone(), world.buffer(8));
                async move { drive.read(Lba(0), buf).await.0 }
            });
            for _ in 0..4 * LOOKED_THROUGH_MIN {
                assert_eq!(drive.read(Lba(8), world.buffer(8)).await.0, Ok(()));
                assert!(patient.watch.commands.borrow().watched.len() <= LOOKED_THROUGH_MIN);
            }
            assert_eq!(hangs.await, Ok(()));
        });
    }
}
