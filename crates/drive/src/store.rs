//! The simplest drive: memory of any width per sector, no timing. For the tests of the layers above, and under a
//! [`crate::FaultDrive`] for the simulation of faults.

use std::cell::RefCell;

use tier0_units::SectorCount;
use tier0_world::{Completion, Payload, World};

use crate::{Command, Drive, DriveInfo, SparseStore};

/// A drive that answers at once.
pub struct StoreDrive {
    world: World,
    info: DriveInfo,
    store: RefCell<SparseStore>,
}

impl StoreDrive {
    /// An empty drive of `sectors` sectors.
    pub fn new(world: &World, name: &str, sectors: SectorCount) -> StoreDrive {
        let info = DriveInfo {
            name: name.to_owned(),
            sectors,
            block_sectors: 1,
            volatile_cache: false,
            discard_zeroes: true,
        };
        StoreDrive { world: world.clone(), info, store: RefCell::new(SparseStore::new(world.width())) }
    }
}

impl Drive for StoreDrive {
    fn info(&self) -> &DriveInfo {
        &self.info
    }

    fn world(&self) -> &World {
        &self.world
    }

    fn submit(&self, command: Command, completion: Completion) {
        let payload = self.store.borrow_mut().execute(command);
        completion.complete(Ok(()), payload);
    }
}

impl SparseStore {
    /// Carries a command out on the content, and gives back what its completion carries.
    pub(crate) fn execute(&mut self, command: Command) -> Payload {
        match command {
            Command::Read { lba, mut buf } => {
                self.read(lba, buf.as_mut_slice());
                return Payload::Read(buf);
            }
            Command::Write { lba, buf, .. } => self.write_buf(lba, &buf),
            Command::Discard { lba, sectors } => self.discard(lba, sectors),
            Command::Flush => {}
        }
        Payload::None
    }
}
