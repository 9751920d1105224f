//! The layout of a pool as an administrator sees it: what it can hold, how its sets lie on its drives, and what else does.

use serde::Serialize;
use tier0_pool::{FlashCacheDevice, LogRing, MemberState, PoolState, Space};
use tier0_units::{ByteCount, SECTOR_BYTES, SectorCount};

/// The layout of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PoolLayout {
    /// Its name.
    pub name: String,
    /// The levels of its sets.
    pub raid: String,
    /// What volumes can use in all.
    pub usable_bytes: u64,
    /// What of it no volume has.
    pub free_bytes: u64,
    /// The size of all volumes.
    pub promised_bytes: u64,
    /// Whether the volumes can be written to for more than the pool can hold: some are thin, and all together are larger.
    pub overcommitted: bool,
    /// Of a chunklet, the piece into which drives are cut.
    pub chunklet_bytes: u64,
    /// Of an extent, the piece in which volumes get space.
    pub extent_bytes: u64,
    /// Its drives.
    pub drives: Vec<DriveLayout>,
    /// The groups of its sets.
    pub groups: Vec<GroupLayout>,
    /// The write log; `None` if the pool has no log.
    pub log: Option<PartLayout>,
    /// The flash cache; `None` if the pool has no flash cache.
    pub flash_cache: Option<PartLayout>,
    /// Its volumes.
    pub volumes: Vec<VolumeLayout>,
}

/// A drive of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriveLayout {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
}

/// A group of sets of one shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupLayout {
    /// Its name; none where a pool has one group without a name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The level of its sets.
    pub raid: String,
    /// How many sets.
    pub sets: u64,
    /// Drives of a set.
    pub set_size: u32,
    /// Of a stripe unit.
    pub stripe_unit_bytes: u64,
    /// The drives that its sets lie on.
    pub drives: Vec<String>,
    /// What each of them keeps free for rebuilding.
    pub spare_bytes_per_drive: u64,
    /// What volumes can use of it.
    pub usable_bytes: u64,
    /// What of it no volume has.
    pub free_bytes: u64,
}

/// What lies beside the sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartLayout {
    /// Of the write log: what each copy takes; of the flash cache: its size over all drives.
    pub bytes: u64,
    /// The drives that it lies on.
    pub drives: Vec<String>,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeLayout {
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Whether it gets space only when it is written to.
    pub thin: bool,
}

impl PoolLayout {
    /// The layout of a pool in this state.
    pub(crate) fn of(state: &PoolState) -> PoolLayout {
        let space = Space::of(state);
        let members = state.members().iter().filter(|member| member.state != MemberState::Removed);
        let drive = |member: &tier0_pool::Member| DriveLayout {
            name: member.name.clone(),
            size_bytes: SectorCount(member.sectors).bytes().0,
        };
        let volumes = state.volumes().filter(|volume| !volume.is_unfinished());
        let volume = |volume: &tier0_pool::Volume| VolumeLayout {
            name: volume.name.clone(),
            size_bytes: SectorCount(volume.sectors).bytes().0,
            thin: volume.thin,
        };
        PoolLayout {
            name: state.name().to_owned(),
            raid: tier0_plan::levels(state),
            usable_bytes: space.usable.0,
            free_bytes: space.free().0,
            promised_bytes: space.promised.0,
            overcommitted: space.is_overcommitted(),
            chunklet_bytes: state.geometry().chunklet_sectors * SECTOR_BYTES,
            extent_bytes: state.geometry().extent_sectors * SECTOR_BYTES,
            drives: members.map(drive).collect(),
            groups: state.groups_there().map(|(group, _)| GroupLayout::of(state, group)).collect(),
            log: log_of(state),
            flash_cache: flash_cache_of(state),
            volumes: volumes.map(volume).collect(),
        }
    }

    /// What volumes can use, and what is promised to them, where that is more.
    pub fn overcommitment(&self) -> Option<String> {
        self.overcommitted.then(|| {
            Space::overcommitment(&self.name, ByteCount(self.usable_bytes), ByteCount(self.promised_bytes))
        })
    }
}

impl GroupLayout {
    fn of(state: &PoolState, number: u32) -> GroupLayout {
        let (group, space) = (&state.groups()[number as usize], Space::of_group(state, number));
        let chunklet_bytes = state.geometry().chunklet_sectors * SECTOR_BYTES;
        let holds =
            |place: &u32| state.members()[*place as usize].group == number && state.has_columns(*place);
        let places = (0..state.members().len() as u32).filter(holds);
        GroupLayout {
            name: state.name_of_group(number).map(str::to_owned),
            raid: group.raid.level.clone(),
            sets: state.slot_count_of(number) / u64::from(group.slots_per_set.max(1)),
            set_size: group.columns(),
            stripe_unit_bytes: u64::from(group.raid.stripe_unit_sectors) * SECTOR_BYTES,
            drives: places.map(|place| name_of(state, place)).collect(),
            spare_bytes_per_drive: group.spare_chunklets * chunklet_bytes,
            usable_bytes: space.usable.0,
            free_bytes: space.free().0,
        }
    }
}

fn log_of(state: &PoolState) -> Option<PartLayout> {
    let first = state.log().rings.first()?;
    let copy_sectors = |ring: &LogRing| ring.copies.first().map_or(0, |copy| copy.sectors);
    let sectors = state.log().rings.iter().map(copy_sectors).sum();
    let drives = first.copies.iter().map(|copy| name_of(state, copy.member)).collect();
    Some(PartLayout { bytes: SectorCount(sectors).bytes().0, drives })
}

fn flash_cache_of(state: &PoolState) -> Option<PartLayout> {
    let devices = &state.flash_cache().devices;
    let chunklets: u64 = devices.iter().map(FlashCacheDevice::chunklet_count).sum();
    let bytes = chunklets * state.geometry().chunklet_sectors * SECTOR_BYTES;
    let drives = devices.iter().map(|device| name_of(state, device.member)).collect();
    (!devices.is_empty()).then_some(PartLayout { bytes, drives })
}

fn name_of(state: &PoolState, place: u32) -> String {
    state.member(place).map_or_else(String::new, |member| member.name.clone())
}
