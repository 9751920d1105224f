//! The bytes of a slot table: one block of whole 4 KiB per slot, little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 0–7 | `tier0st` and a zero byte |
//! | 8–11 | format version, 2 |
//! | 12–15 | pages of the slot, n |
//! | 16–23 | the pool's short identity (the first 8 bytes of its UUID) |
//! | 24–27 | set |
//! | 28–31 | zeros |
//! | 32–39 | slot |
//! | 40–47 | allocation |
//! | 48–55 | generation: counts the writes of this allocation's table, from 1 |
//! | 56–63 | CRC-64/NVME of bytes 0–55 and of byte 64 to the end of the block |
//! | 64– | n times 4: the CRC-32C of a page's 4096 bytes (1 where that is 0 or 2), or 0: the page reads as zeros, or 2: it reads as zeros, and its place still holds what it was |
//! | to the end | zeros |
//!
//! Everything that says whose table it is lies under the checksum, so neither a misdirected write nor a former
//! tenant's table is ever mistaken for it. The block is read from untrusted bytes: the count is checked before use.

use tier0_raid::checksum::{GIVEN_UP, NOT_STORED};
use tier0_raid::set::SetIndex;
use tier0_units::{SECTOR_BYTES, SlotRef};

/// The newest format this code knows, and the one it writes.
pub const TABLE_VERSION: u32 = 2;
/// Did not tell pages that were filled with zeros from pages that were given up.
const VERSION_WITHOUT_GIVEN_UP: u32 = 1;

const MAGIC: [u8; 8] = *b"tier0st\0";
const HEADER_BYTES: usize = 64;
const CHECKSUM_AT: usize = 56;
const ENTRY_BYTES: usize = 4;
/// Blocks are whole pages, so that drives of 4096-byte sectors take them.
const BLOCK_ALIGN_BYTES: usize = 4096;

/// A slot's table with everything that says whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableBlock {
    /// The pool's short identity.
    pub pool: u64,
    /// The set.
    pub set: SetIndex,
    /// The slot and its allocation.
    pub slot: SlotRef,
    /// Which write of it this is.
    pub generation: u64,
    /// One checksum per page, or what stands for a page that is not stored: [`NOT_STORED`], [`GIVEN_UP`].
    pub entries: Vec<u32>,
}

/// What a block's place holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoundTable {
    /// A valid table.
    Valid(TableBlock),
    /// A format this code does not know.
    TooNew(u32),
    /// The magic is there, the rest is damaged.
    Damaged,
    /// Something else.
    None,
}

/// Sectors of the block of a slot of `pages` pages.
pub const fn block_sectors(pages: u32) -> u64 {
    let bytes = HEADER_BYTES + pages as usize * ENTRY_BYTES;
    bytes.next_multiple_of(BLOCK_ALIGN_BYTES) as u64 / SECTOR_BYTES
}

/// Writes a table over the whole of `block`, which must have [`block_sectors`] sectors of 512 bytes.
pub fn encode(table: &TableBlock, block: &mut [u8]) {
    let pages = u32::try_from(table.entries.len()).expect("a slot has fewer than 2^32 pages");
    assert_eq!(block.len() as u64, block_sectors(pages) * SECTOR_BYTES, "the block has another size");
    block.fill(0);
    block[..8].copy_from_slice(&MAGIC);
    block[8..12].copy_from_slice(&TABLE_VERSION.to_le_bytes());
    block[12..16].copy_from_slice(&pages.to_le_bytes());
    block[16..24].copy_from_slice(&table.pool.to_le_bytes());
    block[24..28].copy_from_slice(&table.set.0.to_le_bytes());
    block[32..40].copy_from_slice(&table.slot.slot.to_le_bytes());
    block[40..48].copy_from_slice(&table.slot.allocation.to_le_bytes());
    block[48..56].copy_from_slice(&table.generation.to_le_bytes());
    let places = block[HEADER_BYTES..].as_chunks_mut::<ENTRY_BYTES>().0;
    for (place, entry) in places.iter_mut().zip(&table.entries) {
        *place = entry.to_le_bytes();
    }
    let checksum = checksum(block);
    block[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads a block from arbitrary bytes.
pub fn decode(block: &[u8]) -> FoundTable {
    let Some((header, rest)) = block.split_first_chunk::<HEADER_BYTES>() else { return FoundTable::None };
    if header[..8] != MAGIC {
        return FoundTable::None;
    }
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight bytes"));
    // A version is believed as little as anything else that its drive may have spoiled.
    if checksum(block) != long(CHECKSUM_AT) {
        return FoundTable::Damaged;
    }
    if word(8) > TABLE_VERSION {
        return FoundTable::TooNew(word(8));
    }
    let Some(entries) = rest.as_chunks::<ENTRY_BYTES>().0.get(..word(12) as usize) else {
        return FoundTable::Damaged;
    };
    FoundTable::Valid(TableBlock {
        pool: long(16),
        set: SetIndex(word(24)),
        slot: SlotRef { slot: long(32), allocation: long(40) },
        generation: long(48),
        entries: entries.iter().map(|entry| read_entry(u32::from_le_bytes(*entry), word(8))).collect(),
    })
}

/// What lies in the place of a page that an older build marked as zeros is not known.
fn read_entry(entry: u32, version: u32) -> u32 {
    match (entry, version) {
        (NOT_STORED, VERSION_WITHOUT_GIVEN_UP) => GIVEN_UP,
        (GIVEN_UP, VERSION_WITHOUT_GIVEN_UP) => 1,
        _ => entry,
    }
}

fn checksum(block: &[u8]) -> u64 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc64Nvme);
    digest.update(&block[..CHECKSUM_AT]);
    digest.update(&block[HEADER_BYTES..]);
    digest.finalize()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A block as each version writes it, never to be changed.
    const FROZEN: [&[u8]; 2] = [
        include_bytes!("../../tests/fixtures/slot-table-v1.bin"),
        include_bytes!("../../tests/fixtures/slot-table-v2.bin"),
    ];

    fn sample() -> TableBlock {
        TableBlock {
            pool: 0x0123_4567_89ab_cdef,
            set: SetIndex(7),
            slot: SlotRef { slot: 1_000_000, allocation: 42 },
            generation: 3,
            entries: (0..256).map(|page: u32| page.wrapping_mul(0x9e37_79b9)).collect(),
        }
    }

    fn encoded(table: &TableBlock) -> Vec<u8> {
        let mut block = vec![0xee; (block_sectors(table.entries.len() as u32) * SECTOR_BYTES) as usize];
        encode(table, &mut block);
        block
    }

    #[test]
    fn the_frozen_images_read_and_the_newest_is_what_is_written() {
        assert_eq!(decode(FROZEN[1]), FoundTable::Valid(sample()));
        assert_eq!(encoded(&sample()), FROZEN[1]);
        let mut old = sample();
        assert_eq!(old.entries[0], NOT_STORED);
        old.entries[0] = GIVEN_UP;
        assert_eq!(decode(FROZEN[0]), FoundTable::Valid(old));
        assert_eq!(read_entry(2, 1), 1, "a checksum, before it meant anything else");
    }

    #[test]
    fn blocks_are_whole_pages() {
        // 64 bytes and 4 per page: 1008 pages fit 4 KiB.
        assert_eq!([1, 256, 1008, 1009, 1024].map(block_sectors), [8, 8, 8, 16, 16]);
    }

    #[test]
    fn a_newer_format_is_told_from_damage() {
        let mut block = encoded(&sample());
        block[8] = 3;
        // One bit had no write of the pool brought to its place any more.
        assert_eq!(decode(&block), FoundTable::Damaged);
        let right = checksum(&block);
        block[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&right.to_le_bytes());
        assert_eq!(decode(&block), FoundTable::TooNew(3));
        assert_eq!(decode(&[0; 4096]), FoundTable::None);
        assert_eq!(decode(&block[..40]), FoundTable::None);
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_noticed(bit in 0_usize..4096 * 8) {
            let mut block = encoded(&sample());
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(matches!(decode(&block), FoundTable::Damaged | FoundTable::None));
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(mut block in proptest::collection::vec(any::<u8>(), 0..300), magic: bool) {
            if magic && block.len() >= 16 {
                block[..8].copy_from_slice(&MAGIC);
                block[8..12].copy_from_slice(&1_u32.to_le_bytes());
            }
            prop_assert!(!matches!(decode(&block), FoundTable::Valid(_)));
        }
    }
}
