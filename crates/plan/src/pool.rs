//! Pools: where their metadata, write log, slot tables and sets lie. Log and tables are options.

use std::sync::{Arc, OnceLock};

use tier0_description::names::quoted;
use tier0_description::shape::{config_of, record_of};
use tier0_description::{GroupDescription, PoolDescription, VolumeDescription};
use tier0_integrity::table::ColumnPlan;
use tier0_pool::{
    CacheSwitches, Ceilings, ChunkletAddress, Chunklets, DriveClass, FlashCacheDevice, FlashCachePlacement,
    GROUPS_MAX, Geometry, GroupStage, LogCopy, LogPlacement, LogRing, MappedRun, Member, MetaError,
    MetaRecord, MetadataArea, Placement, PoolError, PoolState, RebuildSource, Run, SetBatch, SetGroup,
    Volume, WEIGHT_DEFAULT,
};
use tier0_raid::layout::Layout;
use tier0_raid::set::{JoiningSets, NOWHERE, RaidSets, SetIndex, SetShape, SlotMap};
use tier0_units::{SECTOR_BYTES, SectorCount, SlotRef, WriteCache, counted};
use tier0_world::{PlantedBug, planted};
use uuid::Uuid;

use super::{
    CHUNKLET_SECTORS_MAX, CHUNKLETS_PER_DRIVE_MIN, WASTE_PERCENT_MAX, default_extent, fitting_extent,
    ring_sectors_min, slot_of, wasted,
};
use crate::error::PlanError;
use crate::roles::role_at;

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

/// How the groups of a pool's sets share its write cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lanes {
    /// Each has a lane of its own.
    #[default]
    PerGroup,
    /// All have one, as in arrays with one write cache for everything. Only the laboratory makes such pools.
    Shared,
}

/// A pool that is to be.
pub struct NewPool<'a> {
    /// The name of its array.
    pub array: &'a str,
    /// What its file says of it.
    pub description: &'a PoolDescription,
    /// The volumes that it is to have.
    pub volumes: Vec<&'a VolumeDescription>,
    /// The drives of the description's `drives`, then those that hold the log or the flash cache alone.
    pub members: Vec<Member>,
    /// Places of the members that hold the log; chosen where there are none.
    pub log_members: Vec<u32>,
    /// Places of the members that hold the flash cache, if there is to be one; chosen where there are none.
    pub flash_cache_members: Vec<u32>,
    /// Shards that it is to run on: its log has a part for each.
    pub shards: usize,
    /// How its groups share its write cache.
    pub lanes: Lanes,
}

impl NewPool<'_> {
    /// Its first state; `id` makes identities.
    pub fn state(self, mut id: impl FnMut() -> Uuid) -> Result<PoolState, PlanError> {
        let pool = self.description;
        let layout = |group: &GroupDescription| Layout::new(&group.raid).expect("a checked description");
        let layouts: Vec<Layout> = pool.groups.iter().map(layout).collect();
        let least = self.members.iter().map(|member| member.sectors).min().unwrap_or(0);
        let chunklet_sectors = pool.chunklet_sectors.unwrap_or_else(|| default_chunklet(least, pool));
        let extent_sectors = pool.extent_sectors.unwrap_or_else(|| default_extent(&layouts));
        let sizes = self.members.iter().map(|member| member.sectors);
        let area = MetadataArea::plan(sizes, chunklet_sectors, extent_sectors);
        let chunklets_of = |sectors: u64| sectors.saturating_sub(area.data_start_sectors) / chunklet_sectors;
        if let Some(smallest) =
            self.members.iter().find(|member| member.sectors == least && chunklets_of(least) == 0)
        {
            return Err(PlanError::Pool(PoolError::TooSmall {
                drive: smallest.name.clone(),
                sectors: least,
                needed: area.data_start_sectors + chunklet_sectors,
            }));
        }
        let mut groups = Vec::new();
        for ((number, group), layout) in (0u32..).zip(&pool.groups).zip(&layouts) {
            // As large as was asked for, or smaller where nothing larger fits.
            let fitting = || fitting_extent(&layouts, extent_sectors).or_else(|| fitting_extent(&layouts, 1));
            check_waste(&pool.name, &group.name, layout, extent_sectors, fitting)?;
            let own = self.members.iter().filter(|member| pool.groups.len() == 1 || member.group == number);
            let chunklets = chunklets_of(own.map(|member| member.sectors).min().unwrap_or(least));
            let spares = chunklets * u64::from(group.spare_drives);
            groups.push(SetGroup {
                name: group.name.clone(),
                raid: record_of(&group.raid),
                slots_per_set: slots_per_set(
                    &pool.name,
                    layout,
                    (chunklet_sectors, extent_sectors),
                    pool.checksums,
                )?,
                spare_chunklets: spares.div_ceil(group.drives.len().max(1) as u64),
                stage: GroupStage::Stays,
            });
        }
        let first = &groups[0];
        let geometry = Geometry {
            chunklet_sectors,
            extent_sectors,
            slots_per_set: first.slots_per_set,
            spare_chunklets: first.spare_chunklets,
            raid: first.raid.clone(),
            checksums: pool.checksums,
            area,
        };
        let mut state = PoolState::new(self.array, &pool.name, id(), geometry, Vec::new())?;
        if !first.name.is_empty() {
            state.name_first_group(&first.name).map_err(PoolError::from)?;
        }
        let others = groups[1..].iter().cloned().map(MetaRecord::GroupAdded);
        let data_drives = pool.drives.len();
        let with_role = |(place, member): (usize, &Member)| {
            MetaRecord::MemberAdded(Member { role: role_at(place, data_drives), ..member.clone() })
        };
        let members = self.members.iter().enumerate().map(with_role);
        state.apply_all(&others.chain(members).collect::<Vec<_>>())?;
        let log = match pool.log {
            true => self.place_log(&state, least, &layouts, &mut id)?,
            false => PlacedLog { placement: None, chunklets: vec![0; self.members.len()] },
        };
        let mut taken = log.chunklets;
        let flash_cache = self.place_flash_cache(&state, &mut taken, &mut id)?;
        let mut records: Vec<MetaRecord> = log.placement.into_iter().map(MetaRecord::LogPlaced).collect();
        records.extend(flash_cache.map(MetaRecord::FlashCachePlaced));
        for group in 0..groups.len() as u32 {
            let (columns, sets_per_band) = form_sets(&state, group, pool.drives.len(), &taken)?;
            records.push(MetaRecord::SetsAdded { columns, sets_per_band, group });
        }
        records.extend(switches_of(&state, pool));
        state.apply_all(&records)?;
        for volume in &self.volumes {
            let records = new_volume(&state, volume, id());
            check_fits(&state, volume)?;
            state.apply_all(&records)?;
        }
        Ok(state)
    }

    /// The log's place: whole chunklets at the front of its members.
    fn place_log(
        &self,
        state: &PoolState,
        least: u64,
        layouts: &[Layout],
        mut id: impl FnMut() -> Uuid,
    ) -> Result<PlacedLog, PlanError> {
        let geometry = state.geometry();
        let wanted = self.description.log_sectors.unwrap_or_else(|| (least / LOG_SHARE).min(LOG_SECTORS_MAX));
        let ring_sectors_min = ring_sectors_min(state.groups());
        let shards = self.shards.max(1) as u64;
        let lanes = match self.lanes {
            Lanes::PerGroup => state.groups().len() as u32,
            Lanes::Shared => 1,
        };
        let parts = shards * u64::from(lanes);
        let least_log = parts * ring_sectors_min;
        let remedy = match wanted < least_log {
            true => format!(
                "it has {}, each of at least {:#}; use fewer parts, or larger drives",
                parts_of(shards, lanes),
                SectorCount(ring_sectors_min).bytes()
            ),
            false => "reduce pool.log, or use larger drives".to_owned(),
        };
        let wanted = wanted.max(least_log);
        let chunklets = wanted.div_ceil(geometry.chunklet_sectors).max(1);
        let members = self.choose_log_members(layouts);
        for &member in &members {
            let drive = &self.members[member as usize];
            let has = geometry.chunklets(drive.sectors);
            if has < chunklets || (has == chunklets && (member as usize) < self.description.drives.len()) {
                return Err(PlanError::NoRoomForLog {
                    drive: drive.name.clone(),
                    log: SectorCount(chunklets * geometry.chunklet_sectors).bytes(),
                    remedy,
                });
            }
        }
        // Beside data the rest of a chunklet would be lost to them; a log alone on its drives is as long as was asked for.
        let shared = members.iter().any(|member| (*member as usize) < self.description.drives.len());
        let whole = if shared { chunklets * geometry.chunklet_sectors } else { wanted };
        let sectors = whole / parts / 8 * 8;
        let rings = (0..parts).map(|part| {
            let copy = |member: &u32| LogCopy {
                member: *member,
                first_sector: geometry.area.data_start_sectors + part * sectors,
                sectors,
            };
            LogRing { id: id(), copies: members.iter().map(copy).collect(), is_void: false }
        });
        let placement = LogPlacement { rings: rings.collect(), lanes };
        let mut taken = vec![0; self.members.len()];
        for member in members {
            taken[member as usize] = u32::try_from(chunklets).unwrap_or(u32::MAX);
        }
        Ok(PlacedLog { placement: Some(placement), chunklets: taken })
    }

    /// The flash cache's place: whole chunklets of its members behind what is `taken` of them, which grows by them.
    fn place_flash_cache(
        &self,
        state: &PoolState,
        taken: &mut [u32],
        mut id: impl FnMut() -> Uuid,
    ) -> Result<Option<FlashCachePlacement>, PlanError> {
        let Some(size) = self.description.flash_cache.bytes.filter(|size| size.0 > 0) else {
            return Ok(None);
        };
        let is_flash = |member: &u32| self.members[*member as usize].class == DriveClass::Flash;
        let mut members = self.flash_cache_members.clone();
        if members.is_empty() {
            members = (0..self.members.len() as u32).filter(is_flash).collect();
        }
        if members.is_empty() || !members.iter().all(is_flash) {
            return Err(PlanError::NoFlash { pool: self.description.name.clone() });
        }
        members.sort_unstable();
        let geometry = state.geometry();
        let sectors = (size.0 / SECTOR_BYTES).div_ceil(members.len() as u64);
        let wanted = sectors.div_ceil(geometry.chunklet_sectors);
        let mut devices = Vec::new();
        for member in members {
            let (drive, from) = (&self.members[member as usize], taken[member as usize]);
            let holds_data = (member as usize) < self.description.drives.len();
            let has = geometry.chunklets(drive.sectors).saturating_sub(u64::from(holds_data));
            let end = u32::try_from(u64::from(from) + wanted).ok().filter(|end| u64::from(*end) <= has);
            let end = end.ok_or_else(|| PlanError::NoRoomForFlashCache {
                drive: drive.name.clone(),
                cache: SectorCount(wanted * geometry.chunklet_sectors).bytes(),
                beside: if holds_data { "in addition to its data" } else { "in addition to the write log" },
            })?;
            taken[member as usize] = end;
            devices.push(FlashCacheDevice { id: id(), member, epoch: 1, chunklets: vec![from..end] });
        }
        Ok(Some(FlashCachePlacement { devices }))
    }

    fn choose_log_members(&self, layouts: &[Layout]) -> Vec<u32> {
        if !self.log_members.is_empty() {
            return self.log_members.clone();
        }
        let tolerated = layouts.iter().map(Layout::tolerated_failures).max().unwrap_or(0);
        let copies = (tolerated + 1).clamp(*LOG_COPIES.start(), *LOG_COPIES.end());
        let mut members: Vec<u32> = (0..self.members.len() as u32).collect();
        // A stable sort: flash first, otherwise in the order of the description.
        members.sort_by_key(|member| self.members[*member as usize].class);
        members.truncate(copies);
        members
    }
}

/// The parts of a log in words: "128 parts (64 cores and 2 groups)".
pub fn parts_of(shards: u64, lanes: u32) -> String {
    let parts = counted(shards * u64::from(lanes), "part");
    let groups = if lanes > 1 { format!(" and {lanes} groups") } else { String::new() };
    format!("{parts} ({}{groups})", counted(shards, "core"))
}

/// How many slots a set of a group has.
pub(crate) fn slots_per_set(
    pool: &str,
    layout: &Layout,
    (chunklet, extent): (u64, u64),
    checksums: bool,
) -> Result<u32, PlanError> {
    let slots = |sectors| column_plan(layout, sectors, extent, checksums).slots_per_set;
    if slots(chunklet) > 0 {
        return Ok(u32::try_from(slots(chunklet)).unwrap_or(u32::MAX));
    }
    let works = |sectors: &u64| slots(*sectors) > 0;
    let least = std::iter::successors(Some(chunklet), |sectors| Some(2 * sectors)).find(works);
    Err(PlanError::ChunkletTooSmall {
        pool: pool.to_owned(),
        chunklet: SectorCount(chunklet).bytes(),
        extent: SectorCount(extent).bytes(),
        least: SectorCount(least.expect("a large chunklet holds an extent")).bytes(),
    })
}

/// Slots of a group with a name hold an extent and little more. `fitting` are extents that would do in all groups.
pub(crate) fn check_waste(
    pool: &str,
    group: &str,
    layout: &Layout,
    extent: u64,
    fitting: impl FnOnce() -> Option<u64>,
) -> Result<(), PlanError> {
    let (slot, idle) = (slot_of(layout, extent), wasted(layout, extent));
    if group.is_empty() || idle * 100 <= slot * WASTE_PERCENT_MAX {
        return Ok(());
    }
    let bytes = |sectors: u64| SectorCount(sectors).bytes();
    Err(PlanError::Waste {
        pool: pool.to_owned(),
        group: group.to_owned(),
        extent: bytes(extent),
        slot: bytes(slot),
        percent: idle * 100 / slot,
        remedy: fitting()
            .map(|extent| format!("extents of {:#} (pool.extent), ", bytes(extent)))
            .unwrap_or_default(),
        row: bytes(layout.row_sectors().0),
    })
}

struct PlacedLog {
    /// None where the pool keeps no log.
    placement: Option<LogPlacement>,
    /// By member: chunklets at its front that the log takes.
    chunklets: Vec<u32>,
}

/// Sets of a group of all chunklets of its drives that neither the log nor the spares take, column by column, and how many sets
/// make a band.
fn form_sets(
    state: &PoolState,
    group: u32,
    data_members: usize,
    taken: &[u32],
) -> Result<(Vec<ChunkletAddress>, u32), PlanError> {
    let geometry = state.geometry();
    let SetGroup { spare_chunklets, name, .. } = &state.groups()[group as usize];
    let is_own = |place: usize, member: &Member| place < data_members && member.group == group;
    let range = |(place, member): (usize, &Member)| {
        let count = geometry.chunklets(member.sectors).saturating_sub(*spare_chunklets);
        let end = if is_own(place, member) { count as u32 } else { 0 };
        taken[place].min(end)..end
    };
    let ranges = state.members().iter().enumerate().map(range);
    let mut chunklets = Chunklets::of_ranges(geometry.chunklet_sectors, ranges);
    let contradiction = |fact: String| PlanError::Record { pool: state.name().to_owned(), fact };
    let SetShape { layout, table_sectors } =
        shape_of(state, &state.groups()[group as usize]).map_err(contradiction)?;
    let sets = RaidSets::form_with_tables(layout, &mut chunklets, table_sectors);
    if sets.count() == 0 {
        let pool = match name.is_empty() {
            true => state.name().to_owned(),
            false => format!("{} (group {name})", state.name()),
        };
        return Err(PlanError::NoSet { pool });
    }
    let members = state.members().iter().enumerate().filter(|(place, member)| is_own(*place, member)).count();
    let band = (members / layout.columns()).clamp(1, sets.count() as usize);
    Ok((sets.table(), band as u32))
}

/// The records that create a volume.
pub fn new_volume(state: &PoolState, volume: &VolumeDescription, id: Uuid) -> Vec<MetaRecord> {
    let number = state.next_volume();
    let mut records = MetaRecord::create(Volume {
        number,
        id,
        name: volume.name.clone(),
        sectors: volume.sectors.0,
        thin: volume.thin,
        write_cache: volume.write_cache.unwrap_or(WriteCache::Durable),
        read_cache: volume.read_cache.unwrap_or(true),
        group: group_of(state, volume).unwrap_or(state.default_group()),
        branch: None,
    });
    records.extend(MetaRecord::limit(number, Ceilings::default(), volume.ceilings));
    records.extend(MetaRecord::weigh(number, WEIGHT_DEFAULT, volume.weight));
    records.extend(placement_of(state, number, volume));
    records
}

/// The record by which a volume is to lie where its description says; `None` if it is, or nothing is said. What is pinned stays so.
pub fn placement_of(state: &PoolState, number: u32, volume: &VolumeDescription) -> Option<MetaRecord> {
    let known = state.placement(number);
    let place = volume.place.filter(|place| *place != known.place)?;
    Some(MetaRecord::PlacementChanged { volume: number, placement: Placement { place, ..known } })
}

/// The record by which a pool's cache switches stand as its description says; none where they do, or it says nothing.
pub fn switches_of(state: &PoolState, pool: &PoolDescription) -> Option<MetaRecord> {
    let now = state.cache_switches();
    let wanted = CacheSwitches {
        read: pool.read_cache.unwrap_or(now.read),
        write: pool.write_cache.unwrap_or(now.write),
    };
    (wanted != now).then_some(MetaRecord::PoolCacheChanged(wanted))
}

/// The group of sets that a volume is to lie on.
fn group_of(state: &PoolState, volume: &VolumeDescription) -> Result<u32, PlanError> {
    let Some(name) = &volume.group else { return Ok(state.default_group()) };
    let group = state.group_named(name).ok_or_else(|| PlanError::NoGroup {
        volume: volume.name.clone(),
        group: name.clone(),
        pool: state.name().to_owned(),
        known: quoted(state.group_names()),
    })?;
    match state.group_stays(group) {
        true => Ok(group),
        false => Err(MetaError::GroupLeaves { name: name.clone() }.into()),
    }
}

/// A thick volume must fit what is free.
pub fn check_fits(state: &PoolState, volume: &VolumeDescription) -> Result<(), PlanError> {
    let group = group_of(state, volume)?;
    let free = state.room_in(group);
    if volume.thin || state.extents_of(volume.sectors.0) <= free {
        return Ok(());
    }
    Err(PlanError::NoSpace {
        volume: volume.name.clone(),
        size: volume.sectors.bytes(),
        place: match state.name_of_group(group) {
            Some(name) => format!("group {name:?} of pool {:?}", state.name()),
            None => format!("pool {:?}", state.name()),
        },
        free: SectorCount(free * state.geometry().extent_sectors).bytes(),
    })
}

/// Maps every extent of the thick volumes, to the lowest slots: a pool that is to be as full as its volumes are large.
pub fn fill(state: &mut PoolState) -> Result<(), PlanError> {
    let mut allocation = state.allocation_end();
    let mut runs: Vec<MappedRun> = Vec::new();
    for group in 0..state.groups().len() as u32 {
        let mut slots = state.slots_of_group(group);
        let thick = state.volumes().filter(|volume| !volume.thin && volume.group == group);
        for volume in thick {
            let count = u32::try_from(state.extents_of(volume.sectors)).expect("the volume was checked");
            for index in 0..count {
                let slot = slots.next().expect("the volume was checked to fit");
                let slot = SlotRef { slot, allocation };
                allocation += 1;
                match runs.last_mut() {
                    Some(last)
                        if last.volume == volume.number
                            && last.run.slot.slot + u64::from(last.run.count) == slot.slot =>
                    {
                        last.run.count += 1;
                    }
                    _ => runs.push(MappedRun { volume: volume.number, run: Run { index, count: 1, slot } }),
                }
            }
        }
    }
    if runs.is_empty() {
        return Ok(());
    }
    let reserved = MetaRecord::AllocationsReserved { end: allocation };
    state.apply_all(&[reserved, MetaRecord::MapExtents(runs)])?;
    Ok(())
}

fn default_chunklet(drive_sectors: u64, pool: &PoolDescription) -> u64 {
    let share = drive_sectors / CHUNKLETS_PER_DRIVE_MIN;
    let power = if share == 0 { 0 } else { 1 << share.ilog2() };
    let least = if pool.checksums { CHUNKLET_SECTORS_MIN } else { CHUNKLET_SECTORS_MIN_UNTABLED };
    power
        .clamp(least, CHUNKLET_SECTORS_MAX)
        .max(pool.groups.iter().map(|group| group.raid.stripe_unit.0).max().unwrap_or(0))
}

/// How a column of chunklets is divided; without checksums there are no tables in it.
fn column_plan(layout: &Layout, chunklet_sectors: u64, extent_sectors: u64, checksums: bool) -> ColumnPlan {
    match checksums {
        true => ColumnPlan::new(layout, chunklet_sectors, extent_sectors),
        false => ColumnPlan::without_tables(layout, chunklet_sectors, extent_sectors),
    }
}

/// The shape of the sets of a group.
pub(crate) fn shape_of(state: &PoolState, group: &SetGroup) -> Result<SetShape, String> {
    let geometry = state.geometry();
    let layout = Layout::new(&config_of(&group.raid)?).map_err(|error| error.to_string())?;
    let columns =
        column_plan(&layout, geometry.chunklet_sectors, geometry.extent_sectors, geometry.checksums);
    match columns.slots_per_set == u64::from(group.slots_per_set) {
        true => Ok(SetShape { layout, table_sectors: columns.table_sectors }),
        false => Err("its sets have another number of slots than their size gives".to_owned()),
    }
}

/// The sets and slots of a pool, shared by all shards.
#[derive(Clone)]
pub struct PoolShape {
    /// The RAID sets, with the columns that are being rebuilt or moved.
    pub sets: Arc<RaidSets>,
    /// Where slots lie in the sets.
    pub slots: Arc<SlotMap>,
    /// By group; of those that come later, as soon as it is needed.
    shapes: Arc<[OnceLock<SetShape>; GROUPS_MAX]>,
}

impl PoolShape {
    /// The shape of a state, columns that are being rebuilt as far as they are.
    pub fn new(state: &PoolState) -> Result<PoolShape, PlanError> {
        let geometry = state.geometry();
        let contradiction = |fact: String| PlanError::Record { pool: state.name().to_owned(), fact };
        let shapes = state.groups().iter().map(|group| shape_of(state, group));
        let shapes: Vec<SetShape> = shapes.collect::<Result<_, String>>().map_err(contradiction)?;
        // A pool has a shape before it has sets.
        let of_batch = |batch: &SetBatch| (shapes[batch.group as usize], batch.sets);
        let runs: Vec<(SetShape, u32)> = shapes
            .first()
            .map(|shape| (*shape, 0))
            .into_iter()
            .chain(state.batches().iter().map(of_batch))
            .collect();
        let sets = RaidSets::from_runs(&runs, geometry.chunklet_sectors, &table_of(state))
            .map_err(|error| contradiction(error.to_string()))?
            .with_data_start(geometry.area.data_start_sectors);
        let slots =
            SlotMap::of_batches(&sets, geometry.extent_sectors, state.batches().iter().map(joining_sets));
        let known: [OnceLock<SetShape>; GROUPS_MAX] = Default::default();
        known.iter().zip(&shapes).for_each(|(known, shape)| _ = known.set(*shape));
        let shape = PoolShape { sets: Arc::new(sets), slots: Arc::new(slots), shapes: Arc::new(known) };
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

    /// The layout of the sets of a group of this state.
    pub fn layout_of(&self, state: &PoolState, group: u32) -> Layout {
        self.shape_of(state, group).layout
    }

    fn shape_of(&self, state: &PoolState, group: u32) -> &SetShape {
        self.shapes[group as usize].get_or_init(|| {
            shape_of(state, &state.groups()[group as usize]).expect("it was checked when the group was made")
        })
    }

    /// Takes over sets that have joined the state since.
    pub fn follow(&self, state: &PoolState) {
        for batch in &state.batches()[self.slots.batch_count()..] {
            let first = self.sets.count();
            let columns: Vec<ChunkletAddress> = (first..first + batch.sets)
                .flat_map(|set| (0..state.group_of(set).columns()).map(move |column| (set, column)))
                .map(|(set, column)| state.column(set, column))
                .collect();
            let shape = self.shape_of(state, batch.group);
            self.sets.append(shape, &columns).expect("the state has checked them");
            self.slots.append(&self.sets, joining_sets(batch));
        }
    }

    /// The sets of a group have no columns any more.
    pub fn give_up(&self, state: &PoolState, group: u32) {
        let own = self.sets.all().filter(|set| state.group_number_of(set.0) == group);
        own.for_each(|set| self.sets.give_up(set));
    }

    /// A slot is about to get an extent: nothing is stored in it, so a column that is being rebuilt has all of it.
    pub fn declare_fresh(&self, slot: u64) {
        if !self.sets.any_rebuilding() {
            return;
        }
        let set = self.slots.place(slot).set;
        for column in self.sets.rebuilding_columns(set).iter() {
            self.sets.set_rebuilt(set, column, self.slots.rows(slot));
        }
    }
}

/// The chunklets of all sets of a state, set after set; those of groups that are gone are nowhere.
fn table_of(state: &PoolState) -> Vec<ChunkletAddress> {
    let mut there = state.set_table().iter().copied();
    let of_batch = |batch: &SetBatch| {
        let group = &state.groups()[batch.group as usize];
        let count = batch.sets as usize * group.raid.set_size as usize;
        match group.is_gone() {
            true => vec![NOWHERE; count],
            false => there.by_ref().take(count).collect(),
        }
    };
    state.batches().iter().flat_map(of_batch).collect()
}

fn joining_sets(batch: &SetBatch) -> JoiningSets {
    JoiningSets { sets: batch.sets, sets_per_band: batch.sets_per_band, group: batch.group }
}

/// Drives for which a running pool has room: those it has, and some that may join before it is started again. A drive that is
/// taken back joins too, so one with a bad cable may do so often.
pub fn members_max(count: usize) -> usize {
    count + 512
}

/// The drives of a pool's description.
pub struct PoolDrives {
    /// All of them, by their places in the description: those of its sets, then those that hold the log or the flash cache alone.
    pub all: Vec<usize>,
    /// Places among these that hold the log, as far as the file names them.
    pub log: Vec<u32>,
    /// Places among these that hold the flash cache, in the same way.
    pub flash_cache: Vec<u32>,
}

impl PoolDrives {
    /// Those of a pool.
    pub fn of(pool: &PoolDescription) -> PoolDrives {
        let mut all = pool.drives.clone();
        for drive in pool.log_drives.iter().chain(&pool.flash_cache.drives) {
            if !all.contains(drive) {
                all.push(*drive);
            }
        }
        let place =
            |drive: &usize| all.iter().position(|other| other == drive).expect("it was just added") as u32;
        let [log, flash_cache] =
            [&pool.log_drives, &pool.flash_cache.drives].map(|drives| drives.iter().map(place).collect());
        PoolDrives { all, log, flash_cache }
    }
}
