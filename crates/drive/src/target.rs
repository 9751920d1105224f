//! A drive as a block target.

use tier0_block::{BlockTarget, TargetInfo, write_zeros};
use tier0_units::Lba;
use tier0_world::{Buf, BufMut, IoError};

use crate::DriveHandle;

impl BlockTarget for DriveHandle {
    fn info(&self) -> TargetInfo {
        let info = (**self).info();
        TargetInfo {
            sectors: info.sectors,
            block_sectors: info.block_sectors,
            volatile_cache: info.volatile_cache,
        }
    }

    async fn read(&self, lba: Lba, buf: BufMut) -> (Result<(), IoError>, BufMut) {
        DriveHandle::read(self, lba, buf).await
    }

    async fn write(&self, lba: Lba, buf: Buf, durable: bool) -> Result<(), IoError> {
        DriveHandle::write(self, lba, buf, durable).await
    }

    async fn flush(&self) -> Result<(), IoError> {
        DriveHandle::flush(self).await
    }

    async fn discard(&self, lba: Lba, sectors: u64) -> Result<(), IoError> {
        DriveHandle::discard(self, lba, sectors).await
    }

    async fn write_zeroes(
        &self,
        lba: Lba,
        sectors: u64,
        may_discard: bool,
        durable: bool,
    ) -> Result<(), IoError> {
        (**self).info().check(lba, sectors)?;
        if may_discard && (**self).info().discard_zeroes && !durable {
            return DriveHandle::discard(self, lba, sectors).await;
        }
        write_zeros(self, self.world().width(), lba, sectors, durable).await
    }
}
