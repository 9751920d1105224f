//! Hashes of keys.

use crate::PageKey;

/// A hash of 64 bits of which all are as good: the finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom
/// number generators, 2014).
#[inline]
pub(crate) fn hash(page: PageKey) -> u64 {
    let mut z = page.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A hash as one of `count` places, all of them equally often, for any count.
#[inline]
pub(crate) fn place(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}
