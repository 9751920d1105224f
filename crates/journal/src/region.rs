//! Where one copy of a ring lies, and the I/O on it in ring blocks.
//!
//! A ring block has 4096 bytes whatever the drive's block is: 512-byte drives take it, 4096-byte drives need it, flash
//! translates in 4 KiB units anyway, and copies on drives of different blocks stay alike. The first two blocks hold the
//! header, the others are the ring proper.

use tier0_block::write_zeros;
use tier0_drive::DriveHandle;
use tier0_units::Lba;
use tier0_world::{Buf, BufMut, IoError, PayloadWidth};

/// Sectors of a ring block.
pub(crate) const BLOCK_SECTORS: u32 = 8;
/// Bytes of a ring block, and of a page.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// The fewest blocks of the ring proper.
pub(crate) const BLOCKS_MIN: u64 = 8;
/// Places of the header, one block each, in front of the ring proper.
pub(crate) const HEADER_PLACES: u64 = 2;

/// Sectors of a region for a ring of this many blocks.
pub(crate) fn region_sectors(blocks: u64) -> u64 {
    (HEADER_PLACES + blocks) * u64::from(BLOCK_SECTORS)
}

/// The part of a drive that holds one copy of a ring.
#[derive(Clone)]
pub struct Region {
    /// The drive.
    pub drive: DriveHandle,
    /// First sector; a multiple of 8.
    pub first: Lba,
    /// Length; a multiple of 8, at least [`Region::SECTORS_MIN`].
    pub sectors: u64,
}

impl Region {
    /// The smallest region, sectors: two header blocks and eight blocks for frames.
    pub const SECTORS_MIN: u64 = (HEADER_PLACES + BLOCKS_MIN) * BLOCK_SECTORS as u64;

    /// Ring blocks in it, without the header; none if it cannot be used.
    pub(crate) fn blocks(&self) -> Option<u64> {
        let block = u64::from(BLOCK_SECTORS);
        let aligned = self.first.0.is_multiple_of(block) && self.sectors.is_multiple_of(block);
        let drive = self.drive.info();
        let inside = self.first.0.checked_add(self.sectors).is_some_and(|end| end <= drive.sectors.0);
        let fits = block.is_multiple_of(u64::from(drive.block_sectors));
        (aligned && inside && fits && self.sectors >= Self::SECTORS_MIN)
            .then(|| self.sectors / block - HEADER_PLACES)
    }

    /// Writes `buf` from ring block `at` on, around the end if need be; stable when it ends if `durable`.
    ///
    /// A drive without a volatile cache gets plain writes. On the others a forced write costs one command where write
    /// and flush cost two, and does not wait for other writes in the cache.
    pub(crate) async fn write(&self, blocks: u64, at: u64, buf: Buf, durable: bool) -> Result<(), IoError> {
        let durable = durable && self.drive.info().volatile_cache;
        let count = u64::from(buf.sectors() / BLOCK_SECTORS);
        let place = at % blocks;
        let front = count.min(blocks - place);
        if front == count {
            return self.drive.write(self.lba(place), buf, durable).await;
        }
        let sectors = front as u32 * BLOCK_SECTORS;
        let back = buf.slice(sectors, buf.sectors() - sectors);
        let first = self.drive.write(self.lba(place), buf.slice(0, sectors), durable);
        let second = self.drive.write(self.lba(0), back, durable);
        let (first, second) = futures_util::future::join(first, second).await;
        first.and(second)
    }

    /// Reads `count` ring blocks from `at` on; they must not reach around the end.
    pub(crate) async fn read(&self, blocks: u64, at: u64, count: u64) -> Result<Buf, IoError> {
        let place = at % blocks;
        debug_assert!(place + count <= blocks, "a read does not reach around the end");
        self.read_lba(self.lba(place), count as u32 * BLOCK_SECTORS).await
    }

    /// Reads the header's place 0 or 1.
    pub(crate) async fn read_header(&self, place: u64) -> Result<Buf, IoError> {
        self.read_lba(self.header_lba(place), BLOCK_SECTORS).await
    }

    /// Writes the header's place 0 or 1; stable when it ends.
    pub(crate) async fn write_header(&self, place: u64, buf: Buf) -> Result<(), IoError> {
        self.drive.write(self.header_lba(place), buf, self.drive.info().volatile_cache).await
    }

    /// Makes the headers and a ring of so many blocks zeros; stable when it ends. They are written and not discarded: the
    /// space stays allocated.
    pub(crate) async fn blank(&self, blocks: u64) -> Result<(), IoError> {
        write_zeros(&self.drive, PayloadWidth::REAL, self.first, region_sectors(blocks), false).await?;
        self.drive.flush().await
    }

    async fn read_lba(&self, lba: Lba, sectors: u32) -> Result<Buf, IoError> {
        let (result, buf) = self.drive.read(lba, BufMut::new(sectors, PayloadWidth::REAL)).await;
        result.map(|()| BufMut::freeze(buf))
    }

    fn header_lba(&self, place: u64) -> Lba {
        Lba(self.first.0 + place * u64::from(BLOCK_SECTORS))
    }

    fn lba(&self, place: u64) -> Lba {
        self.header_lba(HEADER_PLACES + place)
    }
}
