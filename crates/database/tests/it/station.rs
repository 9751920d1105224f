//! A volume whose requests take exponentially distributed times, some at a time, in the order of arrival.

use std::cell::RefCell;

use tier0_block::{BlockTarget, TargetInfo};
use tier0_units::{Lba, Nanos, SectorCount};
use tier0_world::sync::Semaphore;
use tier0_world::{Buf, BufMut, IoError, Random, World};

/// Servers of a volume at which no request waits for another.
pub(crate) const UNLIMITED: u64 = u64::MAX >> 1;

pub(crate) struct Station {
    world: World,
    servers: Semaphore,
    random: RefCell<Random>,
    mean: Nanos,
}

impl Station {
    pub(crate) fn new(world: &World, name: u64, servers: u64, mean: Nanos) -> Station {
        let random = RefCell::new(world.random(name));
        Station { world: world.clone(), servers: Semaphore::new(servers), random, mean }
    }

    async fn serve(&self) {
        let _server = self.servers.acquire(1).await;
        let time = self.random.borrow_mut().exponential(self.mean.0 as f64);
        self.world.sleep(Nanos(time as u64)).await;
    }
}

impl BlockTarget for Station {
    fn info(&self) -> TargetInfo {
        TargetInfo { sectors: SectorCount(1 << 36), block_sectors: 8, volatile_cache: false }
    }

    async fn read(&self, _: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        self.serve().await;
        (Ok(()), buf)
    }

    async fn write(&self, _: Lba, _: Buf, _: bool) -> Result<(), IoError> {
        self.serve().await;
        Ok(())
    }

    async fn flush(&self) -> Result<(), IoError> {
        Ok(())
    }

    async fn discard(&self, _: Lba, _: u64) -> Result<(), IoError> {
        Ok(())
    }

    async fn write_zeroes(&self, _: Lba, _: u64, _: bool, _: bool) -> Result<(), IoError> {
        Ok(())
    }
}
