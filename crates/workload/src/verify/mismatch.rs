//! What was wrong with a sector.

use std::fmt;

use tier0_units::Lba;

/// What a wrong sector holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Zeros, where something was written: the write was lost, or the space was given back.
    Zeros,
    /// An older version: a later write was lost or has not reached this copy.
    Stale {
        /// The version found.
        version: u32,
    },
    /// A version that was not asked for yet when the read ended.
    Unissued {
        /// The version found.
        version: u32,
    },
    /// The whole sector of another address: a write or a read went astray.
    Misdirected {
        /// The address it says it has.
        lba: Lba,
        /// The version found.
        version: u32,
    },
    /// A sector that a run with another seed wrote.
    OtherSeed {
        /// The address it says it has.
        lba: Lba,
        /// The version found.
        version: u32,
        /// The other run's seed.
        seed: u64,
    },
    /// Bytes that no run wrote so.
    Corrupt {
        /// The first byte of the sector that differs from the newest version allowed.
        byte: usize,
    },
}

/// A sector that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The wrong sector.
    pub lba: Lba,
    /// The first sector of the verified block that it belongs to.
    pub block: Lba,
    /// The versions that it might hold; 0 stands for what was there before the run.
    pub allowed: Vec<u32>,
    /// What it holds.
    pub found: Found,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sector {} (block at {}) must hold ", self.lba, self.block)?;
        match self.allowed[..] {
            [0] => f.write_str("zeros")?,
            [version] => write!(f, "version {version}")?,
            _ => write!(f, "one of versions {:?}", self.allowed)?,
        }
        f.write_str(" but holds ")?;
        match self.found {
            Found::Zeros => f.write_str("zeros: lost write"),
            Found::Stale { version } => write!(f, "version {version}: lost write (stale data)"),
            Found::Unissued { version } => write!(f, "version {version}, which was not yet written"),
            Found::Misdirected { lba, version } => {
                write!(f, "version {version} of sector {lba}: misdirected I/O")
            }
            Found::OtherSeed { lba, version, seed } => {
                write!(f, "version {version} of sector {lba} from a run with seed {seed}: lost write")
            }
            Found::Corrupt { byte } => write!(f, "corrupt data, wrong from byte {byte} on"),
        }
    }
}

impl std::error::Error for Mismatch {}
