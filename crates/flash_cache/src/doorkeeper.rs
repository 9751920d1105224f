//! The doorkeeper: which lines were read lately, about, so that what is read once does not come in.
//!
//! A table of fingerprints of one byte, as many as there are lines, each line's at one place. A newcomer takes the place
//! over, so it forgets by itself.

/// Fingerprints of lines that were read lately.
pub(crate) struct Doorkeeper(Vec<u8>);

impl Doorkeeper {
    pub(crate) fn new(lines: u64) -> Doorkeeper {
        Doorkeeper(vec![0; lines as usize])
    }

    /// Whether the line of this hash was noted and not forgotten since; notes it.
    pub(crate) fn has_seen(&mut self, hash: u64) -> bool {
        let count = self.0.len() as u64;
        if count == 0 {
            return false;
        }
        let mixed = (hash ^ hash >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let at = ((u128::from(mixed) * u128::from(count)) >> 64) as usize;
        let fingerprint = (mixed % 255) as u8 + 1;
        std::mem::replace(&mut self.0[at], fingerprint) == fingerprint
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.0.capacity() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_known_the_second_time() {
        let mut doorkeeper = Doorkeeper::new(1000);
        let unseen =
            (0..100u64).filter(|n| doorkeeper.has_seen(n.wrapping_mul(0xbf58_476d_1ce4_e5b9))).count();
        let known =
            (0..100u64).filter(|n| doorkeeper.has_seen(n.wrapping_mul(0xbf58_476d_1ce4_e5b9))).count();
        assert!(
            unseen < 5 && known > 75,
            "{unseen} unseen lines were known, and {known} of 100 that were not"
        );
        assert!(!Doorkeeper::new(0).has_seen(1));
    }
}
