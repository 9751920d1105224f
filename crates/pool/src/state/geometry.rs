//! The pool's unchanging measures.

use serde::{Deserialize, Serialize};
use tier0_units::PAGE_SECTORS;

use crate::state::MetaError;
use crate::{ChunkletAddress, MetadataArea, RaidRecord};

/// What is fixed when a pool is created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Geometry {
    /// Sectors of a chunklet.
    pub chunklet_sectors: u64,
    /// Sectors of an extent, and of the user's data in a slot.
    pub extent_sectors: u64,
    /// Extent slots of a set.
    pub slots_per_set: u32,
    /// Chunklets of every member that new sets leave free for rebuilding.
    pub spare_chunklets: u64,
    /// The sets' level and shape.
    pub raid: RaidRecord,
    /// Whether data at rest has checksums (slot tables at the front of every column).
    pub checksums: bool,
    /// The metadata's places on every drive.
    pub area: MetadataArea,
}

/// Where a slot lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotHome {
    /// The set.
    pub set: u32,
    /// The slot's number in the set, by ascending rows.
    pub index: u32,
}

impl Geometry {
    /// Whole chunklets of a drive of this size.
    pub fn chunklets(&self, sectors: u64) -> u64 {
        let count = sectors.saturating_sub(self.area.data_start_sectors) / self.chunklet_sectors;
        count.min(u64::from(u32::MAX))
    }

    /// The first sector behind the chunklets of a drive of this size.
    pub(crate) fn data_end(&self, sectors: u64) -> u64 {
        self.area.data_start_sectors + self.chunklets(sectors) * self.chunklet_sectors
    }

    /// The first sector of a chunklet.
    pub fn chunklet_start(&self, chunklet: ChunkletAddress) -> u64 {
        self.area.data_start_sectors + u64::from(chunklet.index) * self.chunklet_sectors
    }

    pub(crate) fn check(&self) -> Result<(), MetaError> {
        let refuse = |fact: &str| Err(MetaError::Geometry { fact: fact.to_owned() });
        let raid = &self.raid;
        if self.chunklet_sectors == 0 || self.extent_sectors == 0 || self.slots_per_set == 0 {
            return refuse("chunklets, extents or sets are empty; choose larger chunklets");
        }
        if self.chunklet_sectors > u64::MAX / (1 << 32) {
            return refuse("chunklets have at most 2^32 - 1 sectors; choose smaller ones");
        }
        // A set's columns hold an extent at least.
        if self.extent_sectors > self.chunklet_sectors.saturating_mul(u64::from(raid.set_size)) {
            return refuse("an extent is larger than a set; choose smaller extents or larger chunklets");
        }
        // A column has at least one sector of every slot, so more slots than this are damage.
        if u64::from(self.slots_per_set) > self.chunklet_sectors {
            return refuse("a set has more slots than a chunklet has sectors; choose larger extents");
        }
        if raid.set_size == 0 || raid.set_size > 256 || raid.groups == 0 || raid.stripe_unit_sectors == 0 {
            return refuse(
                "sets have 1 to 256 columns, at least one group and stripe units that are not empty",
            );
        }
        let row_max = u64::from(raid.set_size) * u64::from(raid.stripe_unit_sectors);
        if self.extent_sectors.saturating_add(row_max) / PAGE_SECTORS > u64::from(u32::MAX) {
            return refuse("an extent has 2^32 pages or more in whole rows; choose smaller ones");
        }
        if !self.area.is_sound() {
            return refuse("the metadata's places overlap or are too small; let them be planned");
        }
        Ok(())
    }
}
