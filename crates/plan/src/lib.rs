//! From descriptions and states to sets, slots and maps: pure arithmetic, the same in both worlds and in every shard.
//!
//! - [`NewPool`]: the first state of a pool that is described.
//! - [`PoolShape`]: the sets and slots of a state.
//! - [`new_group`]: a group of sets that a pool gets.
//! - [`plan_growth`]: the sets that a pool can grow by.
//! - [`plan_flash_cache`]: where its flash cache of another size lies.
//! - [`roles_of`]: what the drives are for that a description names.
//! - [`sets_survive`], [`could_go_on`]: which drives a pool does without.

mod error;
mod flash_cache;
mod group;
mod growth;
mod pool;
mod roles;
mod survival;

use std::collections::BTreeSet;

use tier0_description::shape::config_of;
use tier0_pool::{PoolState, SetGroup};
use tier0_raid::layout::Layout;

pub use error::PlanError;
pub use flash_cache::plan_flash_cache;
pub use group::new_group;
pub use growth::{Growth, plan_growth};
pub use pool::{
    Lanes, NewPool, PoolDrives, PoolShape, check_fits, fill, members_max, new_volume, parts_of, placement_of,
    switches_of,
};
pub use roles::roles_of;
pub use survival::{ConsentNeeded, could_go_on, sets_survive, sets_that_fail};

/// Chunklets a drive has at least where their size is not given: enough to spread a rebuild, few enough to list.
const CHUNKLETS_PER_DRIVE_MIN: u64 = 64;
/// The largest chunklet that is chosen, sectors: 1 GiB, the reference array's.
const CHUNKLET_SECTORS_MAX: u64 = 2 << 20;
/// The smallest extent that is chosen, sectors: 1 MiB.
const EXTENT_SECTORS_MIN: u64 = 2048;

/// The level of each of some groups: "raid10", or where groups have names "raid10 (group fast)".
pub fn levels_of(state: &PoolState, groups: &BTreeSet<u32>) -> String {
    let of_group = |number: &u32| {
        let group = state.groups().get(*number as usize)?;
        Some(match state.name_of_group(*number) {
            Some(name) => format!("{} (group {name})", group.raid.level),
            None => group.raid.level.clone(),
        })
    };
    groups.iter().filter_map(of_group).collect::<Vec<_>>().join(" and ")
}

/// The levels of a pool's groups, each once: "raid10", "raid10 and raid5".
pub fn levels(state: &PoolState) -> String {
    let mut levels: Vec<&str> = Vec::new();
    for (_, group) in state.groups_there() {
        if !levels.contains(&group.raid.level.as_str()) {
            levels.push(&group.raid.level);
        }
    }
    levels.join(" and ")
}

/// The smallest region for a ring of a pool's write log, in sectors: enough for the group that needs most, of those that there are.
pub fn ring_sectors_min(groups: &[SetGroup]) -> u64 {
    let of_group = |group: &SetGroup| {
        let (parity_columns, row_pages) = row_kind(group);
        tier0_cache::ring_sectors_min(parity_columns, row_pages)
    };
    groups.iter().filter(|group| !group.is_gone()).map(of_group).max().unwrap_or(0)
}

/// Parity columns and data pages of a group's rows.
fn row_kind(group: &SetGroup) -> (u32, u32) {
    let layout = config_of(&group.raid).ok().and_then(|config| Layout::new(&config).ok());
    let layout = layout.expect("the shape was checked when the group was made or read");
    (layout.parities() as u32, layout.row_pages() as u32)
}

/// The most that slots may have beyond an extent, percent.
const WASTE_PERCENT_MAX: u64 = 5;
/// The largest extent that is chosen, sectors: 64 MiB.
const EXTENT_SECTORS_MAX: u64 = 64 << 11;

/// The smallest extent of at least 1 MiB of which slots in each of these layouts waste least: for one layout whole rows, so
/// that no slot has idle sectors, for several as little as may be.
fn default_extent(layouts: &[Layout]) -> u64 {
    let row = longest_row(layouts);
    fitting_extent(layouts, EXTENT_SECTORS_MIN).unwrap_or(EXTENT_SECTORS_MIN.div_ceil(row) * row)
}

/// The smallest extent of whole longest rows, at least of this many sectors, of which slots in none of these layouts waste
/// much; none up to the largest.
fn fitting_extent(layouts: &[Layout], at_least: u64) -> Option<u64> {
    let row = longest_row(layouts);
    let fits = |extent: &u64| {
        layouts
            .iter()
            .all(|layout| wasted(layout, *extent) * 100 <= slot_of(layout, *extent) * WASTE_PERCENT_MAX)
    };
    let mut extents = (at_least.div_ceil(row) * row..=EXTENT_SECTORS_MAX).step_by(row as usize);
    extents.find(fits)
}

fn longest_row(layouts: &[Layout]) -> u64 {
    layouts.iter().map(|layout| layout.row_sectors().0).max().unwrap_or(EXTENT_SECTORS_MIN)
}

/// Data sectors of a slot of an extent.
fn slot_of(layout: &Layout, extent: u64) -> u64 {
    let row = layout.row_sectors().0;
    extent.div_ceil(row) * row
}

/// Data sectors of a slot that no extent uses.
fn wasted(layout: &Layout, extent: u64) -> u64 {
    slot_of(layout, extent) - extent
}

#[cfg(test)]
mod tests {
    use tier0_raid::layout::{RaidConfig, RaidLevel};
    use tier0_units::SectorCount;

    use super::*;

    /// What was advised for the first of three odd widths did not fit the second, and what was advised then not the third.
    #[test]
    fn an_extent_that_is_advised_fits_all_groups() {
        let raid5 = |set_size| RaidConfig {
            level: RaidLevel::Raid5,
            set_size,
            stripe_unit: SectorCount(2048),
            raid50_groups: 1,
        };
        let layouts = [4, 6, 8].map(|set_size| Layout::new(&raid5(set_size)).expect("a layout"));
        let extent = fitting_extent(&layouts, EXTENT_SECTORS_MIN).expect("there is one");
        for layout in &layouts {
            let (idle, slot) = (wasted(layout, extent), slot_of(layout, extent));
            assert!(idle * 100 <= slot * WASTE_PERCENT_MAX, "{idle} of {slot}");
        }
        assert_eq!(fitting_extent(&layouts, extent), Some(extent));
        assert_eq!(fitting_extent(&layouts, EXTENT_SECTORS_MAX + 1), None);
    }
}
