//! Whether data lies on a drive.

use tier0_drive::DriveHandle;
use tier0_units::Lba;
use tier0_world::{BufMut, PayloadWidth};

use crate::PoolError;

/// What is looked at: 16 MiB, where file systems, partition tables and other arrays have something.
const FRONT_SECTORS: u64 = 32_768;
/// Sectors of one I/O: 1 MiB.
const STEP_SECTORS: u64 = 2048;

/// Whether the front of a drive is all zeros, so that no data lies there.
pub async fn is_blank(drive: &DriveHandle) -> Result<bool, PoolError> {
    let sectors = FRONT_SECTORS.min(drive.info().sectors.0);
    let mut done = 0;
    while done < sectors {
        let count = STEP_SECTORS.min(sectors - done);
        let (result, buf) = drive.read(Lba(done), BufMut::new(count as u32, PayloadWidth::REAL)).await;
        result.map_err(|source| PoolError::Drive { drive: drive.info().name.clone(), source })?;
        if buf.as_slice().iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        done += count;
    }
    Ok(true)
}
