//! Which device a line belongs to, where there are several: weighted rendezvous hashing (Schindelhauer and Schomaker
//! 2005). A device that comes or goes moves only the lines that it gets or had.

use uuid::Uuid;

/// How much a device wants a line, given its size: of several the one that wants it most has it.
pub(crate) fn desire(x: u64, id: Uuid, size: u64) -> f64 {
    let (high, low) = id.as_u64_pair();
    let mixed = mix(mix(x ^ high) ^ low);
    // In (0, 1), so the logarithm is negative.
    let uniform = ((mixed >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    size as f64 / -uniform.ln()
}

/// The finalizer of SplitMix64 (Steele et al. 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_get_lines_by_their_size() {
        let sizes = [(1, 100), (2, 300)];
        let count = (0..10_000u64).filter(|x| {
            let [small, large] = sizes.map(|(id, size)| desire(*x, Uuid::from_u128(id), size));
            large > small
        });
        let count = count.count();
        assert!(
            (7_300..7_700).contains(&count),
            "{count} of 10000 lines belong to the device of three quarters"
        );
    }
}
