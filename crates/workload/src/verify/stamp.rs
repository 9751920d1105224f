//! What a written sector looks like.
//!
//! | bytes | content |
//! |---|---|
//! | 0..8 | address of the sector, little endian like all that follows |
//! | 8..12 | version, from 1 |
//! | 12..16 | check of address, version and seed |
//! | 16..24 | seed |
//! | 24..32 | `tier0stp` |
//! | 32..512 | fill derived from address, version and seed |
//!
//! A world that keeps fewer bytes per sector keeps the first ones: address, version and check fit into 16.

/// The fewest bytes per sector that can be verified.
pub const STAMP_BYTES_MIN: usize = 16;

const MAGIC: [u8; 8] = *b"tier0stp";

/// Writes the stamp into a sector, whole (512 bytes) or as narrow as [`STAMP_BYTES_MIN`].
pub fn stamp(sector: &mut [u8], lba: u64, version: u32, seed: u64) {
    assert!(sector.len() >= STAMP_BYTES_MIN, "a stamp takes {STAMP_BYTES_MIN} bytes, not {}", sector.len());
    let key = key(lba, version, seed);
    let mut words = sector.chunks_mut(8);
    let head = [lba, u64::from(version) | ((key >> 32) << 32), seed, u64::from_le_bytes(MAGIC)];
    for (word, value) in (&mut words).take(head.len()).zip(head) {
        word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
    }
    for (index, word) in words.enumerate() {
        word.copy_from_slice(&fill(key, index as u64).to_le_bytes()[..word.len()]);
    }
}

/// What a sector says of itself: address, version, and the seed where the sector is wide enough to hold it.
pub(super) fn claim(sector: &[u8]) -> (u64, u32, Option<u64>) {
    let word = |index: usize| {
        let bytes = sector.get(index * 8..index * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().expect("eight bytes")))
    };
    (word(0).unwrap_or(0), word(1).unwrap_or(0) as u32, word(2))
}

/// A hash of what the sector is. The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) after each
/// part.
fn key(lba: u64, version: u32, seed: u64) -> u64 {
    let mix = |value: u64| {
        let z = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    mix(mix(mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)) ^ lba).wrapping_add(u64::from(version)))
}

/// The word at `index` of the fill: one multiplication each, since every byte of every block is computed twice.
#[inline]
fn fill(key: u64, index: u64) -> u64 {
    let x = key.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 29)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sector(lba: u64, version: u32, seed: u64) -> [u8; 512] {
        let mut bytes = [0; 512];
        stamp(&mut bytes, lba, version, seed);
        bytes
    }

    #[test]
    fn it_says_what_it_is_and_narrow_ones_are_its_beginning() {
        let wide = sector(0x1234, 7, 99);
        assert_eq!(claim(&wide), (0x1234, 7, Some(99)));
        assert_eq!(&wide[24..32], b"tier0stp");
        for width in [16, 20, 24, 32, 33, 511] {
            let mut narrow = vec![0; width];
            stamp(&mut narrow, 0x1234, 7, 99);
            assert_eq!(narrow, wide[..width], "{width} bytes");
        }
        assert_eq!(claim(&wide[..16]), (0x1234, 7, None));
    }

    #[test]
    fn any_other_sector_differs_in_most_of_its_fill() {
        let one = sector(1, 1, 1);
        for other in [sector(2, 1, 1), sector(1, 2, 1), sector(1, 1, 2)] {
            let same = one[32..].iter().zip(&other[32..]).filter(|(a, b)| a == b).count();
            // 480 random bytes agree in two places on average; 15 would be nine standard deviations more.
            assert!(same < 15, "{same} of 480 bytes agree");
            assert_ne!(one[12..16], other[12..16], "the check differs too");
        }
    }
}
