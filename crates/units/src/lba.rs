//! Addresses and lengths in sectors of 512 bytes, the unit of every drive, volume and LUN.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use crate::ByteCount;

/// Bytes in a sector.
pub const SECTOR_BYTES: u64 = 512;

/// A sector address on a drive or a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// A number of sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectorCount(pub u64);

impl Lba {
    /// The byte offset of this sector.
    pub const fn byte_offset(self) -> u64 {
        self.0 * SECTOR_BYTES
    }
}

impl SectorCount {
    /// The most whose bytes 64 bits can tell: no drive has more.
    pub const MOST: SectorCount = SectorCount(u64::MAX / SECTOR_BYTES);

    /// How many whole sectors fit into `bytes`.
    pub const fn in_bytes(bytes: ByteCount) -> SectorCount {
        SectorCount(bytes.0 / SECTOR_BYTES)
    }

    /// The bytes these sectors hold.
    pub const fn bytes(self) -> ByteCount {
        ByteCount(self.0 * SECTOR_BYTES)
    }

    /// The bytes these sectors hold, or as many as 64 bits can tell: for counts that are not checked yet.
    pub const fn saturating_bytes(self) -> ByteCount {
        ByteCount(self.0.saturating_mul(SECTOR_BYTES))
    }
}

impl Add<SectorCount> for Lba {
    type Output = Lba;
    fn add(self, rhs: SectorCount) -> Lba {
        Lba(self.0 + rhs.0)
    }
}

impl AddAssign<SectorCount> for Lba {
    fn add_assign(&mut self, rhs: SectorCount) {
        self.0 += rhs.0;
    }
}

impl Sub<Lba> for Lba {
    type Output = SectorCount;
    fn sub(self, rhs: Lba) -> SectorCount {
        SectorCount(self.0 - rhs.0)
    }
}

impl Add for SectorCount {
    type Output = SectorCount;
    fn add(self, rhs: SectorCount) -> SectorCount {
        SectorCount(self.0 + rhs.0)
    }
}

impl Sub for SectorCount {
    type Output = SectorCount;
    fn sub(self, rhs: SectorCount) -> SectorCount {
        SectorCount(self.0 - rhs.0)
    }
}

impl fmt::Display for Lba {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for SectorCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
