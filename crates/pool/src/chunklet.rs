//! Chunklets: the pieces of one size into which every drive is cut, and which of them are free.

use serde::{Deserialize, Serialize};
use std::ops::Range;

use tier0_units::{Lba, SECTOR_BYTES};

use crate::PoolError;

/// Where the first chunklet starts on the drives of pools that keep no metadata there: 16 MiB. Elsewhere the metadata
/// area says where ([`crate::MetadataArea`]).
pub const DATA_START_SECTORS: u64 = (16 << 20) / SECTOR_BYTES;

/// A chunklet: its drive's place in the pool and its number on that drive, counted from the drive's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChunkletAddress {
    /// The drive's place in the pool.
    pub drive: u32,
    /// The chunklet's number.
    pub index: u32,
}

/// The chunklets of a pool's drives. Each drive hands out its own in the order of address, so that what is
/// allocated first lies on a disk's outer, faster tracks.
#[derive(Clone, Debug)]
pub struct Chunklets {
    chunklet_sectors: u64,
    /// Per drive: the first chunklet nobody has, and how many may be handed out.
    drives: Vec<(u32, u32)>,
}

impl Chunklets {
    /// Cuts drives of these sizes (name, sectors); the last `spare` chunklets of each stay free for rebuilding.
    pub fn new<'a>(
        drives: impl IntoIterator<Item = (&'a str, u64)>,
        chunklet_sectors: u64,
        spare: u64,
    ) -> Result<Chunklets, PoolError> {
        let cut = |(name, sectors): (&str, u64)| {
            let needed = DATA_START_SECTORS + chunklet_sectors * (spare + 1);
            if sectors < needed {
                return Err(PoolError::TooSmall { drive: name.to_owned(), sectors, needed });
            }
            let count = (sectors - DATA_START_SECTORS) / chunklet_sectors - spare;
            Ok((0, u32::try_from(count).unwrap_or(u32::MAX)))
        };
        let drives = drives.into_iter().map(cut).collect::<Result<_, _>>()?;
        Ok(Chunklets { chunklet_sectors, drives })
    }

    /// Drives of which these chunklets may be handed out.
    pub fn of_ranges(chunklet_sectors: u64, ranges: impl IntoIterator<Item = Range<u32>>) -> Chunklets {
        let drives = ranges.into_iter().map(|range| (range.start, range.end)).collect();
        Chunklets { chunklet_sectors, drives }
    }

    /// Sectors of a chunklet.
    pub fn chunklet_sectors(&self) -> u64 {
        self.chunklet_sectors
    }

    /// Drives there are.
    pub fn drive_count(&self) -> usize {
        self.drives.len()
    }

    /// Chunklets of a drive that can still be handed out.
    pub fn free(&self, drive: usize) -> u32 {
        self.drives[drive].1 - self.drives[drive].0
    }

    /// Takes the next chunklet of a drive.
    pub fn take(&mut self, drive: usize) -> Option<ChunkletAddress> {
        let (next, count) = &mut self.drives[drive];
        let index = (*next < *count).then_some(*next)?;
        *next += 1;
        Some(ChunkletAddress { drive: drive as u32, index })
    }

    /// Where a chunklet starts on its drive.
    pub fn start(&self, chunklet: ChunkletAddress) -> Lba {
        Lba(DATA_START_SECTORS + u64::from(chunklet.index) * self.chunklet_sectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_drives_and_keeps_spares() {
        let size = DATA_START_SECTORS + 10 * 2048 + 5;
        let mut chunklets = Chunklets::new([("a", size), ("b", size + 2048)], 2048, 2).expect("large enough");
        assert_eq!((chunklets.free(0), chunklets.free(1)), (8, 9));
        let first = chunklets.take(1).expect("free");
        assert_eq!(chunklets.start(first), Lba(DATA_START_SECTORS));
        let second = chunklets.take(1).expect("free");
        assert_eq!(chunklets.start(second), Lba(DATA_START_SECTORS + 2048));
        assert!((0..6).all(|_| chunklets.take(1).is_some()));
        assert!(chunklets.take(1).is_some_and(|last| last.index == 8));
        assert_eq!(chunklets.take(1), None);
    }

    #[test]
    fn a_drive_too_small_is_named() {
        let error = Chunklets::new([("tiny", 4096)], 2048, 0).expect_err("refused").to_string();
        assert!(error.contains("\"tiny\"") && error.contains("larger drive"), "{error}");
    }
}
