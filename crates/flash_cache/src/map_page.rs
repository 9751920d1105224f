//! A map page: what lies at some neighbouring lines of a way.
//!
//! 4096 bytes: a head of 64 bytes, then 504 entries of 8 bytes. A page counts only if its checksum is right and it
//! belongs to this part, this format, this life of its way and this place. A way that was dropped and is there again
//! lives anew, so pages that an earlier life left behind never count.

use uuid::Uuid;

use crate::bytes::{crc64, long, put_long, put_word, word};
use crate::entry::Entry;

/// Entries of a page.
pub const ENTRIES: usize = (BYTES - HEAD_BYTES) / 8;
/// Bytes of a page.
pub const BYTES: usize = 4096;
/// Bytes in front of the entries.
pub const HEAD_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"tier0fm\0";
const CHECKSUM_AT: usize = 56;

/// Which page it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapHead {
    /// The part it belongs to.
    pub id: Uuid,
    /// The epoch under which the part was formatted.
    pub format: u64,
    /// The position in the log at which its way began to be.
    pub born: u64,
    /// Its way.
    pub way: u8,
    /// Its number in the way.
    pub index: u32,
}

/// Writes a page of 4096 bytes. Entries that it has room for and that are not given are empty.
pub fn encode(head: &MapHead, entries: impl Iterator<Item = Option<Entry>>, page: &mut [u8]) {
    page.fill(0);
    page[..8].copy_from_slice(&MAGIC);
    page[8..24].copy_from_slice(head.id.as_bytes());
    put_long(page, 24, head.format);
    put_long(page, 32, head.born);
    put_word(page, 40, u32::from(head.way));
    put_word(page, 44, head.index);
    for (place, entry) in page[HEAD_BYTES..].chunks_exact_mut(8).zip(entries) {
        if let Some(entry) = entry {
            put_word(place, 0, entry.word());
            put_word(place, 4, entry.check);
        }
    }
    let checksum = crc64(&[&page[..CHECKSUM_AT], &page[HEAD_BYTES..]]);
    put_long(page, CHECKSUM_AT, checksum);
}

/// Reads a page from arbitrary bytes: its head, and its entries. None where the bytes are no page; an entry that
/// nobody writes is empty.
pub fn decode(page: &[u8]) -> Option<(MapHead, impl Iterator<Item = Option<Entry>> + '_)> {
    if page.len() != BYTES || page[..8] != MAGIC || word(page, 40) > u32::from(u8::MAX) {
        return None;
    }
    if crc64(&[&page[..CHECKSUM_AT], &page[HEAD_BYTES..]]) != long(page, CHECKSUM_AT) {
        return None;
    }
    let head = MapHead {
        id: Uuid::from_bytes(page[8..24].try_into().expect("sixteen bytes")),
        format: long(page, 24),
        born: long(page, 32),
        way: word(page, 40) as u8,
        index: word(page, 44),
    };
    let entry = |place: &[u8]| Entry::of(word(place, 0), word(place, 4)).unwrap_or(None);
    Some((head, page[HEAD_BYTES..].chunks_exact(8).map(entry)))
}
