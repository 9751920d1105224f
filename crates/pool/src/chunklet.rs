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
    /// Per drive: what has no owner and may be handed out, in runs, the lowest last.
    drives: Vec<Vec<Range<u32>>>,
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
            Ok(one_run(0..u32::try_from(count).unwrap_or(u32::MAX)))
        };
        let drives = drives.into_iter().map(cut).collect::<Result<_, _>>()?;
        Ok(Chunklets { chunklet_sectors, drives })
    }

    /// Drives of which these chunklets may be handed out.
    pub fn of_ranges(chunklet_sectors: u64, ranges: impl IntoIterator<Item = Range<u32>>) -> Chunklets {
        Chunklets { chunklet_sectors, drives: ranges.into_iter().map(one_run).collect() }
    }

    /// Drives of which these chunklets may be handed out: runs of each, ascending.
    pub fn of_runs(chunklet_sectors: u64, drives: impl IntoIterator<Item = Vec<Range<u32>>>) -> Chunklets {
        let descending = |mut runs: Vec<Range<u32>>| {
            runs.retain(|run| !run.is_empty());
            runs.reverse();
            runs
        };
        Chunklets { chunklet_sectors, drives: drives.into_iter().map(descending).collect() }
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
        self.drives[drive].iter().map(|run| run.end - run.start).sum()
    }

    /// Takes the next chunklet of a drive.
    pub fn take(&mut self, drive: usize) -> Option<ChunkletAddress> {
        let runs = &mut self.drives[drive];
        let run = runs.last_mut()?;
        let index = run.next()?;
        if run.start == run.end {
            runs.pop();
        }
        Some(ChunkletAddress { drive: drive as u32, index })
    }

    /// Where a chunklet starts on its drive.
    pub fn start(&self, chunklet: ChunkletAddress) -> Lba {
        Lba(DATA_START_SECTORS + u64::from(chunklet.index) * self.chunklet_sectors)
    }
}

/// A list of one run, or of none where it is empty.
fn one_run(run: Range<u32>) -> Vec<Range<u32>> {
    if run.is_empty() { Vec::new() } else { vec![run] }
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
    fn holes_are_handed_out_in_order() {
        let mut chunklets = Chunklets::of_runs(2048, [vec![3..5, 9..9, 20..21], vec![]]);
        assert_eq!((chunklets.free(0), chunklets.free(1)), (3, 0));
        let mut taken = std::iter::from_fn(|| chunklets.take(0)).map(|chunklet| chunklet.index);
        assert_eq!(
            [taken.next(), taken.next(), taken.next(), taken.next()],
            [Some(3), Some(4), Some(20), None]
        );
        assert_eq!(chunklets.take(1), None);
    }

    #[test]
    fn a_drive_too_small_is_named() {
        let error = Chunklets::new([("tiny", 4096)], 2048, 0).expect_err("refused").to_string();
        assert!(error.contains("\"tiny\"") && error.contains("larger drive"), "{error}");
    }
}
