//! Which members carry the metadata: three where there are three, flash before disks.

use crate::state::{DriveClass, PoolState};

/// The most members that carry the metadata: two may be lost at once.
pub(super) const CARRIERS_MAX: usize = 3;

/// The carriers of a pool whose carriers were `present`: those that still serve, and others until there are three.
/// Drives of the fastest class come first, then those in front.
pub(super) fn choose(state: &PoolState, present: &[u32], has_drive: impl Fn(u32) -> bool) -> Vec<u32> {
    let usable = |place: u32| state.is_active(place) && has_drive(place);
    let mut chosen: Vec<u32> = present.iter().copied().filter(|place| usable(*place)).collect();
    let mut others: Vec<(DriveClass, u32)> = state
        .members_by_place()
        .filter(|(place, _)| usable(*place) && !chosen.contains(place))
        .map(|(place, member)| (member.class, place))
        .collect();
    others.sort_unstable();
    chosen.extend(others.into_iter().map(|(_, place)| place));
    chosen.truncate(CARRIERS_MAX);
    chosen
}
