//! How many bytes the parts of a checkpoint's body take: known without encoding them.

use crate::state::{Geometry, LogPlacement, Member, PoolState, TEXT_BYTES_MAX, Volume};

const COUNT_BYTES: u64 = 4;
const TEXT_LENGTH_BYTES: u64 = 2;
const UUID_BYTES: u64 = 16;

/// Identity, size, state, class, name.
const MEMBER_FIXED_BYTES: u64 = UUID_BYTES + 8 + 1 + 1 + TEXT_LENGTH_BYTES;
/// The most a member takes.
pub(crate) const MEMBER_BYTES_MAX: u64 = MEMBER_FIXED_BYTES + TEXT_BYTES_MAX as u64;
/// A chunklet of a set: drive and number.
pub(crate) const CHUNKLET_BYTES: u64 = 8;
/// A group of sets.
pub(crate) const GROUP_BYTES: u64 = 8;
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

/// What a column takes that is being rebuilt: set, column, target, a bit per slot.
pub(crate) fn rebuild_bytes(geometry: &Geometry) -> u64 {
    4 + 4 + CHUNKLET_BYTES + u64::from(geometry.slots_per_set).div_ceil(64) * 8
}

/// What the log's place takes.
pub(crate) fn log_bytes(log: &LogPlacement) -> u64 {
    log.rings.iter().map(|ring| UUID_BYTES + 1 + ring.copies.len() as u64 * 20).sum()
}

/// The bytes of a body without the paths and the table of pages.
pub(crate) fn fixed_bytes(state: &PoolState) -> u64 {
    let inventory = &state.inventory;
    let texts = state.array.len() + state.name.len() + state.geometry.raid.level.len();
    2 * TEXT_LENGTH_BYTES
        + texts as u64
        + GEOMETRY_FIXED_BYTES
        + COUNTERS_BYTES
        + COUNTS_BYTES
        + inventory.members.iter().map(member_bytes).sum::<u64>()
        + inventory.groups.len() as u64 * GROUP_BYTES
        + inventory.columns.len() as u64 * CHUNKLET_BYTES
        + inventory.rebuilds.len() as u64 * rebuild_bytes(&state.geometry)
        + log_bytes(&inventory.log)
        + inventory.volumes.values().map(volume_bytes).sum::<u64>()
}
