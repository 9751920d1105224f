//! The body of a checkpoint: the state as bytes, little-endian; `docs/format.md` has every byte.
//!
//! The map is not in it, but the table of its pages; before version 3 it was the other way round.

use std::collections::BTreeMap;
use std::ops::Range;

use tier0_units::SectorCount;
use tier0_world::{PlantedBug, planted};

use super::page::{PageTable, most_places, page_count};
use super::pieces::Header;
use super::sizes::{CEILINGS_BYTES, WEIGHT_BYTES, ceilings_bytes, weights_bytes};
use crate::codec::{Reader, Writer};
use crate::features::{
    CEILINGS, DISPLACED, FAMILIES, FLASH_CACHE, Features, GROUPS, IN_CHECKPOINTS, LANES, LEFT_BEHIND, MIXED,
    PLACEMENTS, ROLES, STAGES, SWITCHES, WEIGHTS,
};
use crate::record::{ScrubCursor, decode_run};
use crate::state::{
    Away, BitSet, Branch, CacheSwitches, Ceilings, Derived, DriveClass, DriveRole, ExtentMap,
    FlashCacheDevice, FlashCachePlacement, GROUPS_MAX, Geometry, GroupStage, Inventory, LogCopy,
    LogPlacement, LogRing, Member, MemberState, MetaError, PATH_BYTES_MAX, Pin, Place, Placement, PoolState,
    Rebuild, RebuildSource, SetBatch, SetGroup, Tenants, TierSettings, Volume, WEIGHT_DEFAULT, WRITE_CACHES,
    are_placed, placed, write_cache_code,
};
use crate::{ChunkletAddress, MetadataArea, RaidRecord};

/// The least bytes of a member, a ring, a copy, a volume: what a damaged count is checked against.
const MEMBER_BYTES_MIN: usize = 28;
const RING_BYTES_MIN: usize = 17;
const VOLUME_BYTES_MIN: usize = 32;
const FLASH_DEVICE_BYTES_MIN: usize = 40;
const REBUILD_BYTES_MIN: usize = 16;
const PAIR_BYTES: usize = 8;
const GROUP_BYTES_MIN: usize = 28;
const RUN_BYTES: usize = 28;
/// How many paths there are; what each takes beside its text.
pub(crate) const PATHS_COUNT_BYTES: usize = 4;
const PATH_BYTES_MIN: usize = 6;
/// What a chunklet that was left behind takes: itself, set and column.
const LEFT_BEHIND_BYTES: usize = 16;
/// What the role of a member takes: its place and the role.
const ROLE_BYTES: usize = 5;
/// What a column takes that lies elsewhere than where it belongs: set, column and member.
const DISPLACED_BYTES: usize = 12;
/// What a line about the place of a volume takes: volume, place, extents, and the end of a pin.
const PLACEMENT_BYTES: usize = 21;
/// In the line that has the tier's settings, for a volume.
const OF_TIER: u32 = u32::MAX;
/// What the state of a member that is to leave has more than its own number.
const LEAVING: u8 = 16;

/// The bytes of a state without the map: those before the table of the map's pages, and those behind it.
pub(crate) struct Around {
    front: Vec<u8>,
    rear: Vec<u8>,
    /// What is in the bytes behind the table.
    compatible: u64,
    /// What a build must know to understand it.
    incompatible: u64,
}

impl Around {
    /// The features of such a body.
    pub(crate) fn features(&self) -> Features {
        Features { compatible: self.compatible, incompatible: self.incompatible, ..Features::NONE }
    }

    /// The whole body.
    pub(crate) fn with_table(self, table: &PageTable) -> Vec<u8> {
        let mut writer = Writer(self.front);
        table.encode(&mut writer);
        writer.0.extend_from_slice(&self.rear);
        writer.0
    }
}

/// The bytes of a state, as many of them as there is room for where others can do without.
pub(crate) fn encode_state(state: &PoolState) -> Around {
    let mut writer = Writer::default();
    let inventory = &state.inventory;
    writer.text(&state.array);
    writer.text(&state.name);
    encode_geometry(&mut writer, &state.geometry);
    let has_groups = state.has_groups();
    let groups_bit = if has_groups { GROUPS } else { 0 };
    let lanes_bit = if state.log().lanes > 1 { LANES } else { 0 };
    let families_bit = if state.has_families() { FAMILIES } else { 0 };
    let has_switches = state.has_switches();
    let switches_bit = if has_switches { SWITCHES } else { 0 };
    let flash_cache_bit = if inventory.flash_cache.devices.is_empty() { 0 } else { FLASH_CACHE };
    let mixed_bit = if state.is_mixed() { MIXED } else { 0 };
    let has_stages = !inventory.groups.iter().all(SetGroup::stays);
    let stages_bit = if has_stages { STAGES } else { 0 };
    let incompatible =
        groups_bit | lanes_bit | families_bit | switches_bit | flash_cache_bit | mixed_bit | stages_bit;
    // The group that something is of follows it, where there is more than the first.
    let of_group = |writer: &mut Writer, group: u32| {
        if has_groups {
            writer.u32(group);
        }
    };
    if has_groups {
        encode_groups(&mut writer, &inventory.groups);
    }
    if has_stages {
        inventory.groups.iter().for_each(|group| writer.u8(group.stage.code()));
    }
    writer.u64(state.allocation_end);
    writer.u32(inventory.next_volume);
    writer.u64(state.scrub.next_slot);
    writer.u64(state.scrub.passes);
    if has_switches {
        writer.u8(u8::from(inventory.cache_switches.read));
        writer.u8(u8::from(inventory.cache_switches.write));
    }
    writer.count(inventory.members.len());
    for member in &inventory.members {
        encode_member(&mut writer, member);
        of_group(&mut writer, member.group);
    }
    writer.count(inventory.batches.len());
    for batch in &inventory.batches {
        writer.u32(batch.sets);
        writer.u32(batch.sets_per_band);
        of_group(&mut writer, batch.group);
    }
    writer.count(inventory.columns.len());
    inventory.columns.iter().for_each(|chunklet| encode_chunklet(&mut writer, *chunklet));
    writer.count(inventory.rebuilds.len());
    for ((set, column), rebuild) in &inventory.rebuilds {
        writer.u32(*set);
        // Sets have at most 256 columns.
        writer.u16(*column as u16);
        writer.u8(rebuild.source.code());
        writer.u8(0);
        encode_chunklet(&mut writer, rebuild.target);
        rebuild.rebuilt.words().iter().for_each(|word| writer.u64(*word));
    }
    encode_log(&mut writer, &inventory.log);
    if flash_cache_bit != 0 {
        encode_flash_cache(&mut writer, &inventory.flash_cache);
    }
    writer.count(inventory.volumes.len());
    for volume in inventory.volumes.values() {
        encode_volume(&mut writer, volume);
        of_group(&mut writer, volume.group);
        if state.has_families() {
            writer.u32(volume.family());
            writer.u8(volume.branch_number());
        }
        if has_switches {
            writer.u8(u8::from(volume.read_cache));
        }
    }
    let pages = page_count(state.slot_count());
    // What others can do without leaves room for families, which may come: a root must not lie where their blocks will.
    let (places, table) = most_places(pages, true);
    let room = state.geometry.area.body_bytes_max(places);
    let room = room.saturating_sub(writer.0.len() as u64).saturating_sub(table);
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let (rear, compatible) = encode_rear(state, room.saturating_sub(PATHS_COUNT_BYTES));
    encode_paths(&mut writer, state.members(), room.saturating_sub(rear.len()));
    Around { front: writer.0, rear, compatible, incompatible }
}

/// What others can do without, as much as fits `room` bytes, and the features that say what of it is there: the first is what
/// is missed most.
fn encode_rear(state: &PoolState, room: usize) -> (Vec<u8>, u64) {
    let Inventory { left_behind, members, displaced, ceilings, weights, .. } = &state.inventory;
    // There is always room for ceilings and weights, which come late.
    let for_weights = weights_bytes(state) as usize;
    let kept = ceilings_bytes(state) as usize + for_weights;
    let mut rear = Rear { writer: Writer::default(), room: room.saturating_sub(kept), features: 0 };
    rear.add(LEFT_BEHIND, LEFT_BEHIND_BYTES, left_behind.iter(), |writer, (chunklet, (set, column))| {
        encode_chunklet(writer, *chunklet);
        writer.u32(*set);
        writer.u32(*column);
    });
    let roles = (0u32..).zip(members).filter(|(_, member)| !member.role.is_by_use());
    rear.add(ROLES, ROLE_BYTES, roles, |writer, (place, member)| {
        writer.u32(place);
        writer.u8(member.role.code());
    });
    rear.add(DISPLACED, DISPLACED_BYTES, displaced.iter(), |writer, ((set, column), home)| {
        writer.u32(*set);
        writer.u32(*column);
        writer.u32(*home);
    });
    rear.room = room.saturating_sub(for_weights);
    rear.add(CEILINGS, CEILINGS_BYTES as usize, ceilings.iter(), |writer, (volume, ceilings)| {
        writer.u32(*volume);
        writer.u32(ceilings.iops_max);
        writer.u32(ceilings.mbps_max);
        writer.u32(ceilings.burst_seconds);
    });
    let lines = placement_lines(state);
    rear.add(PLACEMENTS, PLACEMENT_BYTES, lines.iter(), |writer, (volume, place, extents, until)| {
        writer.u32(*volume);
        writer.u8(*place);
        writer.u32(extents.start);
        writer.u32(extents.end);
        writer.u64(*until);
    });
    rear.room = room;
    rear.add(WEIGHTS, WEIGHT_BYTES as usize, weights.iter(), |writer, (volume, weight)| {
        writer.u32(*volume);
        writer.u8(u8::try_from(*weight).expect("a weight is at most 100"));
    });
    (rear.writer.0, rear.features)
}

/// A line about the place of a volume: the volume, the code of a place, extents, and a time or rate.
type PlacementLine = (u32, u8, Range<u32>, u64);

/// What is said of the places of volumes: a line for all of a volume, which has no extents, and one for each pin; and one for the
/// tier where it is not as usual.
fn placement_lines(state: &PoolState) -> Vec<PlacementLine> {
    let tier = state.tier();
    let settings = (OF_TIER, u8::from(tier.is_on), 0..0, tier.rate_bytes_per_s);
    if planted(PlantedBug::PinForgotten) {
        return Vec::new();
    }
    let mut lines: Vec<PlacementLine> =
        (tier != TierSettings::default()).then_some(settings).into_iter().collect();
    for (volume, placement) in state.placements() {
        if placement.place != Place::default() {
            lines.push((volume, placement.place.code(), 0..0, 0));
        }
        let pins = placement.pins.iter();
        lines.extend(pins.map(|pin| (volume, pin.to.code(), pin.extents.clone(), pin.until_unix_s)));
    }
    lines
}

/// Reads what [`placement_lines`] says.
fn decode_placements(reader: &mut Reader<'_>, state: &mut PoolState) -> Option<()> {
    let lines: Vec<PlacementLine> = reader.many(PLACEMENT_BYTES, |reader| {
        Some((reader.u32()?, reader.u8()?, reader.u32()?..reader.u32()?, reader.u64()?))
    })?;
    for (volume, code, extents, number) in lines {
        if volume == OF_TIER {
            state.inventory.tier = TierSettings { is_on: code != 0, rate_bytes_per_s: number };
            continue;
        }
        let to = Place::from_code(code)?;
        let placement: &mut Placement = state.inventory.placements.entry(volume).or_default();
        match extents == (0..0) {
            true => placement.place = to,
            false => placement.pins.push(Pin { extents, to, until_unix_s: number }),
        }
    }
    Some(())
}

/// The bytes behind the table of pages: lists, each of which a feature tells.
struct Rear {
    writer: Writer,
    room: usize,
    features: u64,
}

impl Rear {
    /// Adds a list, as much of it as there is room for; nothing where that is nothing.
    fn add<T>(
        &mut self,
        feature: u64,
        bytes_each: usize,
        list: impl Iterator<Item = T> + Clone,
        encode: impl Fn(&mut Writer, T),
    ) {
        let left = self.room.saturating_sub(self.writer.0.len());
        let kept = list.clone().count().min(left.saturating_sub(4) / bytes_each);
        if kept > 0 {
            self.features |= feature;
            self.writer.count(kept);
            list.take(kept).for_each(|one| encode(&mut self.writer, one));
        }
    }
}

/// Reads what [`encode_rear`] wrote.
fn decode_rear(reader: &mut Reader<'_>, features: u64, state: &mut PoolState) -> Option<()> {
    if features & LEFT_BEHIND != 0 {
        state.inventory.left_behind = decode_entries(reader, LEFT_BEHIND_BYTES, |reader| {
            Some((decode_chunklet(reader)?, (reader.u32()?, reader.u32()?)))
        })?;
    }
    if features & ROLES != 0 {
        let roles = decode_entries(reader, ROLE_BYTES, |reader| {
            Some((reader.u32()?, DriveRole::from_code(reader.u8()?)?))
        })?;
        for (place, role) in roles {
            state.inventory.members.get_mut(place as usize)?.role = role;
        }
    }
    if features & DISPLACED != 0 {
        state.inventory.displaced = decode_entries(reader, DISPLACED_BYTES, |reader| {
            Some(((reader.u32()?, reader.u32()?), reader.u32()?))
        })?;
    }
    if features & CEILINGS != 0 {
        state.inventory.ceilings = decode_entries(reader, CEILINGS_BYTES as usize, decode_ceilings)?;
        let mut listed = state.inventory.ceilings.iter();
        let is_sound = |(volume, ceilings): (&u32, &Ceilings)| {
            !ceilings.are_none() && state.check_ceilings(*volume, *ceilings).is_ok()
        };
        listed.all(is_sound).then_some(())?;
    }
    if features & PLACEMENTS != 0 {
        decode_placements(reader, state)?;
    }
    if features & WEIGHTS != 0 {
        state.inventory.weights = decode_entries(reader, WEIGHT_BYTES as usize, |reader| {
            Some((reader.u32()?, u32::from(reader.u8()?)))
        })?;
        let mut listed = state.inventory.weights.iter();
        let is_sound = |(volume, weight): (&u32, &u32)| {
            *weight != WEIGHT_DEFAULT && state.check_weight(*volume, *weight).is_ok()
        };
        listed.all(is_sound).then_some(())?;
    }
    Some(())
}

/// A volume's number and its ceilings.
fn decode_ceilings(reader: &mut Reader<'_>) -> Option<(u32, Ceilings)> {
    let volume = reader.u32()?;
    let (iops_max, mbps_max, burst_seconds) = (reader.u32()?, reader.u32()?, reader.u32()?);
    Some((volume, Ceilings { iops_max, mbps_max, burst_seconds }))
}

/// Reads a list of which every entry has another key, and which is not empty.
fn decode_entries<K: Ord, V>(
    reader: &mut Reader<'_>,
    bytes_each: usize,
    decode: impl Fn(&mut Reader<'_>) -> Option<(K, V)>,
) -> Option<BTreeMap<K, V>> {
    let all = reader.many(bytes_each, decode)?;
    let count = all.len();
    let map: BTreeMap<K, V> = all.into_iter().collect();
    (map.len() == count && count > 0).then_some(map)
}

/// A body that was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Body {
    /// The state.
    pub(crate) state: PoolState,
    /// The pages of the map, which the state lacks; none where it has the map.
    pub(crate) table: Option<PageTable>,
}

/// The paths of members, as many as fit `room` bytes: how many, and of each the member's place and the text.
pub(crate) fn encode_paths(writer: &mut Writer, members: &[Member], room: usize) {
    let mut left = room.saturating_sub(PATHS_COUNT_BYTES);
    let fits = |(_, member): &(u32, &Member)| {
        let bytes = PATH_BYTES_MIN + member.path.len();
        let is_kept = !member.path.is_empty() && bytes <= left;
        left -= if is_kept { bytes } else { 0 };
        is_kept
    };
    let kept: Vec<(u32, &Member)> = (0u32..).zip(members).filter(fits).collect();
    writer.count(kept.len());
    for (place, member) in kept {
        writer.u32(place);
        writer.text(&member.path);
    }
}

/// Reads what [`encode_paths`] wrote into the members.
pub(crate) fn decode_paths(reader: &mut Reader<'_>, members: &mut [Member]) -> Option<()> {
    let mut next = 0;
    for _ in 0..reader.count(PATH_BYTES_MIN)? {
        let (place, path) = (reader.u32()?, reader.text()?);
        if place < next || path.is_empty() || path.len() > PATH_BYTES_MAX {
            return None;
        }
        next = place.checked_add(1)?;
        members.get_mut(place as usize)?.path = path;
    }
    Some(())
}

/// Reads a state from arbitrary bytes, and proves its invariants, those of the map only where it is in the body: the
/// reader of the pages proves the rest. `area` is where the pool's superblocks say that its metadata lies: a state that
/// disagrees is no state of that pool.
pub(crate) fn decode_body(bytes: &[u8], header: &Header, area: &MetadataArea) -> Result<Body, MetaError> {
    let damaged = || MetaError::Contradiction { fact: "its checkpoint cannot be read".to_owned() };
    let mut reader = Reader(bytes);
    let mut state = decode_state(&mut reader, header, area).ok_or_else(damaged)?;
    // Before version 3 a body without paths ends here.
    if header.is_paged() || !reader.is_empty() {
        decode_paths(&mut reader, &mut state.inventory.members).ok_or_else(damaged)?;
    }
    let has_families = header.features.incompatible & FAMILIES != 0;
    let table = match header.is_paged() {
        true => Some(PageTable::decode(&mut reader, has_families).ok_or_else(damaged)?),
        false => None,
    };
    decode_rear(&mut reader, header.features.compatible, &mut state).ok_or_else(damaged)?;
    if !reader.is_empty() && !header.features.has_rest_beyond(IN_CHECKPOINTS) {
        return Err(damaged());
    }
    match &table {
        Some(table) => {
            state.inventory.owners = state.derive_all_but_map()?;
            // First that the table is as large: so damage cannot ask for more memory.
            if table.count() != page_count(state.slot_count_of_batches()) {
                return Err(damaged());
            }
            state.slots = Tenants::new(state.slot_stretches());
        }
        None => Derived { owners: state.inventory.owners, slots: state.slots } = state.derive()?,
    }
    Ok(Body { state, table })
}

fn decode_state(reader: &mut Reader<'_>, header: &Header, area: &MetadataArea) -> Option<PoolState> {
    let (array, name) = (reader.text()?, reader.text()?);
    let geometry = decode_geometry(reader)?;
    if geometry.area != *area || geometry.check().is_err() {
        return None;
    }
    let has_groups = header.features.incompatible & GROUPS != 0;
    let has_families = header.features.incompatible & FAMILIES != 0;
    let mut groups = match has_groups {
        true => decode_groups(reader, &geometry)?,
        false => vec![geometry.first_group()],
    };
    if header.features.incompatible & STAGES != 0 {
        for group in &mut groups {
            group.stage = GroupStage::from_code(reader.u8()?)?;
        }
        // That all stay goes without saying.
        (!groups.iter().all(SetGroup::stays)).then_some(())?;
    }
    let of_group = |reader: &mut Reader<'_>| if has_groups { reader.u32() } else { Some(0) };
    let allocation_end = reader.u64()?;
    let next_volume = reader.u32()?;
    let scrub = ScrubCursor { next_slot: reader.u64()?, passes: reader.u64()? };
    let has_switches = header.features.incompatible & SWITCHES != 0;
    let cache_switches = match has_switches {
        true => CacheSwitches { read: reader.flag()?, write: reader.flag()? },
        false => CacheSwitches::default(),
    };
    let member = |r: &mut Reader<'_>| {
        let member = decode_member(r)?;
        Some(Member { group: of_group(r)?, ..member })
    };
    let members = reader.many(MEMBER_BYTES_MIN, member)?;
    let batch = |r: &mut Reader<'_>| {
        let (sets, sets_per_band) = (r.u32()?, r.u32()?);
        Some(SetBatch { group: of_group(r)?, sets, sets_per_band })
    };
    let batches = reader.many(PAIR_BYTES, batch)?;
    let columns = reader.many(PAIR_BYTES, decode_chunklet)?;
    if !are_placed(&groups, &batches, columns.len() as u64) {
        return None;
    }
    let slots_of = |set: u32| {
        let batch = placed(&groups, &batches).find(|batch| batch.reaches(set))?;
        Some(u64::from(batch.group.slots_per_set))
    };
    let rebuilds = reader.many(REBUILD_BYTES_MIN, |reader| decode_rebuild(reader, slots_of))?;
    let rebuild_count = rebuilds.len();
    let rebuilds: BTreeMap<(u32, u32), Rebuild> = rebuilds.into_iter().collect();
    if rebuilds.len() != rebuild_count {
        return None;
    }
    let lanes = if header.features.incompatible & LANES != 0 { reader.u32()? } else { 1 };
    let rings = reader.many(RING_BYTES_MIN, decode_ring)?;
    let flash_cache = match header.features.incompatible & FLASH_CACHE != 0 {
        true => decode_flash_cache(reader)?,
        false => FlashCachePlacement::default(),
    };
    // Every extent has a slot of its own, and the slots fit the metadata area: so damage cannot ask for more memory.
    let slots: u64 = placed(&groups, &batches).map(|batch| batch.slots()).sum();
    let mut extents_left = slots.min(area.body_bytes_max(0) / RUN_BYTES as u64);
    let (mut volumes, mut maps) = (BTreeMap::new(), BTreeMap::new());
    for _ in 0..reader.count(VOLUME_BYTES_MIN)? {
        let volume = decode_volume(reader)?;
        let mut volume = Volume { group: of_group(reader)?, ..volume };
        if has_families {
            volume.branch = decode_branch(reader, volume.number)?;
        }
        if has_switches {
            volume.read_cache = reader.flag()?;
        }
        let map = match header.is_paged() {
            true => ExtentMap::default(),
            false => decode_map(reader, &mut extents_left)?,
        };
        maps.insert(volume.number, map);
        if volumes.insert(volume.number, volume).is_some() {
            return None;
        }
    }
    let log = LogPlacement { rings, lanes };
    let (left_behind, displaced, owners) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
    let inventory = Inventory {
        members,
        groups,
        batches,
        columns,
        rebuilds,
        left_behind,
        displaced,
        log,
        volumes,
        next_volume,
        has_families,
        is_mixed: header.features.incompatible & MIXED != 0,
        cache_switches,
        flash_cache,
        ceilings: BTreeMap::new(),
        weights: BTreeMap::new(),
        placements: BTreeMap::new(),
        tier: TierSettings::default(),
        owners,
    };
    let (id, slots, away) = (header.pool, Tenants::new(Vec::new()), Away::default());
    let state = PoolState { array, name, id, geometry, inventory, allocation_end, scrub, maps, slots, away };
    // Where all caches are on, that goes without saying.
    (state.has_switches() == has_switches).then_some(state)
}

/// The groups: the name of the first, whose shape the geometry has, and the others.
fn encode_groups(writer: &mut Writer, groups: &[SetGroup]) {
    writer.text(&groups[0].name);
    writer.count(groups.len() - 1);
    for SetGroup { name, raid, slots_per_set, spare_chunklets, stage: _ } in &groups[1..] {
        writer.text(name);
        writer.u32(*slots_per_set);
        writer.u64(*spare_chunklets);
        encode_raid(writer, raid);
    }
}

fn decode_groups(reader: &mut Reader<'_>, geometry: &Geometry) -> Option<Vec<SetGroup>> {
    let first = SetGroup { name: reader.text()?, ..geometry.first_group() };
    let others = reader.many(GROUP_BYTES_MIN, |reader| {
        let (name, slots_per_set, spare_chunklets) = (reader.text()?, reader.u32()?, reader.u64()?);
        let (raid, stage) = (decode_raid(reader)?, GroupStage::Stays);
        Some(SetGroup { name, raid, slots_per_set, spare_chunklets, stage })
    })?;
    let groups: Vec<SetGroup> = std::iter::once(first).chain(others).collect();
    let is_sound = |group: &SetGroup| group.raid.set_size > 0 && group.raid.set_size <= 256;
    // A single group without a name goes without saying.
    let are_told = groups.len() > 1 || !groups[0].name.is_empty();
    (are_told && groups.len() <= GROUPS_MAX && groups.iter().all(is_sound)).then_some(groups)
}

fn encode_raid(writer: &mut Writer, raid: &RaidRecord) {
    writer.text(&raid.level);
    writer.u32(raid.set_size);
    writer.u32(raid.groups);
    writer.u32(raid.stripe_unit_sectors);
}

fn decode_raid(reader: &mut Reader<'_>) -> Option<RaidRecord> {
    Some(RaidRecord {
        level: reader.text()?,
        set_size: reader.u32()?,
        groups: reader.u32()?,
        stripe_unit_sectors: reader.u32()?,
    })
}

fn encode_geometry(writer: &mut Writer, geometry: &Geometry) {
    let Geometry { chunklet_sectors, extent_sectors, slots_per_set, spare_chunklets, raid, checksums, area } =
        geometry;
    writer.u64(*chunklet_sectors);
    writer.u64(*extent_sectors);
    writer.u32(*slots_per_set);
    writer.u64(*spare_chunklets);
    writer.u8(u8::from(*checksums));
    encode_area(writer, area);
    encode_raid(writer, raid);
}

fn decode_geometry(reader: &mut Reader<'_>) -> Option<Geometry> {
    Some(Geometry {
        chunklet_sectors: reader.u64()?,
        extent_sectors: reader.u64()?,
        slots_per_set: reader.u32()?,
        spare_chunklets: reader.u64()?,
        checksums: reader.flag()?,
        area: decode_area(reader)?,
        raid: decode_raid(reader)?,
    })
}

pub(crate) fn encode_area(writer: &mut Writer, area: &MetadataArea) {
    writer.u64(area.journal_sectors);
    writer.u64(area.checkpoint_sectors);
    writer.u64(area.data_start_sectors);
}

pub(crate) fn decode_area(reader: &mut Reader<'_>) -> Option<MetadataArea> {
    Some(MetadataArea {
        journal_sectors: reader.u64()?,
        checkpoint_sectors: reader.u64()?,
        data_start_sectors: reader.u64()?,
    })
}

pub(crate) fn encode_member(writer: &mut Writer, member: &Member) {
    writer.uuid(member.id);
    writer.u64(member.sectors);
    writer.u8(member.state.code() + if member.leaving { LEAVING } else { 0 });
    writer.u8(member.class.code());
    writer.text(&member.name);
}

pub(crate) fn decode_member(reader: &mut Reader<'_>) -> Option<Member> {
    let (id, sectors) = (reader.uuid()?, reader.u64()?);
    if sectors > SectorCount::MOST.0 {
        return None;
    }
    let code = reader.u8()?;
    let (leaving, code) = if code < LEAVING { (false, code) } else { (true, code - LEAVING) };
    let (state, class) = (MemberState::from_code(code)?, DriveClass::from_code(reader.u8()?)?);
    let (role, path) = (DriveRole::ByUse, String::new());
    Some(Member { id, sectors, state, leaving, class, role, group: 0, name: reader.text()?, path })
}

fn encode_chunklet(writer: &mut Writer, chunklet: ChunkletAddress) {
    writer.u32(chunklet.drive);
    writer.u32(chunklet.index);
}

fn decode_chunklet(reader: &mut Reader<'_>) -> Option<ChunkletAddress> {
    Some(ChunkletAddress { drive: reader.u32()?, index: reader.u32()? })
}

fn decode_rebuild(
    reader: &mut Reader<'_>,
    slots_of: impl Fn(u32) -> Option<u64>,
) -> Option<((u32, u32), Rebuild)> {
    let place = (reader.u32()?, u32::from(reader.u16()?));
    let slots_per_set = slots_of(place.0)?;
    let source = RebuildSource::from_code(reader.u8()?)?;
    if reader.u8()? != 0 {
        return None;
    }
    let target = decode_chunklet(reader)?;
    let bytes = reader.bytes(slots_per_set.div_ceil(64) as usize * 8)?;
    let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    let rebuilt = BitSet::from_words(slots_per_set, words)?;
    Some((place, Rebuild { target, rebuilt, source }))
}

/// In the number of a ring's copies: it is void.
const VOID_RING: u8 = 0x80;

fn encode_log(writer: &mut Writer, log: &LogPlacement) {
    if log.lanes > 1 {
        writer.u32(log.lanes);
    }
    writer.count(log.rings.len());
    for ring in &log.rings {
        writer.uuid(ring.id);
        writer.u8(ring.copies.len() as u8 | if ring.is_void { VOID_RING } else { 0 });
        for copy in &ring.copies {
            writer.u32(copy.member);
            writer.u64(copy.first_sector);
            writer.u64(copy.sectors);
        }
    }
}

fn decode_ring(reader: &mut Reader<'_>) -> Option<LogRing> {
    let id = reader.uuid()?;
    let count = reader.u8()?;
    let copies = (0..count & !VOID_RING).map(|_| {
        Some(LogCopy { member: reader.u32()?, first_sector: reader.u64()?, sectors: reader.u64()? })
    });
    Some(LogRing { id, copies: copies.collect::<Option<_>>()?, is_void: count & VOID_RING != 0 })
}

fn encode_flash_cache(writer: &mut Writer, placement: &FlashCachePlacement) {
    writer.count(placement.devices.len());
    for device in &placement.devices {
        writer.uuid(device.id);
        writer.u32(device.member);
        writer.u64(device.epoch);
        writer.count(device.chunklets.len());
        for run in &device.chunklets {
            writer.u32(run.start);
            writer.u32(run.end);
        }
    }
}

/// Where there is none, that goes without saying.
fn decode_flash_cache(reader: &mut Reader<'_>) -> Option<FlashCachePlacement> {
    let devices = reader.many(FLASH_DEVICE_BYTES_MIN, |reader| {
        Some(FlashCacheDevice {
            id: reader.uuid()?,
            member: reader.u32()?,
            epoch: reader.u64()?,
            chunklets: reader.many(PAIR_BYTES, |reader| Some(reader.u32()?..reader.u32()?))?,
        })
    })?;
    (!devices.is_empty()).then_some(FlashCachePlacement { devices })
}

fn encode_volume(writer: &mut Writer, volume: &Volume) {
    writer.u32(volume.number);
    writer.uuid(volume.id);
    writer.u64(volume.sectors);
    writer.u8(u8::from(volume.thin));
    writer.u8(write_cache_code(volume.write_cache));
    writer.text(&volume.name);
}

fn decode_volume(reader: &mut Reader<'_>) -> Option<Volume> {
    Some(Volume {
        number: reader.u32()?,
        id: reader.uuid()?,
        sectors: reader.u64()?,
        thin: reader.flag()?,
        write_cache: *WRITE_CACHES.get(usize::from(reader.u8()?))?,
        read_cache: true,
        name: reader.text()?,
        group: 0,
        branch: None,
    })
}

/// The place in a family of the volume with this number.
fn decode_branch(reader: &mut Reader<'_>, volume: u32) -> Option<Option<Branch>> {
    let branch = Branch { family: reader.u32()?, number: reader.u8()? };
    match branch.number {
        0 => (branch.family == volume).then_some(None),
        _ => Some(Some(branch)),
    }
}

/// The map of a volume as it was before version 3.
fn decode_map(reader: &mut Reader<'_>, extents_left: &mut u64) -> Option<ExtentMap> {
    let mut map = ExtentMap::default();
    let mut end = 0;
    for _ in 0..reader.count(RUN_BYTES)? {
        let run = decode_run(reader)?;
        let count = u64::from(run.count);
        let sound = run.count > 0
            && u64::from(run.index) >= end
            && run.end() <= u64::from(u32::MAX)
            && run.slot.allocation > 0
            && run.slot.allocation.checked_add(count).is_some()
            && run.slot.slot.checked_add(count).is_some_and(|end| end <= u64::from(u32::MAX));
        if !sound {
            return None;
        }
        *extents_left = extents_left.checked_sub(count)?;
        end = run.end();
        for (index, slot) in run.iter() {
            map.insert(index, slot);
        }
    }
    Some(map)
}
