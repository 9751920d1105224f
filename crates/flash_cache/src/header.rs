//! The header of a device part: whose it is, under which epoch its content counts, and its ways.
//!
//! It lies in two places of 4096 bytes, which are written one after the other, so that a torn write leaves one.

use uuid::Uuid;

use crate::bytes::{crc64, long, put_long, put_word, word};

/// The version of the format of everything in a part.
pub const VERSION: u32 = 2;
/// Bytes of a place.
pub const BYTES: usize = 4096;
const MAGIC: [u8; 8] = *b"tier0fh\0";
const CHECKSUM_AT: usize = 120;
const BORN_AT: usize = 128;
/// The most ways of which a header can tell.
const WAYS_MAX: usize = 255;

/// What a header says.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// The part.
    pub id: Uuid,
    /// The shard it belongs to.
    pub shard: u32,
    /// How many shards there were.
    pub shards: u32,
    /// Pages of a slot, by which lines have their numbers.
    pub pages_per_slot: u32,
    /// The epoch under which the content counts.
    pub current: u64,
    /// The epoch that is to follow, under which it counts too.
    pub next: Option<u64>,
    /// The epoch under which the part was formatted.
    pub format: u64,
    /// Counts headers: of two, the one with more is newer.
    pub generation: u64,
    /// Sets of the part.
    pub sets: u32,
    /// Blocks of the ring.
    pub ring_blocks: u64,
    /// Ways that the part had when it was formatted.
    pub ways_at_format: u32,
    /// What was left of the budget of writes, bytes; records in the log are newer.
    pub budget: f64,
    /// For each way, the position in the log at which it began to be. Records before it do not concern it.
    pub born: Vec<u64>,
}

/// What a place holds.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderPlace {
    /// No header.
    None,
    /// A header of another version.
    OtherVersion(u32),
    /// A header.
    Valid(Header),
}

/// Writes a header into a place of 4096 bytes. Panics if it has more than 255 ways.
pub fn encode(header: &Header, place: &mut [u8]) {
    assert!(header.born.len() <= WAYS_MAX, "a part has at most 255 ways");
    place.fill(0);
    place[..8].copy_from_slice(&MAGIC);
    put_word(place, 8, VERSION);
    put_word(place, 12, header.born.len() as u32);
    place[16..32].copy_from_slice(header.id.as_bytes());
    put_word(place, 32, header.shard);
    put_word(place, 36, header.shards);
    put_word(place, 40, header.pages_per_slot);
    put_word(place, 44, header.sets);
    put_long(place, 48, header.current);
    put_long(place, 56, header.next.unwrap_or(0));
    put_word(place, 64, u32::from(header.next.is_some()));
    put_word(place, 68, header.ways_at_format);
    put_long(place, 72, header.format);
    put_long(place, 80, header.generation);
    put_long(place, 88, header.ring_blocks);
    put_long(place, 96, header.budget.to_bits());
    for (place, born) in place[BORN_AT..].chunks_exact_mut(8).zip(&header.born) {
        put_long(place, 0, *born);
    }
    let checksum = crc64(&[&place[..CHECKSUM_AT], &place[BORN_AT..]]);
    put_long(place, CHECKSUM_AT, checksum);
}

/// Reads a place from arbitrary bytes.
pub fn decode(place: &[u8]) -> HeaderPlace {
    if place.len() != BYTES || place[..8] != MAGIC {
        return HeaderPlace::None;
    }
    if crc64(&[&place[..CHECKSUM_AT], &place[BORN_AT..]]) != long(place, CHECKSUM_AT) {
        return HeaderPlace::None;
    }
    if word(place, 8) != VERSION {
        return HeaderPlace::OtherVersion(word(place, 8));
    }
    let ways = word(place, 12) as usize;
    let budget = f64::from_bits(long(place, 96));
    if ways > WAYS_MAX || word(place, 44) == 0 || word(place, 64) > 1 || !budget.is_finite() {
        return HeaderPlace::None;
    }
    HeaderPlace::Valid(Header {
        id: Uuid::from_bytes(place[16..32].try_into().expect("sixteen bytes")),
        shard: word(place, 32),
        shards: word(place, 36),
        pages_per_slot: word(place, 40),
        current: long(place, 48),
        next: (word(place, 64) == 1).then(|| long(place, 56)),
        format: long(place, 72),
        generation: long(place, 80),
        sets: word(place, 44),
        ring_blocks: long(place, 88),
        ways_at_format: word(place, 68),
        budget,
        born: place[BORN_AT..].chunks_exact(8).take(ways).map(|born| long(born, 0)).collect(),
    })
}

impl Header {
    /// Whether the content counts under this epoch.
    pub fn counts_under(&self, epoch: u64) -> bool {
        self.current == epoch || self.next == Some(epoch)
    }
}
