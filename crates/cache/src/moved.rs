//! The mark that extents have moved to another ring, byte by byte.
//!
//! When the number of shards changes, an extent's new owner logs its pages anew in the owner's ring. The old records stay
//! where they are until everything before them is released, which may be long after the new ones have been destaged,
//! overwritten and released themselves. The mark says that whatever its ring has of these extents before it is void.
//! Integers are little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0–3 | `mov1` |
//! | 4–7 | extents, n, at least 1 |
//! | 8 each, n times | volume (4), the extent's number in it (4) |

use std::collections::BTreeSet;

use tier0_units::ExtentId;

use crate::HeadError;

const MAGIC: [u8; 4] = *b"mov1";
const FIXED_BYTES: usize = 8;
const EXTENT_BYTES: usize = 8;

/// Whether a head claims to be that of such a mark.
pub(crate) fn is_moved(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

/// The head of the mark for some extents, at least one.
pub(crate) fn encode(extents: &BTreeSet<ExtentId>) -> Vec<u8> {
    debug_assert!(!extents.is_empty(), "a mark names an extent");
    let mut bytes = Vec::with_capacity(FIXED_BYTES + EXTENT_BYTES * extents.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&(extents.len() as u32).to_le_bytes());
    for extent in extents {
        bytes.extend_from_slice(&extent.volume.to_le_bytes());
        bytes.extend_from_slice(&extent.index.to_le_bytes());
    }
    bytes
}

/// The extents that a mark names, from arbitrary bytes.
///
/// # Errors
/// [`HeadError`] when they are no mark.
pub(crate) fn decode(head: &[u8]) -> Result<BTreeSet<ExtentId>, HeadError> {
    let rest = head.strip_prefix(&MAGIC).ok_or(HeadError::Magic)?;
    let short = HeadError::Length { found: head.len(), expected: (FIXED_BYTES + EXTENT_BYTES) as u64 };
    let (count, rest) = rest.split_first_chunk::<4>().ok_or(short)?;
    let expected = u64::from(u32::from_le_bytes(*count)) * EXTENT_BYTES as u64;
    if rest.is_empty() || rest.len() as u64 != expected {
        let expected = expected.max(EXTENT_BYTES as u64) + FIXED_BYTES as u64;
        return Err(HeadError::Length { found: head.len(), expected });
    }
    Ok(rest.as_chunks::<EXTENT_BYTES>().0.iter().map(decode_extent).collect())
}

fn decode_extent(bytes: &[u8; EXTENT_BYTES]) -> ExtentId {
    let [a, b, c, d, e, f, g, h] = *bytes;
    ExtentId { volume: u32::from_le_bytes([a, b, c, d]), index: u32::from_le_bytes([e, f, g, h]) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bytes_are_those_of_version_1() {
        let extents = [(7, 1), (7, 300)].map(|(volume, index)| ExtentId { volume, index }).into();
        let expected =
            [&b"mov1"[..], &[2, 0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 44, 1, 0, 0]].concat();
        assert_eq!(encode(&extents), expected);
        assert_eq!(decode(&expected), Ok(extents));
        assert_eq!(decode(&expected[..20]), Err(HeadError::Length { found: 20, expected: 24 }));
        assert_eq!(decode(b"mov1\0\0\0\0"), Err(HeadError::Length { found: 8, expected: 16 }));
        assert_eq!(decode(b"wbk1"), Err(HeadError::Magic));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..60), count in 0_u32..8, magic: bool) {
            if magic && bytes.len() >= FIXED_BYTES {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[4..8].copy_from_slice(&count.to_le_bytes());
            }
            if let Ok(extents) = decode(&bytes) {
                prop_assert!(encode(&extents).len() <= bytes.len());
            }
        }
    }
}
