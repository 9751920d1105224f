//! The ring's header: which ring this is, and where its log begins.
//!
//! Each copy has it in blocks 0 and 1 of its region. An update writes block 0 on all copies, then block 1; nothing
//! relies on it before both are stable on all copies that are left, so any one of them may be torn or rot. The valid
//! header with the highest generation on any copy counts. Integers are little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0–7 | `tier0rh` and a zero byte |
//! | 8–11 | format version, 1; a newer one is refused before anything else is looked at |
//! | 12–15 | bytes per block, 4096 |
//! | 16–31 | identity of the ring (UUID) |
//! | 32–39 | generation of this header |
//! | 40–47 | incarnation: one more at each opening of the ring |
//! | 48–55 | blocks of the ring proper, which begins in block 2 of the region |
//! | 56–63 | block of the first frame that is still needed; the place is this number modulo the blocks |
//! | 64–71 | sequence number of that frame, or of the next one if none is needed |
//! | 72–79 | checksum of the frame before it |
//! | 80–87 | position of the first record that is still needed |
//! | 88–95 | sequence number of the first frame that was not known to be stable |
//! | 96–103 | fence: frames with this sequence number or a higher one count only with an incarnation of at least bytes 40–47 |
//! | 104–111 | CRC-64/NVME of bytes 0–103 |
//! | 112–4095 | zeros, ignored by readers |
//!
//! Every number but the checksums is below 2^62, so that no reader's arithmetic can overflow; there are 8 to
//! 2^50 blocks.

use uuid::Uuid;

use crate::bytes::{crc64, long, word};
use crate::region::{BLOCK_BYTES, BLOCKS_MIN};

/// The newest format this code knows, and the one it writes.
pub const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"tier0rh\0";
/// Numbers are below this: at a million frames of 1 MiB per second, a ring reaches it after 500 years.
pub(crate) const NUMBER_END: u64 = 1 << 62;
/// Blocks of the largest ring, 4 EiB.
const BLOCKS_MAX: u64 = 1 << 50;
const CHECKSUM_AT: usize = 104;
const HEADER_BYTES: usize = 112;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Identity of the ring.
    pub ring: Uuid,
    /// How often the header was written.
    pub generation: u64,
    /// How often the ring was opened.
    pub incarnation: u64,
    /// Blocks of the ring proper.
    pub blocks: u64,
    /// Where the log begins.
    pub tail: Tail,
    /// Sequence number of the first frame that was not known to be stable.
    pub stable: u64,
    /// Frames from this sequence number on need this incarnation.
    pub fence: u64,
}

/// The place where a log begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Block of the first frame, counted without end.
    pub block: u64,
    /// Its sequence number.
    pub sequence: u64,
    /// Checksum of the frame before it.
    pub previous: u64,
    /// Position of the first record that is needed.
    pub position: u64,
}

/// What a header's place holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderPlace {
    /// A valid header.
    Valid(Header),
    /// A format this code does not know.
    TooNew(u32),
    /// Something else, or a damaged header.
    None,
}

/// Writes a header into the 4096 bytes of its block.
pub fn encode(header: &Header, block: &mut [u8]) {
    block.fill(0);
    block[..8].copy_from_slice(&MAGIC);
    block[8..12].copy_from_slice(&VERSION.to_le_bytes());
    block[12..16].copy_from_slice(&(BLOCK_BYTES as u32).to_le_bytes());
    block[16..32].copy_from_slice(header.ring.as_bytes());
    let tail = &header.tail;
    let longs = [
        header.generation,
        header.incarnation,
        header.blocks,
        tail.block,
        tail.sequence,
        tail.previous,
        tail.position,
        header.stable,
        header.fence,
    ];
    for (place, value) in block[32..CHECKSUM_AT].chunks_exact_mut(8).zip(longs) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    let checksum = crc64(&[&block[..CHECKSUM_AT]]);
    block[CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads a header's place from arbitrary bytes.
pub fn decode(bytes: &[u8]) -> HeaderPlace {
    let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else { return HeaderPlace::None };
    if bytes[..8] != MAGIC {
        return HeaderPlace::None;
    }
    if word(bytes, 8) > VERSION {
        return HeaderPlace::TooNew(word(bytes, 8));
    }
    let sound = word(bytes, 8) == VERSION
        && word(bytes, 12) as usize == BLOCK_BYTES
        && crc64(&[&bytes[..CHECKSUM_AT]]) == long(bytes, CHECKSUM_AT);
    if !sound {
        return HeaderPlace::None;
    }
    let header = Header {
        ring: Uuid::from_bytes(bytes[16..32].try_into().expect("sixteen bytes")),
        generation: long(bytes, 32),
        incarnation: long(bytes, 40),
        blocks: long(bytes, 48),
        tail: Tail {
            block: long(bytes, 56),
            sequence: long(bytes, 64),
            previous: long(bytes, 72),
            position: long(bytes, 80),
        },
        stable: long(bytes, 88),
        fence: long(bytes, 96),
    };
    if header.is_sane() { HeaderPlace::Valid(header) } else { HeaderPlace::None }
}

impl Header {
    fn is_sane(&self) -> bool {
        let tail = &self.tail;
        let numbers = [
            self.generation,
            self.incarnation,
            tail.block,
            tail.sequence,
            tail.position,
            self.stable,
            self.fence,
        ];
        numbers.iter().all(|number| *number < NUMBER_END) && (BLOCKS_MIN..=BLOCKS_MAX).contains(&self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        let tail = Tail { block: 100, sequence: 20, previous: 0x1234_5678_9abc_def0, position: 77 };
        Header {
            ring: Uuid::from_u128(5),
            generation: 6,
            incarnation: 2,
            blocks: 64,
            tail,
            stable: 21,
            fence: 3,
        }
    }

    #[test]
    fn comes_back_as_written() {
        let mut block = [7; BLOCK_BYTES];
        encode(&header(), &mut block);
        assert_eq!(decode(&block), HeaderPlace::Valid(header()));
    }

    #[test]
    fn a_newer_format_is_recognised_even_if_all_else_changed() {
        let mut block = [7; BLOCK_BYTES];
        encode(&header(), &mut block);
        block[8] = 2;
        block[20..].fill(9);
        assert_eq!(decode(&block), HeaderPlace::TooNew(2));
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_damage(bit in 0usize..8 * HEADER_BYTES) {
            let mut block = [0; BLOCK_BYTES];
            encode(&header(), &mut block);
            block[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!matches!(decode(&block), HeaderPlace::Valid(_)));
        }

        #[test]
        fn arbitrary_bytes_do_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), magic: bool) {
            if magic && bytes.len() >= 16 {
                bytes[..8].copy_from_slice(&MAGIC);
                bytes[8..12].copy_from_slice(&1u32.to_le_bytes());
                bytes[12..16].copy_from_slice(&4096u32.to_le_bytes());
            }
            prop_assert!(!matches!(decode(&bytes), HeaderPlace::Valid(_)));
        }
    }
}
