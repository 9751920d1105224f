//! How many bytes the parts of a checkpoint's body take: known without encoding them.

use super::page::{PAGE_BYTES, PLACE_BYTES, page_count};
use crate::state::{
    FlashCachePlacement, LogPlacement, Member, PoolState, Rebuild, SetGroup, TEXT_BYTES_MAX, Volume,
};

const COUNT_BYTES: u64 = 4;
const TEXT_LENGTH_BYTES: u64 = 2;
const UUID_BYTES: u64 = 16;

/// Identity, size, state, class, name.
const MEMBER_FIXED_BYTES: u64 = UUID_BYTES + 8 + 1 + 1 + TEXT_LENGTH_BYTES;
/// The most a member takes.
pub(crate) const MEMBER_BYTES_MAX: u64 = MEMBER_FIXED_BYTES + TEXT_BYTES_MAX as u64;
/// A chunklet of a set: drive and number.
pub(crate) const CHUNKLET_BYTES: u64 = 8;
/// The group of a drive, a batch or a volume, where a pool has groups.
const OF_GROUP_BYTES: u64 = 4;
/// Drives, batches and volumes for whose group there is always room: as many as may join at once.
const GROUPED_KEPT: u64 = 64;
/// The place of a volume in a family, where there are families.
pub(crate) const BRANCH_BYTES: u64 = 5;
/// The switch of a volume's read cache, where any cache is switched off.
pub(crate) const SWITCH_BYTES: u64 = 1;
/// The two of the pool.
const POOL_SWITCHES_BYTES: u64 = 2;
/// The ceilings of a volume that has some: its number and three of them.
pub(crate) const CEILINGS_BYTES: u64 = 16;
/// What those of one volume more take at most: the first come with their count.
pub(crate) const CEILINGS_GROWTH: u64 = COUNT_BYTES + CEILINGS_BYTES;
/// The weight of a volume that has another than the default: its number and the weight.
pub(crate) const WEIGHT_BYTES: u64 = 5;
/// What that of one volume more takes at most: the first comes with their count.
pub(crate) const WEIGHTS_GROWTH: u64 = COUNT_BYTES + WEIGHT_BYTES;
/// A batch of sets.
pub(crate) const BATCH_BYTES: u64 = 8;
/// Number, identity, size, thin, mode, name.
const VOLUME_FIXED_BYTES: u64 = 4 + UUID_BYTES + 8 + 1 + 1 + TEXT_LENGTH_BYTES;
/// Geometry without its level's name: chunklet, extent, slots, spares, checksums, three of the area, three of RAID.
const GEOMETRY_FIXED_BYTES: u64 = 8 + 8 + 4 + 8 + 1 + 3 * 8 + 3 * 4 + TEXT_LENGTH_BYTES;
/// End of allocations, next volume, scrub.
const COUNTERS_BYTES: u64 = 8 + 4 + 8 + 8;
/// Members, groups, columns, rebuilds, rings, volumes, paths.
const COUNTS_BYTES: u64 = 7 * COUNT_BYTES;

/// What a member takes.
pub(crate) fn member_bytes(member: &Member) -> u64 {
    MEMBER_FIXED_BYTES + member.name.len() as u64
}

/// What a volume takes.
pub(crate) fn volume_bytes(volume: &Volume) -> u64 {
    VOLUME_FIXED_BYTES + volume.name.len() as u64
}

/// What a group takes besides the first.
pub(crate) fn group_bytes(group: &SetGroup) -> u64 {
    2 * TEXT_LENGTH_BYTES + (group.name.len() + group.raid.level.len()) as u64 + 4 + 8 + 3 * 4
}

/// What each drive, batch and volume takes besides, to say its group.
pub(crate) fn of_group_bytes(state: &PoolState) -> u64 {
    if state.has_groups() { OF_GROUP_BYTES } else { 0 }
}

/// What the groups take where they have names, and that drives, batches and volumes say theirs, those among them that are kept
/// room for.
pub(crate) fn groups_bytes(state: &PoolState) -> u64 {
    let inventory = &state.inventory;
    let of_group = inventory.members.len() + inventory.batches.len() + inventory.volumes.len();
    let groups = state.groups().iter().map(group_bytes).sum::<u64>();
    COUNT_BYTES + groups + (of_group as u64 + GROUPED_KEPT) * OF_GROUP_BYTES
}

/// What the first volume of another one's family takes besides itself: that every volume says its place in a family, and room
/// for the owners of every page.
pub(crate) fn families_bytes(state: &PoolState) -> u64 {
    let volumes = state.inventory.volumes.len() as u64 + 1;
    volumes * BRANCH_BYTES + page_count(state.slot_count()) * (PAGE_BYTES as u64 + PLACE_BYTES)
}

/// What the switches of the caches take, where one of them is off.
pub(crate) fn switches_bytes(state: &PoolState) -> u64 {
    POOL_SWITCHES_BYTES + state.inventory.volumes.len() as u64 * SWITCH_BYTES
}

/// What the stages of groups take, where one of them does not stay.
pub(crate) fn stages_bytes(state: &PoolState) -> u64 {
    if state.groups().iter().all(SetGroup::stays) { 0 } else { state.groups().len() as u64 }
}

/// What the first group takes besides that is to leave: it comes with the stages of all.
pub(crate) fn stages_growth(state: &PoolState) -> u64 {
    state.groups().len() as u64 - stages_bytes(state)
}

/// What a column of a group takes that is being rebuilt: set, column, target, a bit per slot.
pub(crate) fn rebuild_bytes(group: &SetGroup) -> u64 {
    4 + 4 + CHUNKLET_BYTES + u64::from(group.slots_per_set).div_ceil(64) * 8
}

/// What all columns take that are being rebuilt.
pub(crate) fn rebuilds_bytes(state: &PoolState) -> u64 {
    let of = |(set, _, _): (u32, u32, &Rebuild)| rebuild_bytes(state.group_of(set));
    state.rebuilds().map(of).sum()
}

/// What the log's place takes.
pub(crate) fn log_bytes(log: &LogPlacement) -> u64 {
    let lanes = if log.lanes > 1 { COUNT_BYTES } else { 0 };
    lanes + log.rings.iter().map(|ring| UUID_BYTES + 1 + ring.copies.len() as u64 * 20).sum::<u64>()
}

/// What the ceilings of volumes take.
pub(crate) fn ceilings_bytes(state: &PoolState) -> u64 {
    match state.inventory.ceilings.len() as u64 {
        0 => 0,
        count => COUNT_BYTES + count * CEILINGS_BYTES,
    }
}

/// What the weights of volumes take.
pub(crate) fn weights_bytes(state: &PoolState) -> u64 {
    match state.inventory.weights.len() as u64 {
        0 => 0,
        count => COUNT_BYTES + count * WEIGHT_BYTES,
    }
}

/// What the place of the flash cache takes, where there is one.
pub(crate) fn flash_cache_bytes(placement: &FlashCachePlacement) -> u64 {
    let device = |runs: usize| UUID_BYTES + 4 + 8 + COUNT_BYTES + runs as u64 * 8;
    let devices = placement.devices.iter().map(|one| device(one.chunklets.len())).sum::<u64>();
    if devices > 0 { COUNT_BYTES + devices } else { 0 }
}

/// The bytes of a body without the paths and the table of pages.
pub(crate) fn fixed_bytes(state: &PoolState) -> u64 {
    let inventory = &state.inventory;
    let texts = state.array.len() + state.name.len() + state.geometry.raid.level.len();
    2 * TEXT_LENGTH_BYTES
        + texts as u64
        + GEOMETRY_FIXED_BYTES
        + if state.has_groups() { groups_bytes(state) } else { 0 }
        + stages_bytes(state)
        + COUNTERS_BYTES
        + COUNTS_BYTES
        + inventory.members.iter().map(member_bytes).sum::<u64>()
        + inventory.batches.len() as u64 * BATCH_BYTES
        + inventory.columns.len() as u64 * CHUNKLET_BYTES
        + rebuilds_bytes(state)
        + log_bytes(&inventory.log)
        + flash_cache_bytes(&inventory.flash_cache)
        + ceilings_bytes(state)
        + weights_bytes(state)
        + inventory.volumes.values().map(volume_bytes).sum::<u64>()
        + if state.has_families() { inventory.volumes.len() as u64 * BRANCH_BYTES } else { 0 }
        + if state.has_switches() { switches_bytes(state) } else { 0 }
}
