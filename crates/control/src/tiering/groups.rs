//! Which groups of a pool are fast, which are slow, and what moves between them cost.

use std::collections::BTreeMap;

use tier0_policy::tier::{GroupCost, MoveCosts, Redundancy};
use tier0_pool::{DriveClass, PoolState};
use tier0_units::SECTOR_BYTES;

use crate::pool::Pool;

/// The groups of a pool that has a tier. One that is to leave is neither fast nor slow.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TierGroups {
    /// The fast one.
    pub(crate) fast: u32,
    /// The slow ones, with their costs.
    pub(crate) slow: BTreeMap<u32, GroupCost>,
}

impl TierGroups {
    /// The groups of a pool; `None` if it has none of flash alone, or none of disks. Of several fast ones it is the first.
    pub(crate) fn of(pool: &Pool) -> Option<TierGroups> {
        let state = pool.metadata.state();
        let fast = state.groups_that_stay().find(|group| is_fast(&state, *group))?;
        let slow = slow_groups(pool, &state);
        (!slow.is_empty()).then_some(TierGroups { fast, slow })
    }

    /// What a move costs, at most.
    pub(crate) fn move_costs(&self) -> MoveCosts {
        let costs = self.slow.values().map(GroupCost::moves);
        let none = MoveCosts { promotion: 0.0, demotion: 0.0 };
        costs.fold(none, |most, one| MoveCosts {
            promotion: most.promotion.max(one.promotion),
            demotion: most.demotion.max(one.demotion),
        })
    }
}

/// The slow groups of a pool, with their costs.
pub(crate) fn slow_groups(pool: &Pool, state: &PoolState) -> BTreeMap<u32, GroupCost> {
    let slow = state.groups_that_stay().filter(|group| state.has_disks(*group));
    slow.map(|group| (group, cost_of(pool, state, group))).collect()
}

/// Whether all drives that hold data of a group are flash.
pub(super) fn is_fast(state: &PoolState, group: u32) -> bool {
    let mut classes = state.data_classes(group).peekable();
    classes.peek().is_some() && classes.all(|class| class == DriveClass::Flash)
}

fn cost_of(pool: &Pool, state: &PoolState, group: u32) -> GroupCost {
    let layout = pool.shape.layout_of(state, group);
    let redundancy = match layout.parities() {
        0 => Redundancy::Copies(layout.copies_per_unit() as u32),
        parities => Redundancy::Parity(parities as u32),
    };
    GroupCost {
        columns: layout.columns() as u32,
        data_columns: layout.data_units_per_row() as u32,
        redundancy,
        extent_bytes: state.geometry().extent_sectors * SECTOR_BYTES,
    }
}
