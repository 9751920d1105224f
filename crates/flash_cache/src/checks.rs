//! The check of a line: whether what was read is what was written, and belongs here.
//!
//! It is the exclusive or of a word for each valid page: the page's checksum, mixed with the line's number and with which
//! of the two pages it is. So a page can be added to a line without reading the other one, and data that lie at the place
//! of another line fail the check. The mixing is not linear. A checksum that only begins with the line's number is, and
//! then the numbers of the two pages cancel out.

use crate::bytes::crc32c;

/// The part of a line's check that stands for one of its pages; `half` is 0 or 1. The bytes are those that the world
/// keeps of the page, maybe none.
pub(crate) fn page_check(x: u64, half: u32, bytes: &[u8]) -> u32 {
    let place = (x.wrapping_mul(2).wrapping_add(u64::from(half))).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = (place ^ place >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed(crc32c(bytes) ^ (place >> 32) as u32)
}

/// The finalizer of MurmurHash3 (Appleby 2011): one to one, and not linear.
fn mixed(mut word: u32) -> u32 {
    word = (word ^ word >> 16).wrapping_mul(0x85eb_ca6b);
    word = (word ^ word >> 13).wrapping_mul(0xc2b2_ae35);
    word ^ word >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_change_places_fail() {
        let (one, other) = ([1; 4096], [2; 4096]);
        let check = page_check(7, 0, &one) ^ page_check(7, 1, &other);
        assert_ne!(check, page_check(7, 0, &other) ^ page_check(7, 1, &one));
        for x in (0..1000).filter(|x| *x != 7) {
            assert_ne!(check, page_check(x, 0, &one) ^ page_check(x, 1, &other), "another line, {x}");
        }
        assert_ne!(page_check(7, 0, &[]), page_check(7, 1, &[]), "without content the place is checked");
        assert_ne!(page_check(7, 0, &one) ^ page_check(7, 1, &one), 0, "equal pages do not cancel out");
    }
}
