//! What was wrong with a sector.

use std::fmt;

use tier0_workload::verify::{Allowed, Holds};

use super::place;

/// A sector that is not what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The volume's number.
    pub volume: usize,
    /// The sector.
    pub sector: u64,
    /// What it might hold.
    pub expected: Allowed<'static>,
    /// What it holds.
    pub holds: Holds,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volume {} sector {}: expected {}, found ", self.volume, self.sector, self.expected)?;
        match self.holds {
            Holds::Zeros => f.write_str("zeros"),
            Holds::OtherSeed { seed, .. } => write!(f, "a sector of a run with seed {seed}"),
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
