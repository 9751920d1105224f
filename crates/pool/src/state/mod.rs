//! The state of a pool: everything its metadata says, in memory, without I/O.
//!
//! A [`PoolState`] changes only by [`MetaRecord`]s: [`PoolState::check`] says whether a record can be true,
//! [`PoolState::apply`] makes it so, and [`PoolState::apply_all`] does both for a transaction, wholly or not at all.
//!
//! Invariants, which `check` keeps and [`PoolState::verify`] proves anew:
//! - extents that have a slot together are of one family and of the same number, no chunklet has two owners, no set two columns on one drive, or one on a drive of another group;
//! - in every group as many slots are free as its thick volumes have reserved;
//! - allocation numbers in use are below the reserved end;
//! - places of members and numbers of volumes are never used again;
//! - the largest checkpoint the state can need fits the metadata area.
//!
//! What it does not do: it chooses nothing but spare chunklets, and knows no layouts.

mod apply;
mod away;
mod balance;
mod batch;
mod bits;
mod cache;
mod ceilings;
mod check;
mod check_sets;
mod copy_back;
mod derive;
mod error;
mod extent_map;
mod family;
mod flash_cache;
mod geometry;
mod group;
mod log;
mod member;
mod placement;
mod readmission;
mod returning;
mod role;
mod room;
mod slot_set;
mod spare;
mod tenants;
#[cfg(test)]
mod tests;
mod transaction;
mod volume;
mod weights;

use std::collections::BTreeMap;

use tier0_units::{ExtentId, SlotRef};
use uuid::Uuid;

use crate::ChunkletAddress;
use crate::record::{MetaRecord, ScrubCursor};

pub(crate) use away::Away;
pub use balance::{ColumnMove, SetsToCome};
pub use batch::SetBatch;
pub(crate) use batch::{are_placed, placed};
pub use bits::BitSet;
pub use cache::{CacheSwitches, Caching};
pub use ceilings::{Ceilings, CeilingsChange};
pub(crate) use derive::{Derived, Owner};
pub use error::MetaError;
pub use extent_map::{ExtentMap, Run};
pub(crate) use family::Tenant;
pub use flash_cache::{FlashCacheDevice, FlashCachePlacement};
pub use geometry::{Geometry, SlotHome};
pub use group::{GROUPS_MAX, GroupStage, SetGroup};
pub use log::{LogCopy, LogPlacement, LogRing};
pub use member::{DriveClass, Member, MemberState, PATH_BYTES_MAX};
pub use placement::{PINS_MAX, Pin, Place, Placement, TierSettings, UnknownPlace};
pub use role::DriveRole;
pub(crate) use slot_set::SlotSet;
pub(crate) use tenants::Tenants;
pub use volume::{Branch, Claim, FAMILY_VOLUMES_MAX, Volume};
pub(crate) use volume::{WRITE_CACHES, write_cache_code};
pub use weights::{WEIGHT_DEFAULT, WEIGHT_MAX, is_weight};

/// The most bytes of a name.
pub const TEXT_BYTES_MAX: usize = 255;

/// A column that is being rebuilt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebuild {
    /// The chunklet that takes the column's place.
    pub target: ChunkletAddress,
    /// The slots of the set that the target holds.
    pub rebuilt: BitSet,
    /// What the column's old chunklet is worth.
    pub source: RebuildSource,
}

/// What the old chunklet of a column is worth that is being rebuilt elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RebuildSource {
    /// Nothing: it is lost, or stale.
    #[default]
    Lost,
    /// It is whole, and its drive serves: it is being evacuated.
    Whole,
}

impl RebuildSource {
    /// Its number on drives.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    pub(crate) fn from_code(code: u8) -> Option<RebuildSource> {
        [RebuildSource::Lost, RebuildSource::Whole].get(usize::from(code)).copied()
    }
}

/// What a pool consists of: all of its state but the map and the counters. Small enough to be copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inventory {
    pub(crate) members: Vec<Member>,
    /// The first one is that of the geometry.
    pub(crate) groups: Vec<SetGroup>,
    pub(crate) batches: Vec<SetBatch>,
    /// Chunklets of all sets, set after set, column after column.
    pub(crate) columns: Vec<ChunkletAddress>,
    /// By set and column.
    pub(crate) rebuilds: BTreeMap<(u32, u32), Rebuild>,
    /// Chunklets of lost members whose columns were rebuilt elsewhere while pages were lost of which these may hold the
    /// only right copy; set and column of each. No others are there.
    pub(crate) left_behind: BTreeMap<ChunkletAddress, (u32, u32)>,
    /// Columns that were rebuilt elsewhere because their drive was lost, or is replaced, each with that drive, or the one that
    /// has replaced it.
    pub(crate) displaced: BTreeMap<(u32, u32), u32>,
    pub(crate) log: LogPlacement,
    pub(crate) volumes: BTreeMap<u32, Volume>,
    pub(crate) next_volume: u32,
    /// Whether there is or was a volume of another one's family.
    pub(crate) has_families: bool,
    /// Whether extents may lie in other groups than their volume's.
    pub(crate) is_mixed: bool,
    pub(crate) cache_switches: CacheSwitches,
    pub(crate) flash_cache: FlashCachePlacement,
    /// By volume; those that say nothing are not listed.
    pub(crate) placements: BTreeMap<u32, Placement>,
    pub(crate) tier: TierSettings,
    /// By volume; those without are not listed.
    pub(crate) ceilings: BTreeMap<u32, Ceilings>,
    /// By volume; those with the default are not listed.
    pub(crate) weights: BTreeMap<u32, u32>,
    /// Derived: whose the chunklets are; free ones are not listed.
    pub(crate) owners: BTreeMap<ChunkletAddress, Owner>,
}

/// The state of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolState {
    pub(crate) array: String,
    pub(crate) name: String,
    pub(crate) id: Uuid,
    pub(crate) geometry: Geometry,
    pub(crate) inventory: Inventory,
    /// The first allocation number that is not reserved.
    pub(crate) allocation_end: u64,
    pub(crate) scrub: ScrubCursor,
    /// By volume; every volume has one.
    pub(crate) maps: BTreeMap<u32, ExtentMap>,
    /// Derived: the slots that extents have, and whose they are.
    pub(crate) slots: Tenants,
    /// Derived: the extents that lie in other groups than their volume's.
    pub(crate) away: Away,
}

impl PoolState {
    /// A pool without sets, volumes and log on these members. The rest comes with records.
    pub fn new(
        array: &str,
        name: &str,
        id: Uuid,
        geometry: Geometry,
        members: Vec<Member>,
    ) -> Result<PoolState, MetaError> {
        let mut state = PoolState {
            array: array.to_owned(),
            name: name.to_owned(),
            id,
            inventory: Inventory { groups: vec![geometry.first_group()], ..Inventory::default() },
            geometry,
            allocation_end: 1,
            scrub: ScrubCursor::default(),
            maps: BTreeMap::new(),
            slots: Tenants::new(Vec::new()),
            away: Away::default(),
        };
        check::name("array", array)?;
        check::name("pool", name)?;
        state.geometry.check()?;
        for member in members {
            let record = MetaRecord::MemberAdded(member);
            state.check(&record)?;
            state.apply(record);
        }
        Ok(state)
    }

    /// The array's name.
    pub fn array(&self) -> &str {
        &self.array
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The pool's identity.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// What was fixed when the pool was created.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// All members there ever were, by their places.
    pub fn members(&self) -> &[Member] {
        &self.inventory.members
    }

    /// The member at a place.
    pub fn member(&self, place: u32) -> Option<&Member> {
        self.inventory.members.get(place as usize)
    }

    /// Whether the member at this place serves.
    pub fn is_active(&self, place: u32) -> bool {
        self.member(place).is_some_and(Member::is_active)
    }

    /// The chunklets of all sets, set after set, column after column. A column that is being rebuilt still has its
    /// old chunklet here.
    pub fn set_table(&self) -> &[ChunkletAddress] {
        &self.inventory.columns
    }

    /// The chunklet of a column; while it is being rebuilt, the old one. Panics if there is no such column.
    pub fn column(&self, set: u32, column: u32) -> ChunkletAddress {
        self.inventory.columns[self.column_index(set, column)]
    }

    pub(crate) fn column_index(&self, set: u32, column: u32) -> usize {
        self.batch_of(set).expect("the set is in a batch").column_index(set, column)
    }

    /// The columns that are being rebuilt: set, column, and how far.
    pub fn rebuilds(&self) -> impl Iterator<Item = (u32, u32, &Rebuild)> {
        self.inventory.rebuilds.iter().map(|((set, column), rebuild)| (*set, *column, rebuild))
    }

    /// How far a column is rebuilt; none if it is not being rebuilt.
    pub fn rebuild(&self, set: u32, column: u32) -> Option<&Rebuild> {
        self.inventory.rebuilds.get(&(set, column))
    }

    /// Where a column lies, or will when its rebuild has ended.
    pub fn place_of(&self, set: u32, column: u32) -> ChunkletAddress {
        self.rebuild(set, column).map_or_else(|| self.column(set, column), |rebuild| rebuild.target)
    }

    /// Where the write log lies.
    pub fn log(&self) -> &LogPlacement {
        &self.inventory.log
    }

    /// The volumes, by number.
    pub fn volumes(&self) -> impl Iterator<Item = &Volume> {
        self.inventory.volumes.values()
    }

    /// A volume by its number.
    pub fn volume(&self, number: u32) -> Option<&Volume> {
        self.inventory.volumes.get(&number)
    }

    /// A volume by its name.
    pub fn volume_named(&self, name: &str) -> Option<&Volume> {
        self.volumes().find(|volume| volume.name == name)
    }

    /// The number of the next volume.
    pub fn next_volume(&self) -> u32 {
        self.inventory.next_volume
    }

    /// Extents of a volume of this size.
    pub fn extents_of(&self, sectors: u64) -> u64 {
        sectors.div_ceil(self.geometry.extent_sectors)
    }

    /// The map of a volume.
    pub fn map(&self, volume: u32) -> Option<&ExtentMap> {
        self.maps.get(&volume)
    }

    /// The slot of an extent.
    #[inline]
    pub fn slot(&self, extent: ExtentId) -> Option<SlotRef> {
        self.maps.get(&extent.volume)?.get(extent.index)
    }

    /// The first allocation number that is not reserved: nothing on any drive has this or a higher one.
    pub fn allocation_end(&self) -> u64 {
        self.allocation_end
    }

    /// How far the scrub is.
    pub fn scrub(&self) -> ScrubCursor {
        self.scrub
    }

    /// The slots that have extents.
    pub fn used_slots(&self) -> &BitSet {
        self.slots.used()
    }

    pub(crate) fn used_by_group(&self) -> &SlotSet {
        self.slots.used_by_group()
    }
}
