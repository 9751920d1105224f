//! A pool in short: shape, members and volumes in runs of slots, for pools that keep nothing on their drives.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A pool as its members know it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolRecord {
    /// The array's name.
    pub array: String,
    /// The pool's name.
    pub name: String,
    /// The pool's identity.
    pub id: Uuid,
    /// Sectors of a chunklet.
    pub chunklet_sectors: u64,
    /// Sectors of an extent.
    pub extent_sectors: u64,
    /// Chunklets of every member that are kept free for rebuilding.
    pub spare_chunklets: u64,
    /// The sets' level and shape.
    pub raid: RaidRecord,
    /// The members; a member's place is its index here.
    pub members: Vec<MemberRecord>,
    /// The volumes.
    pub volumes: Vec<VolumeRecord>,
}

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

/// A drive of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    /// Its identity.
    pub id: Uuid,
    /// Its name in the array's description.
    pub name: String,
    /// Its size.
    pub sectors: u64,
    /// Whether it was taken out of service: what it holds is stale and must never be believed again.
    #[serde(default)]
    pub lost: bool,
}

/// A volume of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeRecord {
    /// Its identity.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its size.
    pub sectors: u64,
    /// Where its extents lie, in order.
    pub runs: Vec<SlotRun>,
}

/// Neighbouring extent slots of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotRun {
    /// The first slot.
    pub first: u64,
    /// How many.
    pub count: u64,
}
