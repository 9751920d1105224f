//! What was injected into a medium, in order.

use std::fmt;

use tier0_units::{Lba, Nanos};

/// A fault that was injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Injection {
    /// The power of this drive failed, or its cache was lost as it was unplugged.
    PowerCut,
    /// The process that used the drive died; the drive kept its power.
    Killed,
    /// The drive answers no more.
    Gone,
    /// The drive is back.
    Returned,
    /// All content became that of an older image.
    RolledBack,
    /// From then on flushes are acknowledged and not done.
    Lies,
    /// All content became zeros.
    Wiped,
    /// The sectors cannot be read until they are written.
    Unreadable,
    /// Stored bits flipped.
    Rot,
    /// Stored sectors became zeros.
    Forgotten,
    /// A read failed by order, not because of an unreadable sector.
    ReadError,
    /// A write failed; any part of it may be there.
    WriteError,
    /// A flush failed; any part of the cache may be gone.
    FlushError,
    /// A command was delayed.
    Delay,
    /// A write was acknowledged and never done.
    LostWrite,
    /// A write was acknowledged and done in part.
    TornWrite,
    /// A write was acknowledged and done at the address of the entry instead of its own.
    MisdirectedWrite {
        /// Where it should have gone.
        intended: Lba,
    },
}

/// An entry of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injected {
    /// When, in the world's time of the moment; each world begins at zero.
    pub time: Nanos,
    /// What.
    pub injection: Injection,
    /// First sector concerned; 0 for faults of the whole drive.
    pub lba: Lba,
    /// Sectors concerned; 0 for faults of the whole drive.
    pub sectors: u64,
}

impl fmt::Display for Injected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.time, self.injection)?;
        if self.sectors > 0 {
            write!(f, " of sectors {}+{}", self.lba, self.sectors)?;
        }
        Ok(())
    }
}
