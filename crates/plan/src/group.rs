//! A group of sets that a pool is to have besides those that it has.

use tier0_description::shape::record_of;
use tier0_pool::{GroupStage, PoolState, SetGroup};
use tier0_raid::layout::{Layout, RaidConfig};
use tier0_units::SectorCount;

use crate::pool::{check_waste, slots_per_set};
use crate::{PlanError, ring_sectors_min};

/// A group of this name and shape for a pool, with so many chunklets of each of its drives kept free.
///
/// # Errors
/// The pool's chunklets, extents or write log do not fit such sets.
pub fn new_group(
    state: &PoolState,
    name: &str,
    raid: &RaidConfig,
    spare_chunklets: u64,
) -> Result<SetGroup, PlanError> {
    let geometry = state.geometry();
    let layout = Layout::new(raid).expect("a checked shape");
    // The extents of a pool do not change.
    check_waste(state.name(), name, &layout, geometry.extent_sectors, || None)?;
    let sizes = (geometry.chunklet_sectors, geometry.extent_sectors);
    let group = SetGroup {
        name: name.to_owned(),
        raid: record_of(raid),
        slots_per_set: slots_per_set(state.name(), &layout, sizes, geometry.checksums)?,
        spare_chunklets,
        stage: GroupStage::Stays,
    };
    let least = ring_sectors_min(std::slice::from_ref(&group));
    match state.log().copies().map(|copy| copy.sectors).min() {
        Some(has) if has < least => Err(PlanError::LogTooSmall {
            pool: state.name().to_owned(),
            group: name.to_owned(),
            has: SectorCount(has).bytes(),
            needed: SectorCount(least).bytes(),
        }),
        _ => Ok(group),
    }
}
