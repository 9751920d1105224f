//! The checksum of a page: CRC-32C (RFC 3720, appendix B.4), never 0 or 2.
//!
//! 0 and 2 are what slot tables store for pages that read as zeros, so a checksum that happens to be one of them is
//! stored as 1. That makes 1 stand for three of the 2^32 checksums, which costs nothing worth counting.

/// Instead of a checksum: nothing is stored of the page.
pub const NOT_STORED: u32 = 0;
/// Instead of a checksum: nothing is stored of the page any more, and the drives hold what it was.
pub const GIVEN_UP: u32 = 2;
/// Instead of checksums that would mean something else, and of those that are no longer known: of all contents of a
/// page one in 1.4 thousand million passes it, as many as pass a checksum of 32 bits by chance.
pub const STAND_IN: u32 = 1;

/// The checksum of a page's bytes, however many the world keeps of it.
#[inline]
pub fn page_checksum(bytes: &[u8]) -> u32 {
    match crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32 {
        NOT_STORED | GIVEN_UP => STAND_IN,
        checksum => checksum,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_crc_32c() {
        // RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and ascending.
        assert_eq!(page_checksum(&[0; 32]), 0x8a91_36aa);
        assert_eq!(page_checksum(&[0xff; 32]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(page_checksum(&ascending), 0x46dd_794e);
    }

    #[test]
    fn it_is_nothing_that_means_something_else() {
        assert_eq!(page_checksum(&[]), 1, "the CRC of nothing is 0");
        assert_eq!(page_checksum(&[0x49, 0x76, 0x38, 0x90]), 1, "the CRC of these is 2");
    }
}
