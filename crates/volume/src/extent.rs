//! Extents: how a request falls into them, and which shard owns which.

use tier0_units::Lba;

/// The part of a request that lies in one extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtentPiece {
    /// The extent's number in its volume.
    pub extent: u64,
    /// The first sector within the extent.
    pub offset: u64,
    /// The length in sectors.
    pub sectors: u64,
}

/// The pieces of a range, in order of address.
#[derive(Clone, Debug)]
pub struct Extents {
    at: u64,
    end: u64,
    extent_sectors: u64,
}

impl Extents {
    /// Cuts `sectors` sectors from `lba` on at the boundaries of extents.
    #[inline]
    pub fn new(lba: Lba, sectors: u64, extent_sectors: u64) -> Extents {
        Extents { at: lba.0, end: lba.0 + sectors, extent_sectors }
    }
}

impl Iterator for Extents {
    type Item = ExtentPiece;

    #[inline]
    fn next(&mut self) -> Option<ExtentPiece> {
        if self.at >= self.end {
            return None;
        }
        let (extent, offset) = (self.at / self.extent_sectors, self.at % self.extent_sectors);
        let sectors = (self.extent_sectors - offset).min(self.end - self.at);
        self.at += sectors;
        Some(ExtentPiece { extent, offset, sectors })
    }
}

/// The shard that owns an extent of a family of volumes: a hash, so that neighbours spread over all shards, and extents that
/// can have a slot together meet.
#[inline]
pub fn owner(family: u32, extent: u64, shards: usize) -> usize {
    if shards == 1 {
        return 0;
    }
    let key = extent ^ u64::from(family) << 40;
    // Fibonacci hashing; the high bits of the product are the mixed ones.
    let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    ((hash * shards as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_fall_into_extents() {
        let pieces: Vec<_> =
            Extents::new(Lba(2040), 20, 2048).map(|p| (p.extent, p.offset, p.sectors)).collect();
        assert_eq!(pieces, [(0, 2040, 8), (1, 0, 12)]);
        assert_eq!(Extents::new(Lba(7), 0, 2048).count(), 0);
    }

    #[test]
    fn owners_are_even() {
        for shards in [2, 3, 8] {
            let mut counts = vec![0u32; shards];
            for extent in 0..30_000 {
                counts[owner(3, extent, shards)] += 1;
            }
            let fair = 30_000 / shards as u32;
            assert!(counts.iter().all(|count| count.abs_diff(fair) < fair / 10), "{counts:?}");
        }
    }
}
