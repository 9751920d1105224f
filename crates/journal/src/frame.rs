//! The frame: what one commit writes, some records with their pages.
//!
//! A frame begins at a block of the ring proper and takes whole blocks: its header section, then its pages, 4096 bytes
//! each. It may reach around the end of the ring. Integers are little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0–7 | `tier0rf` and a zero byte |
//! | 8–11 | format version, 1 |
//! | 12–15 | bytes of the header section in use, H |
//! | 16–31 | identity of the ring (UUID) |
//! | 32–39 | incarnation of the ring that wrote the frame |
//! | 40–47 | sequence number, one more than that of the frame before; the first is 0 |
//! | 48–55 | block where it begins, counted without end: the end of the frame before; the first is 0 |
//! | 56–63 | position of its first record |
//! | 64–71 | checksum (bytes 96–103) of the frame before; 0 for the first |
//! | 72–79 | tail: records before this position were no longer needed |
//! | 80–87 | sequence number of the first frame that was not known to be stable: all before it were, on every copy |
//! | 88–91 | records, R, at least 1 |
//! | 92–95 | pages, P |
//! | 96–103 | CRC-64/NVME of bytes 0–95 and 104–(H−1): the frame's checksum |
//! | 104– | per record: bytes of its header (4 bytes), its pages (4 bytes) |
//! | 104+8R– | per page: its CRC-32C (4 bytes) |
//! | 104+8R+4P–(H−1) | the record headers, one after the other |
//! | H– | zeros up to a multiple of 4096, then the pages in the order of the records |
//!
//! The checksum covers the pages' checksums and the previous frame's checksum, so it names the whole log up to here: a
//! frame that was left over from elsewhere does not fit into the chain, however valid it is by itself. Two frames are
//! never the same, because incarnation and sequence number differ. Every number but the checksums is below 2^62.

use tier0_world::{Buf, BufMut, PayloadWidth};
use uuid::Uuid;

use crate::bytes::{crc32c, crc64, long, word};
use crate::header::NUMBER_END;
use crate::region::{BLOCK_BYTES, BLOCK_SECTORS};
use crate::{Record, VERSION};

const MAGIC: [u8; 8] = *b"tier0rf\0";
pub(crate) const CHECKSUM_AT: usize = 96;
const FIXED_BYTES: usize = 104;
const RECORD_BYTES: usize = 8;
const PAGE_CHECKSUM_BYTES: usize = 4;

/// Where a frame stands in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Identity of the ring.
    pub ring: Uuid,
    /// Which opening of the ring wrote it.
    pub incarnation: u64,
    /// Its number.
    pub sequence: u64,
    /// Where it begins, counted without end.
    pub block: u64,
    /// Position of its first record.
    pub first: u64,
    /// Checksum of the frame before.
    pub previous: u64,
    /// Records before this position were no longer needed.
    pub tail: u64,
    /// Sequence number of the first frame that was not known to be stable.
    pub stable: u64,
}

/// A frame's header section, verified by its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where it stands.
    pub link: Link,
    /// Its checksum.
    pub checksum: u64,
    /// Its records: header, and how many pages.
    pub records: Vec<(Vec<u8>, u32)>,
    /// The checksums of its pages.
    pub page_checksums: Vec<u32>,
}

/// What a frame takes on the drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes of the header section in use.
    pub header_bytes: u64,
    /// Pages.
    pub pages: u64,
}

impl Extent {
    /// A frame without records.
    pub const EMPTY: Extent = Extent { header_bytes: FIXED_BYTES as u64, pages: 0 };

    /// With one record more.
    pub fn with(self, head_bytes: usize, pages: u64) -> Extent {
        let bytes = (RECORD_BYTES + head_bytes) as u64 + pages * PAGE_CHECKSUM_BYTES as u64;
        Extent { header_bytes: self.header_bytes + bytes, pages: self.pages + pages }
    }

    /// Blocks of the header section.
    pub fn header_blocks(self) -> u64 {
        self.header_bytes.div_ceil(BLOCK_BYTES as u64)
    }

    /// Blocks of the whole.
    pub fn blocks(self) -> u64 {
        self.header_blocks() + self.pages
    }
}

/// The checksum of a page without content, which a drive gives back as zeros.
const BLANK_CHECKSUM: u32 = 0x98f9_4189;

/// The buffer of a frame of which the header section and so many blocks of its pages have content.
pub(crate) fn buffer(extent: Extent, kept_blocks: u64) -> BufMut {
    let sectors = |blocks: u64| blocks as u32 * BLOCK_SECTORS;
    let kept = sectors(extent.header_blocks() + kept_blocks);
    BufMut::with_blank_rest(kept, sectors(extent.blocks()), PayloadWidth::REAL)
}

/// Writes a frame into its blocks, as far as it has content, and returns its checksum.
pub(crate) fn encode<'a>(
    link: &Link,
    extent: Extent,
    records: impl Iterator<Item = &'a Record> + Clone,
    blocks: &mut [u8],
) -> u64 {
    let (section, data) = blocks.split_at_mut(extent.header_blocks() as usize * BLOCK_BYTES);
    section[extent.header_bytes as usize..].fill(0);
    let section = &mut section[..extent.header_bytes as usize];
    let count = records.clone().count();
    let (fixed, variable) = section.split_at_mut(FIXED_BYTES);
    let (shapes, rest) = variable.split_at_mut(count * RECORD_BYTES);
    let (checksums, mut headers) = rest.split_at_mut(extent.pages as usize * PAGE_CHECKSUM_BYTES);
    for (record, shape) in records.clone().zip(shapes.chunks_exact_mut(RECORD_BYTES)) {
        shape[..4].copy_from_slice(&(record.header.len() as u32).to_le_bytes());
        shape[4..].copy_from_slice(&(record.page_count() as u32).to_le_bytes());
        let (header, behind) = std::mem::take(&mut headers).split_at_mut(record.header.len());
        header.copy_from_slice(&record.header);
        headers = behind;
    }
    let pages = records.flat_map(|record| record.pages.iter()).flat_map(|buf| buf.runs(BLOCK_SECTORS));
    let mut places = data.chunks_exact_mut(BLOCK_BYTES);
    for (page, checksum) in pages.zip(checksums.chunks_exact_mut(PAGE_CHECKSUM_BYTES)) {
        let mut value = BLANK_CHECKSUM;
        if !page.is_empty() {
            places.next().expect("a block for every page").copy_from_slice(page);
            value = crc32c(page);
        }
        checksum.copy_from_slice(&value.to_le_bytes());
    }
    encode_fixed(link, extent, count, fixed);
    let checksum = crc64(&[&section[..CHECKSUM_AT], &section[FIXED_BYTES..]]);
    section[CHECKSUM_AT..FIXED_BYTES].copy_from_slice(&checksum.to_le_bytes());
    checksum
}

fn encode_fixed(link: &Link, extent: Extent, records: usize, fixed: &mut [u8]) {
    fixed[..8].copy_from_slice(&MAGIC);
    fixed[8..12].copy_from_slice(&VERSION.to_le_bytes());
    fixed[12..16].copy_from_slice(&(extent.header_bytes as u32).to_le_bytes());
    fixed[16..32].copy_from_slice(link.ring.as_bytes());
    let longs =
        [link.incarnation, link.sequence, link.block, link.first, link.previous, link.tail, link.stable];
    for (place, value) in fixed[32..88].chunks_exact_mut(8).zip(longs) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    fixed[88..92].copy_from_slice(&(records as u32).to_le_bytes());
    fixed[92..96].copy_from_slice(&(extent.pages as u32).to_le_bytes());
}

/// What the first block of a frame says of place and size, before anything is verified; none if it is no frame of a
/// format known here.
pub fn peek(block: &[u8]) -> Option<(Link, Extent)> {
    let fixed = block.first_chunk::<FIXED_BYTES>()?;
    if fixed[..8] != MAGIC || word(fixed, 8) != VERSION {
        return None;
    }
    let link = Link {
        ring: Uuid::from_bytes(fixed[16..32].try_into().expect("sixteen bytes")),
        incarnation: long(fixed, 32),
        sequence: long(fixed, 40),
        block: long(fixed, 48),
        first: long(fixed, 56),
        previous: long(fixed, 64),
        tail: long(fixed, 72),
        stable: long(fixed, 80),
    };
    let extent = Extent { header_bytes: u64::from(word(fixed, 12)), pages: u64::from(word(fixed, 92)) };
    (extent.header_bytes >= FIXED_BYTES as u64).then_some((link, extent))
}

/// Reads a frame's header section from arbitrary bytes. Allocates no more than the section is long.
pub fn parse(section: &[u8]) -> Option<Frame> {
    let (link, extent) = peek(section)?;
    let section = section.get(..usize::try_from(extent.header_bytes).ok()?)?;
    let checksum = long(section, CHECKSUM_AT);
    if crc64(&[&section[..CHECKSUM_AT], &section[FIXED_BYTES..]]) != checksum {
        return None;
    }
    let shapes_bytes = usize::try_from(word(section, 88)).ok()?.checked_mul(RECORD_BYTES)?;
    let checksums_bytes = usize::try_from(extent.pages).ok()?.checked_mul(PAGE_CHECKSUM_BYTES)?;
    let (shapes, rest) = section[FIXED_BYTES..].split_at_checked(shapes_bytes)?;
    let (checksums, mut headers) = rest.split_at_checked(checksums_bytes)?;
    let mut records = Vec::with_capacity(shapes.len() / RECORD_BYTES);
    let mut pages = 0u64;
    for shape in shapes.chunks_exact(RECORD_BYTES) {
        let (header, behind) = headers.split_at_checked(word(shape, 0) as usize)?;
        headers = behind;
        pages += u64::from(word(shape, 4));
        records.push((header.to_vec(), word(shape, 4)));
    }
    if records.is_empty() || !headers.is_empty() || pages != extent.pages {
        return None;
    }
    let numbers = [link.incarnation, link.sequence, link.block, link.first, link.tail, link.stable];
    if numbers.iter().any(|number| *number >= NUMBER_END) {
        return None;
    }
    let page_checksums = checksums.chunks_exact(PAGE_CHECKSUM_BYTES).map(|bytes| word(bytes, 0)).collect();
    Some(Frame { link, checksum, records, page_checksums })
}

impl Frame {
    /// What it takes on the drive.
    pub fn extent(&self) -> Extent {
        self.records
            .iter()
            .fold(Extent::EMPTY, |extent, (header, pages)| extent.with(header.len(), u64::from(*pages)))
    }

    /// The position after its last record.
    pub fn end(&self) -> u64 {
        self.link.first + self.records.len() as u64
    }
}

/// Whether a page is the one with this checksum.
pub(crate) fn is_page(page: &Buf, checksum: u32) -> bool {
    page.sectors() == BLOCK_SECTORS && crc32c(page.as_slice()) == checksum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_content_has_the_checksum_of_zeros() {
        assert_eq!(crc32c(&[0; BLOCK_BYTES]), BLANK_CHECKSUM);
    }
}
