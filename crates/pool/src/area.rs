//! The metadata area of every drive: superblock, journal ring, two checkpoint slots, and where the data starts.
//!
//! Its size is fixed when a pool is created, from the largest map the pool can ever have, and is written in the
//! superblock. A state that might not fit is refused before it is accepted, so that a checkpoint never fails for want
//! of room.

use serde::{Deserialize, Serialize};
use tier0_units::{Lba, PAGE_SECTORS, SECTOR_BYTES, SectorCount};

use crate::checkpoint;
use crate::metadata::superblock;

/// Data starts at a multiple of this, 64 KiB: any common physical block and RAID stripe unit divides it, and on the
/// smallest drives little is lost.
const ALIGNMENT_BYTES: u64 = 64 << 10;
/// Checkpoint bytes kept for members, sets, volumes and the log of a pool that grows, at least; and a page of the map that
/// is not full.
const FIXED_BYTES: u64 = 28 << 10;
/// Checkpoint bytes kept for each slot: 16.3 for its place in a page of the map and what the root says of that, a byte for
/// the bits of up to eight columns of every set that are being rebuilt, and room for what slots will have more owners than
/// one.
const SLOT_BYTES: u64 = 29;
/// Room for pools that grow to this multiple of their first size.
const GROWTH: u64 = 4;
/// The smallest journal: 64 frames of one record, each a block of 4 KiB.
const JOURNAL_BYTES_MIN: u64 = 256 << 10;
/// The largest journal. It is half filled between two checkpoints: a transaction of one extent takes a block, so this
/// is 8,192 of them at least.
const JOURNAL_BYTES_MAX: u64 = 64 << 20;

/// The places of a pool's metadata, the same on all its drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetadataArea {
    /// Sectors of the journal's ring.
    pub journal_sectors: u64,
    /// Sectors of each of the two checkpoint slots.
    pub checkpoint_sectors: u64,
    /// Where the first chunklet starts.
    pub data_start_sectors: u64,
}

impl MetadataArea {
    /// The area of a new pool on drives of these sizes (sectors), with room for the pool to grow fourfold.
    pub fn plan(
        drive_sectors: impl IntoIterator<Item = u64>,
        chunklet_sectors: u64,
        extent_sectors: u64,
    ) -> MetadataArea {
        let (drives, sectors) = drive_sectors
            .into_iter()
            .fold((0u64, 0u64), |(drives, sum), sectors| (drives + 1, sum.saturating_add(sectors)));
        // Redundancy leaves fewer slots than this.
        let slots = (sectors / extent_sectors.max(1)).min(u64::from(u32::MAX) / GROWTH) * GROWTH;
        let chunklets = (sectors / chunklet_sectors.max(1)).min(u64::from(u32::MAX) / GROWTH) * GROWTH;
        let per_drive = checkpoint::MEMBER_BYTES_MAX;
        let body = FIXED_BYTES
            + drives * GROWTH * per_drive
            + chunklets * checkpoint::CHUNKLET_BYTES
            + slots * SLOT_BYTES;
        let checkpoint_bytes = checkpoint::slot_bytes(body).next_multiple_of(4096);
        let journal_bytes =
            (checkpoint_bytes / 4).clamp(JOURNAL_BYTES_MIN, JOURNAL_BYTES_MAX).next_multiple_of(4096);
        let front = superblock::END_SECTORS * SECTOR_BYTES;
        let data_start = (front + journal_bytes + 2 * checkpoint_bytes).next_multiple_of(ALIGNMENT_BYTES);
        MetadataArea {
            journal_sectors: journal_bytes / SECTOR_BYTES,
            checkpoint_sectors: checkpoint_bytes / SECTOR_BYTES,
            data_start_sectors: data_start / SECTOR_BYTES,
        }
    }

    /// Where the journal's ring starts.
    pub fn journal_start(&self) -> Lba {
        Lba(superblock::END_SECTORS)
    }

    /// Where checkpoint slot 0 or 1 starts.
    pub fn checkpoint_start(&self, slot: u64) -> Lba {
        Lba(superblock::END_SECTORS + self.journal_sectors + slot * self.checkpoint_sectors)
    }

    /// Where a page of the map lies on side 0 or 1: in the slot of that number, from its end on.
    pub(crate) fn page_start(&self, side: u64, page: u64) -> Lba {
        Lba(self.checkpoint_start(side + 1).0 - (page + 1) * PAGE_SECTORS)
    }

    /// The most bytes that a checkpoint's body can have in front of so many pages.
    pub(crate) fn body_bytes_max(&self, pages: u64) -> u64 {
        let taken = pages.saturating_mul(checkpoint::PAGE_BYTES as u64);
        checkpoint::body_bytes_max((self.checkpoint_sectors * SECTOR_BYTES).saturating_sub(taken))
    }

    /// Whether the places are where they can be, as far as the area itself tells.
    pub(crate) fn is_sound(&self) -> bool {
        let whole = |sectors: u64| sectors.is_multiple_of(8);
        let slots = self.checkpoint_sectors.checked_mul(2);
        let end = slots
            .and_then(|slots| superblock::END_SECTORS.checked_add(self.journal_sectors)?.checked_add(slots));
        // First that everything lies before the data, and that in turn within what byte addresses reach: all arithmetic
        // on the parts is safe then.
        end.is_some_and(|end| end <= self.data_start_sectors)
            && self.data_start_sectors <= SectorCount::MOST.0
            && whole(self.journal_sectors)
            && whole(self.checkpoint_sectors)
            && whole(self.data_start_sectors)
            && self.journal_sectors * SECTOR_BYTES >= JOURNAL_BYTES_MIN
            && self.checkpoint_sectors > 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_drives_keep_most_of_their_space() {
        let small = MetadataArea::plan([65_536; 6], 2048, 2048);
        assert!(small.is_sound());
        let bytes = small.data_start_sectors * SECTOR_BYTES;
        assert!(bytes <= 1 << 20, "{bytes} bytes of 32 MiB");
    }

    #[test]
    fn the_area_grows_with_the_pool() {
        // 24 drives of 900 GB: 20.6 million extents of 1 MiB, times 4 for growth, of 29 bytes each.
        let sectors = 900_000_000_000 / SECTOR_BYTES;
        let large = MetadataArea::plan([sectors; 24], 1 << 21, 2048);
        assert!(large.is_sound());
        assert!(large.body_bytes_max(0) > 24 * sectors / 2048 * 4 * 29);
        assert!(large.data_start_sectors < sectors / 100, "less than one percent");
    }
}
