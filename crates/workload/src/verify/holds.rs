//! What a sector holds, whatever it should.

use tier0_units::SECTOR_BYTES;

use super::stamp::{claim, stamp};

/// What a sector holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Zeros.
    Zeros,
    /// The whole of a sector that this run wrote.
    Stamp {
        /// The address it says it has.
        address: u64,
        /// Its version.
        version: u32,
    },
    /// The whole of a sector that a run of another seed wrote.
    OtherSeed {
        /// The address it says it has.
        address: u64,
        /// Its version.
        version: u32,
        /// That seed.
        seed: u64,
    },
    /// Bytes that no run wrote so.
    Noise,
}

impl Holds {
    /// Looks at a sector of a run with this seed.
    pub fn of(sector: &[u8], seed: u64) -> Holds {
        if sector.iter().all(|byte| *byte == 0) {
            return Holds::Zeros;
        }
        let (address, version, found_seed) = claim(sector);
        // Too narrow to hold a seed, a sector has that of the run in its check only.
        let found_seed = found_seed.unwrap_or(seed);
        let mut whole = [0; SECTOR_BYTES as usize];
        let whole = &mut whole[..sector.len()];
        stamp(whole, address, version, found_seed);
        if sector != whole {
            Holds::Noise
        } else if found_seed == seed {
            Holds::Stamp { address, version }
        } else {
            Holds::OtherSeed { address, version, seed: found_seed }
        }
    }
}

/// The first byte of a sector that differs from this version; 0 stands for zeros.
pub fn first_difference(sector: &[u8], address: u64, version: u32, seed: u64) -> Option<usize> {
    let mut expected = [0; SECTOR_BYTES as usize];
    let expected = &mut expected[..sector.len()];
    if version > 0 {
        stamp(expected, address, version, seed);
    }
    sector.iter().zip(expected.iter()).position(|(found, expected)| found != expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_it_says_it_is_or_noise() {
        for width in [16, 20, 24, 32, 512] {
            let mut sector = vec![0; width];
            assert_eq!(Holds::of(&sector, 5), Holds::Zeros, "width {width}");
            stamp(&mut sector, 9, 3, 5);
            assert_eq!(Holds::of(&sector, 5), Holds::Stamp { address: 9, version: 3 }, "width {width}");
            // Where the seed is not there to be read, the check tells.
            let other = Holds::OtherSeed { address: 9, version: 3, seed: 5 };
            let other = if width < 24 { Holds::Noise } else { other };
            assert_eq!(Holds::of(&sector, 6), other, "width {width}");
            for at in [0, 8, 12, width - 1] {
                let mut damaged = sector.clone();
                damaged[at] ^= 0x10;
                assert_eq!(Holds::of(&damaged, 5), Holds::Noise, "width {width}, byte {at}");
                assert_eq!(first_difference(&damaged, 9, 3, 5), Some(at), "width {width}");
            }
            assert_eq!(first_difference(&sector, 9, 3, 5), None, "width {width}");
            let mut nearly_zeros = vec![0; width];
            nearly_zeros[width - 1] = 1;
            assert_eq!(Holds::of(&nearly_zeros, 5), Holds::Noise, "width {width}");
            assert_eq!(first_difference(&nearly_zeros, 9, 0, 5), Some(width - 1), "width {width}");
        }
    }
}
