//! Pools whose writes go straight to the drives: on memory, and in studies without payload. Nothing of them outlives
//! the process; volumes lie in runs of slots.

use std::sync::Arc;

use tier0_pool::{Chunklets, DATA_START_SECTORS, PoolRecord, VolumeRecord};
use tier0_raid::layout::{Layout, RaidConfig};
use tier0_raid::set::{RaidSets, SlotMap};
use tier0_units::{ByteCount, SectorCount};
use tier0_volume::{FreeSlots, VolumeMap};
use uuid::Uuid;

use super::{CHUNKLET_SECTORS_MAX, CHUNKLETS_PER_DRIVE_MIN, config_of, default_extent, record_of};
use crate::ArrayError;
use crate::description::{PoolDescription, VolumeDescription};

/// The smallest chunklet that is chosen, sectors: 1 MiB.
const CHUNKLET_SECTORS_MIN: u64 = 2048;

/// A pool's arithmetic.
#[derive(Clone, Debug)]
pub(crate) struct PoolPlan {
    pub(crate) record: PoolRecord,
    pub(crate) sets: Arc<RaidSets>,
    pub(crate) slots: Arc<SlotMap>,
    pub(crate) free: FreeSlots,
}

impl PoolPlan {
    /// The plan of a record.
    pub(crate) fn new(record: PoolRecord) -> Result<PoolPlan, ArrayError> {
        let pool = record.name.clone();
        let contradiction = |fact: String| ArrayError::Record { pool: pool.clone(), fact };
        let config = config_of(&record.raid).map_err(contradiction)?;
        let layout = Layout::new(&config).map_err(|error| contradiction(error.to_string()))?;
        if record.chunklet_sectors < layout.stripe_unit().0 || record.extent_sectors == 0 {
            return Err(contradiction("its chunklets or extents are empty".into()));
        }
        let sizes = record.members.iter().map(|member| (member.name.as_str(), member.sectors));
        let mut chunklets = Chunklets::new(sizes, record.chunklet_sectors, record.spare_chunklets)?;
        let sets = RaidSets::form(layout, &mut chunklets);
        let slots = SlotMap::new(&sets, record.extent_sectors, record.members.len());
        if slots.count() == 0 {
            return Err(ArrayError::NoSet { pool });
        }
        let taken = record.volumes.iter().flat_map(|volume| volume.runs.iter().copied());
        let free = FreeSlots::new(slots.count(), taken).map_err(contradiction)?;
        for volume in &record.volumes {
            let held: u64 = volume.runs.iter().map(|run| run.count).sum();
            if held < volume.sectors.div_ceil(record.extent_sectors) {
                return Err(contradiction(format!("volume {:?} has too few extents", volume.name)));
            }
        }
        Ok(PoolPlan { record, sets: Arc::new(sets), slots: Arc::new(slots), free })
    }

    /// The plan of a pool that is to be, on members of these names, identities and sizes.
    pub(crate) fn of_new_pool(
        array: &str,
        pool: &PoolDescription,
        members: Vec<tier0_pool::MemberRecord>,
        id: Uuid,
    ) -> Result<PoolPlan, ArrayError> {
        let raid = &pool.raid;
        let least = members.iter().map(|member| member.sectors).min().unwrap_or(0);
        let chunklet_sectors = pool.chunklet_sectors.unwrap_or_else(|| default_chunklet(least, raid));
        let chunklets = least.saturating_sub(DATA_START_SECTORS) / chunklet_sectors;
        let spare_chunklets =
            (chunklets * u64::from(pool.spare_drives)).div_ceil(members.len().max(1) as u64);
        let layout = Layout::new(raid).expect("a checked description");
        let record = PoolRecord {
            array: array.to_owned(),
            name: pool.name.clone(),
            id,
            chunklet_sectors,
            extent_sectors: pool.extent_sectors.unwrap_or_else(|| default_extent(&layout)),
            spare_chunklets,
            raid: record_of(raid),
            members,
            volumes: Vec::new(),
        };
        PoolPlan::new(record)
    }

    /// Allocates a volume and adds it to the record.
    pub(crate) fn add_volume(&mut self, volume: &VolumeDescription, id: Uuid) -> Result<(), ArrayError> {
        let wanted = volume.sectors.0.div_ceil(self.record.extent_sectors);
        let runs = self.free.take(wanted).map_err(|no_space| ArrayError::NoSpace {
            volume: volume.name.clone(),
            size: volume.sectors.bytes(),
            pool: self.record.name.clone(),
            free: SectorCount(no_space.free * self.record.extent_sectors).bytes(),
        })?;
        let record = VolumeRecord { id, name: volume.name.clone(), sectors: volume.sectors.0, runs };
        self.record.volumes.push(record);
        Ok(())
    }

    /// The map of a volume of the record.
    pub(crate) fn map(&self, volume: &VolumeRecord) -> VolumeMap {
        VolumeMap::new(volume.sectors, self.record.extent_sectors, &volume.runs)
    }

    /// What volumes can use in all, and what is free of it.
    pub(crate) fn space(&self) -> (ByteCount, ByteCount) {
        let bytes = |slots: u64| SectorCount(slots * self.record.extent_sectors).bytes();
        (bytes(self.slots.count()), bytes(self.free.count()))
    }
}

fn default_chunklet(drive_sectors: u64, raid: &RaidConfig) -> u64 {
    let share = drive_sectors.saturating_sub(DATA_START_SECTORS) / CHUNKLETS_PER_DRIVE_MIN;
    let power = if share == 0 { 0 } else { 1 << share.ilog2() };
    power.clamp(CHUNKLET_SECTORS_MIN, CHUNKLET_SECTORS_MAX).max(raid.stripe_unit.0)
}
