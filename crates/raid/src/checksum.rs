//! The checksum of a page: CRC-32C (RFC 3720, appendix B.4), never 0.
//!
//! 0 is what slot tables store for a page that reads as zeros, so a checksum that happens to be 0 is stored as 1. That
//! makes 1 stand for two of the 2^32 checksums, which costs nothing worth counting.

use std::num::NonZeroU32;

/// The checksum of a page's bytes, however many the world keeps of it.
#[inline]
pub fn page_checksum(bytes: &[u8]) -> NonZeroU32 {
    NonZeroU32::new(crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32)
        .unwrap_or(NonZeroU32::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_crc_32c() {
        // RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and ascending.
        assert_eq!(page_checksum(&[0; 32]).get(), 0x8a91_36aa);
        assert_eq!(page_checksum(&[0xff; 32]).get(), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(page_checksum(&ascending).get(), 0x46dd_794e);
    }

    #[test]
    fn it_is_never_zero() {
        assert_eq!(page_checksum(&[]).get(), 1, "the CRC of nothing is 0");
    }
}
