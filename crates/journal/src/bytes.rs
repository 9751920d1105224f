//! Integers and checksums of the on-disk format.

use crc_fast::CrcAlgorithm;

/// The little-endian 32-bit number at byte `at`.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The little-endian 64-bit number at byte `at`.
pub(crate) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// CRC-64/NVME (NVM Express NVM Command Set Specification 1.0, section 5.2.1.3.4) of the parts, one after the other.
pub(crate) fn crc64(parts: &[&[u8]]) -> u64 {
    let mut digest = crc_fast::Digest::new(CrcAlgorithm::Crc64Nvme);
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

/// CRC-32C (RFC 3385; the polynomial of iSCSI) of a page.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_the_standards() {
        // The check values of the CRC catalogue: the checksum of "123456789".
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc64(&[b"1234", b"56789"]), 0xae8b_1486_0a79_9888);
    }
}
