//! A RAID level and its shape, as a pool remembers it.

use serde::{Deserialize, Serialize};

/// A RAID level and its shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaidRecord {
    /// The level's name, as in the array's description: `raid10`.
    pub level: String,
    /// Chunklets of a set.
    pub set_size: u32,
    /// RAID 5 groups of a RAID 50 set; 1 otherwise.
    pub groups: u32,
    /// Sectors of a stripe unit.
    pub stripe_unit_sectors: u32,
}
