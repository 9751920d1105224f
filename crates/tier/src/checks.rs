//! The check of a line: whether what was read is what was written, and belongs here.
//!
//! It is the exclusive or of a checksum of each valid page. Each of these is seeded with the line's number and with
//! which of the two pages it is. So a page can be added to a line without reading the other one, and data that lie at
//! the place of another line fail the check.

use crate::bytes::crc32c;

/// The part of a line's check that stands for one of its pages; `half` is 0 or 1. The bytes are those that the world
/// keeps of the page, maybe none.
pub(crate) fn page_check(x: u64, half: u32, bytes: &[u8]) -> u32 {
    let mut seed = [0; 9];
    seed[..8].copy_from_slice(&x.to_le_bytes());
    seed[8] = half as u8 + 1;
    crc32c(&[&seed, bytes])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_change_places_fail() {
        let (one, other) = ([1; 4096], [2; 4096]);
        let check = page_check(7, 0, &one) ^ page_check(7, 1, &other);
        assert_ne!(check, page_check(7, 0, &other) ^ page_check(7, 1, &one));
        assert_ne!(check, page_check(8, 0, &one) ^ page_check(8, 1, &other));
        assert_ne!(page_check(7, 0, &[]), page_check(7, 1, &[]), "without content the place is checked");
        assert_ne!(page_check(7, 0, &one) ^ page_check(7, 1, &one), 0, "equal pages do not cancel out");
    }
}
