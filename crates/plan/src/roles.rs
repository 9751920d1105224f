//! What an array file says of the drives of a pool: which hold data, and which the write log or the flash cache alone.

use tier0_description::Description;
use tier0_pool::{DriveRole, Member, MemberState, MetaRecord, PoolState};

use crate::PoolDrives;

/// What a drive is for that has this place in [`PoolDrives::all`].
pub(crate) fn role_at(place: usize, data_drives: usize) -> DriveRole {
    if place < data_drives { DriveRole::Data } else { DriveRole::Auxiliary }
}

/// The records by which the drives that a pool's description names are for what it says, as far as they are not yet. What
/// drives are for that it does not name, the pool knows.
pub fn roles_of(state: &PoolState, description: &Description, number: usize) -> Vec<MetaRecord> {
    let pool = &description.pools[number];
    let all = PoolDrives::of(pool).all;
    let wanted = |name: &str| {
        let place = all.iter().position(|drive| description.drives[*drive].name == name)?;
        Some(role_at(place, pool.drives.len()))
    };
    let there = state.members_by_place().filter(|(_, member)| member.state != MemberState::Removed);
    let differs = |(place, member): (u32, &Member)| {
        let role = wanted(&member.name).filter(|role| *role != member.role)?;
        Some(MetaRecord::MemberRole { member: place, role })
    };
    there.filter_map(differs).collect()
}
