//! Pools: where their metadata, write log, slot tables and sets lie. Log and tables are options.

use std::sync::Arc;

use tier0_integrity::table::ColumnPlan;
use tier0_pool::{
    ChunkletAddress, Chunklets, Geometry, LogCopy, LogPlacement, LogRing, MappedRun, Member, MetaRecord,
    MetadataArea, PoolError, PoolState, RebuildSource, Run, Volume,
};
use tier0_raid::layout::Layout;
use tier0_raid::set::{RaidSets, SetIndex, SlotMap};
use tier0_units::{SectorCount, SlotRef, WriteCache};
use tier0_world::{PlantedBug, planted};
use uuid::Uuid;

use super::{CHUNKLET_SECTORS_MAX, CHUNKLETS_PER_DRIVE_MIN, config_of, default_extent, record_of};
use crate::description::{PoolDescription, VolumeDescription};
use crate::{ArrayError, description};

/// The smallest chunklet that is chosen, sectors: 4 MiB, so that what the tables leave over at a chunklet's end is little;
/// without tables 1 MiB.
const CHUNKLET_SECTORS_MIN: u64 = 8192;
const CHUNKLET_SECTORS_MIN_UNTABLED: u64 = 2048;
/// The share of a drive that the log takes where its size is not given, and the most, sectors: 4 GiB.
const LOG_SHARE: u64 = 16;
const LOG_SECTORS_MAX: u64 = 8 << 20;
/// Copies of the log: one more than what the level survives, but a log has two wherever there are two drives, and a
/// ring has three at most.
const LOG_COPIES: std::ops::RangeInclusive<usize> = 2..=3;

/// A pool that is to be.
pub(crate) struct NewPool<'a> {
    pub(crate) array: &'a str,
    pub(crate) description: &'a PoolDescription,
    pub(crate) volumes: Vec<&'a VolumeDescription>,
    /// The drives of the description's `drives`, then those that hold the log alone.
    pub(crate) members: Vec<Member>,
    /// Places of the members that hold the log; chosen where there are none.
    pub(crate) log_members: Vec<u32>,
    pub(crate) shards: usize,
}

impl NewPool<'_> {
    /// Its first state; `id` makes identities.
    pub(crate) fn state(self, mut id: impl FnMut() -> Uuid) -> Result<PoolState, ArrayError> {
        let pool = self.description;
        let layout = Layout::new(&pool.raid).expect("a checked description");
        let least = self.members.iter().map(|member| member.sectors).min().unwrap_or(0);
        let chunklet_sectors = pool.chunklet_sectors.unwrap_or_else(|| default_chunklet(least, pool));
        let extent_sectors = pool.extent_sectors.unwrap_or_else(|| default_extent(&layout));
        let sizes = self.members.iter().map(|member| member.sectors);
        let area = MetadataArea::plan(sizes, chunklet_sectors, extent_sectors);
        let plan = column_plan(&layout, chunklet_sectors, extent_sectors, pool.checksums);
        let chunklets = least.saturating_sub(area.data_start_sectors) / chunklet_sectors;
        let data_members = pool.drives.len();
        let spare_chunklets = (chunklets * u64::from(pool.spare_drives)).div_ceil(data_members.max(1) as u64);
        if let Some(smallest) = self.members.iter().find(|member| member.sectors == least && chunklets == 0) {
            return Err(ArrayError::Pool(PoolError::TooSmall {
                drive: smallest.name.clone(),
                sectors: least,
                needed: area.data_start_sectors + chunklet_sectors,
            }));
        }
        if plan.slots_per_set == 0 {
            let works = |sectors: &u64| {
                column_plan(&layout, *sectors, extent_sectors, pool.checksums).slots_per_set > 0
            };
            let least =
                std::iter::successors(Some(chunklet_sectors), |sectors| Some(2 * sectors)).find(works);
            return Err(ArrayError::ChunkletTooSmall {
                pool: pool.name.clone(),
                chunklet: SectorCount(chunklet_sectors).bytes(),
                extent: SectorCount(extent_sectors).bytes(),
                least: SectorCount(least.expect("a large chunklet holds an extent")).bytes(),
            });
        }
        let geometry = Geometry {
            chunklet_sectors,
            extent_sectors,
            slots_per_set: u32::try_from(plan.slots_per_set).unwrap_or(u32::MAX),
            spare_chunklets,
            raid: record_of(&pool.raid),
            checksums: pool.checksums,
            area,
        };
        let mut state = PoolState::new(self.array, &pool.name, id(), geometry, self.members.clone())?;
        let log = match pool.log {
            true => self.place_log(&state, least, &layout, &mut id)?,
            false => PlacedLog { placement: None, chunklets: vec![0; self.members.len()] },
        };
        let mut records: Vec<MetaRecord> = log.placement.into_iter().map(MetaRecord::LogPlaced).collect();
        let (columns, sets_per_band) = form_sets(&state, layout, &plan, data_members, &log.chunklets)?;
        records.push(MetaRecord::SetsAdded { columns, sets_per_band });
        state.apply_all(&records)?;
        for volume in &self.volumes {
            let record = new_volume(&state, volume, id());
            check_fits(&state, volume)?;
            state.apply_all(&[record])?;
        }
        Ok(state)
    }

    /// The log's place: whole chunklets at the front of its members.
    fn place_log(
        &self,
        state: &PoolState,
        least: u64,
        layout: &Layout,
        mut id: impl FnMut() -> Uuid,
    ) -> Result<PlacedLog, ArrayError> {
        let geometry = state.geometry();
        let wanted = self.description.log_sectors.unwrap_or_else(|| (least / LOG_SHARE).min(LOG_SECTORS_MAX));
        let row_pages = layout.row_pages() as u32;
        let ring_sectors_min = tier0_cache::ring_sectors_min(layout.parities() as u32, row_pages);
        let shards = self.shards.max(1) as u64;
        let wanted = wanted.max(shards * ring_sectors_min);
        let chunklets = wanted.div_ceil(geometry.chunklet_sectors).max(1);
        let members = self.choose_log_members(layout);
        for &member in &members {
            let drive = &self.members[member as usize];
            let has = geometry.chunklets(drive.sectors);
            if has < chunklets || (has == chunklets && (member as usize) < self.description.drives.len()) {
                let log = SectorCount(chunklets * geometry.chunklet_sectors).bytes();
                return Err(ArrayError::Unusable {
                    drive: drive.name.clone(),
                    fact: format!(
                        "is too small for a log of {log} beside its data; set a smaller pool.log or use larger drives"
                    ),
                });
            }
        }
        // Beside data the rest of a chunklet would be lost to them; a log alone on its drives is as long as was asked for.
        let shared = members.iter().any(|member| (*member as usize) < self.description.drives.len());
        let whole = if shared { chunklets * geometry.chunklet_sectors } else { wanted };
        let sectors = whole / shards / 8 * 8;
        let rings = (0..shards).map(|shard| {
            let copy = |member: &u32| LogCopy {
                member: *member,
                first_sector: geometry.area.data_start_sectors + shard * sectors,
                sectors,
            };
            LogRing { id: id(), copies: members.iter().map(copy).collect(), is_void: false }
        });
        let placement = LogPlacement { rings: rings.collect() };
        let mut taken = vec![0; self.members.len()];
        for member in members {
            taken[member as usize] = u32::try_from(chunklets).unwrap_or(u32::MAX);
        }
        Ok(PlacedLog { placement: Some(placement), chunklets: taken })
    }

    fn choose_log_members(&self, layout: &Layout) -> Vec<u32> {
        if !self.log_members.is_empty() {
            return self.log_members.clone();
        }
        let copies = (layout.tolerated_failures() + 1).clamp(*LOG_COPIES.start(), *LOG_COPIES.end());
        let mut members: Vec<u32> = (0..self.members.len() as u32).collect();
        // A stable sort: flash first, otherwise in the order of the description.
        members.sort_by_key(|member| self.members[*member as usize].class);
        members.truncate(copies);
        members
    }
}

struct PlacedLog {
    /// None where the pool keeps no log.
    placement: Option<LogPlacement>,
    /// By member: chunklets at its front that the log takes.
    chunklets: Vec<u32>,
}

/// Sets of all chunklets that neither the log nor the spares take, column by column, and how many sets make a band.
fn form_sets(
    state: &PoolState,
    layout: Layout,
    plan: &ColumnPlan,
    data_members: usize,
    taken: &[u32],
) -> Result<(Vec<ChunkletAddress>, u32), ArrayError> {
    let geometry = state.geometry();
    let range = |(place, member): (usize, &Member)| {
        let count = geometry.chunklets(member.sectors).saturating_sub(geometry.spare_chunklets);
        let end = if place < data_members { count as u32 } else { 0 };
        taken[place].min(end)..end
    };
    let ranges = state.members().iter().enumerate().map(range);
    let mut chunklets = Chunklets::of_ranges(geometry.chunklet_sectors, ranges);
    let sets = RaidSets::form_with_tables(layout, &mut chunklets, plan.table_sectors);
    if sets.count() == 0 {
        return Err(ArrayError::NoSet { pool: state.name().to_owned() });
    }
    let band = (data_members / layout.columns()).clamp(1, sets.count() as usize);
    Ok((sets.table(), band as u32))
}

/// The record that creates a volume.
pub(crate) fn new_volume(state: &PoolState, volume: &VolumeDescription, id: Uuid) -> MetaRecord {
    MetaRecord::VolumeCreated(Volume {
        number: state.next_volume(),
        id,
        name: volume.name.clone(),
        sectors: volume.sectors.0,
        thin: volume.thin,
        write_cache: volume.write_cache.unwrap_or(WriteCache::Durable),
    })
}

/// A thick volume must fit what is free.
pub(crate) fn check_fits(state: &PoolState, volume: &VolumeDescription) -> Result<(), ArrayError> {
    let free = state.free_slot_count() - state.reserved_slot_count();
    if volume.thin || state.extents_of(volume.sectors.0) <= free {
        return Ok(());
    }
    Err(ArrayError::NoSpace {
        volume: volume.name.clone(),
        size: volume.sectors.bytes(),
        pool: state.name().to_owned(),
        free: SectorCount(free * state.geometry().extent_sectors).bytes(),
    })
}

/// Maps every extent of the thick volumes, to the lowest slots: a pool that is to be as full as its volumes are large.
pub(crate) fn fill(state: &mut PoolState) -> Result<(), ArrayError> {
    let thick = state.volumes().filter(|volume| !volume.thin);
    let mut slot = SlotRef { slot: 0, allocation: state.allocation_end() };
    let mut runs = Vec::new();
    for volume in thick {
        let count = u32::try_from(state.extents_of(volume.sectors)).expect("the volume was checked");
        runs.push(MappedRun { volume: volume.number, run: Run { index: 0, count, slot } });
        slot.slot += u64::from(count);
        slot.allocation += u64::from(count);
    }
    if runs.is_empty() {
        return Ok(());
    }
    let reserved = MetaRecord::AllocationsReserved { end: slot.allocation };
    state.apply_all(&[reserved, MetaRecord::MapExtents(runs)])?;
    Ok(())
}

fn default_chunklet(drive_sectors: u64, pool: &PoolDescription) -> u64 {
    let share = drive_sectors / CHUNKLETS_PER_DRIVE_MIN;
    let power = if share == 0 { 0 } else { 1 << share.ilog2() };
    let least = if pool.checksums { CHUNKLET_SECTORS_MIN } else { CHUNKLET_SECTORS_MIN_UNTABLED };
    power.clamp(least, CHUNKLET_SECTORS_MAX).max(pool.raid.stripe_unit.0)
}

/// How a column of chunklets is divided; without checksums there are no tables in it.
fn column_plan(layout: &Layout, chunklet_sectors: u64, extent_sectors: u64, checksums: bool) -> ColumnPlan {
    match checksums {
        true => ColumnPlan::new(layout, chunklet_sectors, extent_sectors),
        false => ColumnPlan::without_tables(layout, chunklet_sectors, extent_sectors),
    }
}

/// The sets and slots of a pool, shared by all shards.
#[derive(Clone)]
pub(crate) struct PoolShape {
    pub(crate) sets: Arc<RaidSets>,
    pub(crate) slots: Arc<SlotMap>,
}

impl PoolShape {
    /// The shape of a state, columns that are being rebuilt as far as they are.
    pub(crate) fn new(state: &PoolState) -> Result<PoolShape, ArrayError> {
        let geometry = state.geometry();
        let contradiction = |fact: String| ArrayError::Record { pool: state.name().to_owned(), fact };
        let config = config_of(&geometry.raid).map_err(contradiction)?;
        let layout = Layout::new(&config).map_err(|error| contradiction(error.to_string()))?;
        let columns =
            column_plan(&layout, geometry.chunklet_sectors, geometry.extent_sectors, geometry.checksums);
        if columns.slots_per_set != u64::from(geometry.slots_per_set) {
            return Err(contradiction("its sets have another number of slots than their size gives".into()));
        }
        let table = state.set_table();
        let sets = RaidSets::from_table(layout, geometry.chunklet_sectors, table, columns.table_sectors)
            .map_err(|error| contradiction(error.to_string()))?
            .with_data_start(geometry.area.data_start_sectors);
        let groups =
            state.groups().iter().map(|group| (u64::from(group.sets), u64::from(group.sets_per_band)));
        let slots = SlotMap::of_groups(&sets, geometry.extent_sectors, groups);
        let shape = PoolShape { sets: Arc::new(sets), slots: Arc::new(slots) };
        for (set, column, rebuild) in state.rebuilds() {
            let (set, column) = (SetIndex(set), tier0_raid::layout::Column(column as u8));
            match rebuild.source {
                RebuildSource::Lost => shape.sets.start_rebuild(set, column, rebuild.target),
                RebuildSource::Whole => shape.sets.start_evacuation(set, column, rebuild.target),
            }
            for (index, slot) in (0u64..).zip(shape.slots.slots_of(set)) {
                let early =
                    rebuild.source == RebuildSource::Whole && planted(PlantedBug::BelieveNewPlaceEarly);
                if rebuild.rebuilt.contains(index) || early {
                    shape.sets.set_rebuilt(set, column, shape.slots.rows(slot));
                }
            }
        }
        Ok(shape)
    }

    /// Takes over sets that have joined the state since.
    pub(crate) fn follow(&self, state: &PoolState) {
        let known = self.sets.count() * state.geometry().columns();
        let joined = &state.set_table()[known as usize..];
        if joined.is_empty() {
            return;
        }
        self.sets.append(joined).expect("the state has checked them");
        for group in &state.groups()[self.slots.group_count()..] {
            self.slots.append(u64::from(group.sets), u64::from(group.sets_per_band));
        }
    }

    /// A slot is about to get an extent: nothing is stored in it, so a column that is being rebuilt has all of it.
    pub(crate) fn declare_fresh(&self, slot: u64) {
        if !self.sets.any_rebuilding() {
            return;
        }
        let set = self.slots.place(slot).set;
        for column in self.sets.rebuilding_columns(set).iter() {
            self.sets.set_rebuilt(set, column, self.slots.rows(slot));
        }
    }
}

/// Drives for which a running pool has room: those it has, and some that may join before it is started again. A drive that is
/// taken back joins too, so one with a bad cable may do so often.
pub(crate) fn members_max(count: usize) -> usize {
    count + 512
}

/// The drives of a pool's description: those of its sets, then those that hold the log alone; and the places among them
/// that hold the log.
pub(crate) fn drives_of(pool: &description::PoolDescription) -> (Vec<usize>, Vec<u32>) {
    let mut drives = pool.drives.clone();
    drives.extend(pool.log_drives.iter().filter(|drive| !pool.drives.contains(drive)));
    let place =
        |drive: &usize| drives.iter().position(|other| other == drive).expect("it was just added") as u32;
    let log = pool.log_drives.iter().map(place).collect();
    (drives, log)
}
