//! Which drive is which: what an open drive turns out to be.

use tier0_drive::DriveHandle;
use tier0_units::Lba;

use crate::superblock::{self, Superblock};
use crate::{DATA_START_SECTORS, PoolError};

/// What a drive turned out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A member of a pool.
    Member(Box<Superblock>),
    /// Nothing at all: its metadata area is all zeros.
    Blank,
    /// Something that is not tier0's.
    Foreign,
}

/// Looks what `drive` is.
pub async fn identify(drive: &DriveHandle) -> Result<Found, PoolError> {
    if let Some(superblock) = superblock::read(drive).await? {
        return Ok(Found::Member(Box::new(superblock)));
    }
    Ok(if is_blank(drive).await? { Found::Blank } else { Found::Foreign })
}

/// Whether the place of the metadata is all zeros, so that nobody's data lies there.
pub async fn is_blank(drive: &DriveHandle) -> Result<bool, PoolError> {
    let sectors = DATA_START_SECTORS.min(drive.info().sectors.0);
    let step = 2048;
    let mut done = 0;
    while done < sectors {
        let count = step.min(sectors - done);
        let (result, buf) = drive.read(Lba(done), drive.world().buffer(count as u32)).await;
        result.map_err(|source| PoolError::Drive { drive: drive.info().name.clone(), source })?;
        if buf.as_slice().iter().any(|&byte| byte != 0) {
            return Ok(false);
        }
        done += count;
    }
    Ok(true)
}
