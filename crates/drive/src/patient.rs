//! A drive that is given up when it does not answer in time, around any other drive.
//!
//! A command that takes longer than the limit ends with [`IoError::Timeout`]; what the drive does with it afterwards
//! nobody learns, and a buffer that was being filled stays with the drive until it is done. Whoever meets a timeout
//! should take the drive out of service: it may still carry out an old write later.
//!
//! What it does not do: it makes nothing faster, and does not itself refuse what comes after a timeout.

use futures_util::future::{Either, select};
use tier0_units::Nanos;
use tier0_world::{BufMut, Completion, IoError, Payload, World};

use crate::{Command, Drive, DriveHandle, DriveInfo};

/// How long drives are waited for: as long as the Linux SCSI layer waits for a command (30 s), so that the kernel's own
/// recovery of a real device has had its turn.
pub const PATIENCE: Nanos = Nanos::from_secs(30);

/// A drive and a limit.
pub struct PatientDrive {
    drive: DriveHandle,
    limit: Nanos,
}

impl PatientDrive {
    /// `drive`, given up on any command after `limit`.
    pub fn new(drive: DriveHandle, limit: Nanos) -> PatientDrive {
        PatientDrive { drive, limit }
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
        let world = self.world().clone();
        let read_sectors = match &command {
            Command::Read { buf, .. } => Some(buf.sectors()),
            _ => None,
        };
        let (inner, pending) = world.completion();
        self.drive.submit(command, inner);
        let (limit, width) = (world.sleep(self.limit), world.width());
        let wait = async move {
            match select(pending, limit).await {
                Either::Left(((outcome, payload), _)) => completion.complete(outcome.map(|_| ()), payload),
                Either::Right(_) => {
                    let payload = match read_sectors {
                        Some(sectors) => Payload::Read(BufMut::zeroed(sectors, width)),
                        None => Payload::None,
                    };
                    completion.complete(Err(IoError::Timeout), payload);
                }
            }
        };
        world.spawn(wait).detach();
    }
}

#[cfg(test)]
mod tests {
    use tier0_units::{Lba, SectorCount};
    use tier0_world::{PayloadWidth, VirtualRuntime};

    use super::*;
    use crate::{Fault, FaultDrive, FaultPlan, StoreDrive};

    #[test]
    fn a_drive_that_hangs_is_given_up_and_a_slow_one_is_not() {
        let runtime = VirtualRuntime::new(1, PayloadWidth::REAL);
        let world = runtime.world().clone();
        runtime.run(async move {
            let faulty = FaultDrive::new(DriveHandle::new(StoreDrive::new(&world, "d", SectorCount(64))), 1);
            let drive =
                DriveHandle::new(PatientDrive::new(DriveHandle::new(faulty.clone()), Nanos::from_secs(1)));
            faulty.inject(FaultPlan::once(Fault::Latency(Nanos::from_millis(900))));
            assert_eq!(drive.read(Lba(0), world.buffer(8)).await.0, Ok(()));
            faulty.inject(FaultPlan::once(Fault::Latency(Nanos::from_secs(5))));
            let begun = world.now();
            let (result, buf) = drive.read(Lba(0), world.buffer(8)).await;
            assert_eq!((result, buf.sectors()), (Err(IoError::Timeout), 8));
            assert_eq!(world.now().0 - begun.0, Nanos::from_secs(1).0);
            faulty.inject(FaultPlan::once(Fault::Latency(Nanos::from_secs(5))));
            assert_eq!(drive.flush().await, Err(IoError::Timeout));
        });
    }
}
