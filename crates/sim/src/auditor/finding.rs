//! What was wrong with a sector.

use std::fmt;

use tier0_units::SECTOR_BYTES;
use tier0_workload::verify::stamp;

use super::place;

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
        /// That seed.
        seed: u64,
    },
    /// Bytes that no run wrote so.
    Noise,
}

impl Holds {
    /// Looks at a sector.
    pub(super) fn of(bytes: &[u8], seed: u64) -> Holds {
        if bytes.iter().all(|byte| *byte == 0) {
            return Holds::Zeros;
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let (address, version, found_seed) = (word(0), word(8) as u32, word(16));
        let mut whole = [0; SECTOR_BYTES as usize];
        stamp(&mut whole, address, version, found_seed);
        match (bytes == whole, found_seed == seed) {
            (true, true) => Holds::Stamp { address, version },
            (true, false) => Holds::OtherSeed { seed: found_seed },
            (false, _) => Holds::Noise,
        }
    }
}

/// A version that a sector might hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Its number; 0 stands for the zeros that a volume begins with.
    pub version: u32,
    /// It reads as zeros.
    pub zero: bool,
}

/// A sector that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The volume's number.
    pub volume: usize,
    /// The sector.
    pub sector: u64,
    /// What it might hold.
    pub expected: Vec<Expected>,
    /// What it holds.
    pub holds: Holds,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volume {} sector {}: expected ", self.volume, self.sector)?;
        for (number, expected) in self.expected.iter().enumerate() {
            let separator = if number == 0 { "" } else { " or " };
            match expected {
                Expected { version: 0, .. } => write!(f, "{separator}zeros, never written")?,
                Expected { version, zero: true } => write!(f, "{separator}zeros of version {version}")?,
                Expected { version, zero: false } => write!(f, "{separator}version {version}")?,
            }
        }
        f.write_str(", found ")?;
        match self.holds {
            Holds::Zeros => f.write_str("zeros"),
            Holds::OtherSeed { seed } => write!(f, "a sector of a run with seed {seed}"),
            Holds::Noise => f.write_str("bytes that nobody wrote"),
            Holds::Stamp { address, version } => {
                write!(f, "version {version}")?;
                let (volume, sector) = place(address);
                if (volume, sector) == (self.volume as u64, self.sector) {
                    return Ok(());
                }
                write!(f, " of sector {sector}")?;
                if volume != self.volume as u64 { write!(f, " of volume {volume}") } else { Ok(()) }
            }
        }
    }
}
