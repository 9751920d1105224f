//! Integers and checksums of what is stored.

use crc_fast::{CrcAlgorithm, Digest};

/// The little-endian 32-bit number at byte `at`.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The little-endian 64-bit number at byte `at`.
pub(crate) fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Writes a number of 4 bytes.
pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Writes a number of 8 bytes.
pub(crate) fn put_long(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

/// CRC-64/NVME of the parts, one after the other.
pub(crate) fn crc64(parts: &[&[u8]]) -> u64 {
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize()
}

/// CRC-32C.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32
}
