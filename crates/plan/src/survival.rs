//! Which drives a pool does without.

use thiserror::Error;
use tier0_pool::PoolState;
use tier0_raid::layout::{Column, ColumnMask};
use tier0_raid::set::{RaidSets, SetIndex};

/// Whether a pool could have gone on with the members alone that are away now: they have its log, some of its metadata, and
/// enough of every set.
pub fn could_go_on(sets: &RaidSets, state: &PoolState, carriers: &[u32], away: impl Fn(u32) -> bool) -> bool {
    let lacks = |set, column, drive| !away(drive) || sets.lacking_columns(set).contains(column);
    let mut rings = state.log().rings.iter();
    rings.all(|ring| ring.copies.iter().any(|copy| away(copy.member)))
        && carriers.iter().any(|member| away(*member))
        && sets_survive(sets, state.set_count(), lacks)
}

/// Whether every set does without the columns that `lacks` names; it is asked for each drive that has some of a column.
pub fn sets_survive(sets: &RaidSets, count: u32, lacks: impl Fn(SetIndex, Column, u32) -> bool) -> bool {
    sets_that_fail(sets, count, lacks).next().is_none()
}

/// The sets that cannot do without the columns that `lacks` names, as of [`sets_survive`].
pub fn sets_that_fail(
    sets: &RaidSets,
    count: u32,
    lacks: impl Fn(SetIndex, Column, u32) -> bool,
) -> impl Iterator<Item = SetIndex> {
    (0..count).map(SetIndex).filter(move |set| {
        let set = *set;
        let moves_from = |column| sets.source(set, column).map(|chunklet| chunklet.drive);
        let lacking: ColumnMask = sets
            .columns(set)
            .filter(|column| {
                lacks(set, *column, sets.chunklet(set, *column).drive)
                    || moves_from(*column).is_some_and(|drive| lacks(set, *column, drive))
            })
            .collect();
        !sets.layout(set).survives(lacking)
    })
}

/// Drives are missing that could have gone on by themselves.
#[derive(Debug, Error)]
#[error(
    "pool {pool:?} is missing {drives}, which could have continued without the connected drives, whose data \
     would then be outdated; connect the missing drives, or start with {options} to give up data that only they hold"
)]
pub struct ConsentNeeded {
    /// The pool.
    pub pool: String,
    /// The names of what is missing.
    pub drives: String,
    /// The options that give consent.
    pub options: String,
}
