//! Which members carry the metadata: three where there are three, flash before disks.

use crate::state::{DriveClass, PoolState};

/// The most members that carry the metadata: two may be lost at once.
pub(super) const CARRIERS_MAX: usize = 3;

/// The carriers of a pool whose carriers were `present`: drives of the fastest class come first, then those that carry already,
/// then those in front.
pub(super) fn choose(state: &PoolState, present: &[u32], has_drive: impl Fn(u32) -> bool) -> Vec<u32> {
    let usable = |place: u32| state.is_active(place) && has_drive(place);
    let rank = |place: u32| present.iter().position(|known| *known == place).unwrap_or(present.len());
    let mut all: Vec<(DriveClass, usize, u32)> = state
        .members_by_place()
        .filter(|(place, _)| usable(*place))
        .map(|(place, member)| (member.class, rank(place), place))
        .collect();
    all.sort_unstable();
    all.truncate(CARRIERS_MAX);
    all.into_iter().map(|(_, _, place)| place).collect()
}
