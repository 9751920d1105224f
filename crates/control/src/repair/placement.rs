//! What is about to lie on other drives: between the choice of a drive and the record that names it, a verdict may fall.
//!
//! A verdict on a drive holds for what the drives hold when it falls ([`crate::repair::arbiter`]); it is recorded later. So a
//! task that puts something onto drives says so first. Nothing goes onto a drive on which the verdict has fallen, and a
//! verdict counts what is on its way as if it had arrived, and as if it had not.

use super::RepairPool;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use tier0_raid::layout::{Column, ColumnMask, Layout};
use tier0_raid::set::SetIndex;
use tier0_world::{IoError, PlantedBug, planted};

/// Something that is about to lie on drives.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// A column, on this member.
    Column { set: SetIndex, column: Column, to: u32 },
    /// New sets of a layout: by set and column, the members.
    Sets { layout: Layout, members: Vec<Vec<u32>> },
    /// The copy of the log that a member has, on another one.
    LogCopy { from: u32, to: u32 },
}

impl Placement {
    fn members(&self) -> Vec<u32> {
        match self {
            Placement::Column { to, .. } | Placement::LogCopy { to, .. } => vec![*to],
            Placement::Sets { members, .. } => members.concat(),
        }
    }
}

/// All that is about to lie on drives of a pool.
#[derive(Default)]
pub(crate) struct PendingPlacements {
    begun: Cell<u64>,
    under_way: RefCell<BTreeMap<u64, Placement>>,
}

impl PendingPlacements {
    /// Whether a member that is gone was to have this column.
    pub(crate) fn column_lacks(&self, set: SetIndex, column: Column, gone: impl Fn(u32) -> bool) -> bool {
        self.under_way.borrow().values().any(|one| match one {
            Placement::Column { set: its_set, column: its_column, to } => {
                (*its_set, *its_column) == (set, column) && gone(*to)
            }
            Placement::Sets { .. } | Placement::LogCopy { .. } => false,
        })
    }

    /// Whether the new sets do without members that are gone.
    pub(crate) fn sets_survive(&self, gone: impl Fn(u32) -> bool) -> bool {
        let survives = |layout: &Layout, members: &[u32]| {
            let lacking: ColumnMask = (0u8..)
                .zip(members)
                .filter(|(_, member)| gone(**member))
                .map(|(place, _)| Column(place))
                .collect();
            layout.survives(lacking)
        };
        self.under_way.borrow().values().all(|one| match one {
            Placement::Sets { layout, members } => members.iter().all(|members| survives(layout, members)),
            Placement::Column { .. } | Placement::LogCopy { .. } => true,
        })
    }

    /// The members that will have the copies of the log which these members have.
    pub(crate) fn log_holders(&self, mut holders: Vec<u32>) -> Vec<u32> {
        for one in self.under_way.borrow().values() {
            if let Placement::LogCopy { from, to } = one {
                holders.iter_mut().filter(|holder| **holder == *from).for_each(|holder| *holder = *to);
            }
        }
        holders
    }
}

/// Until this is dropped, verdicts count what is on its way.
pub(crate) struct PendingPlacement<'a> {
    pending_placements: &'a PendingPlacements,
    number: u64,
}

impl Drop for PendingPlacement<'_> {
    fn drop(&mut self) {
        self.pending_placements.under_way.borrow_mut().remove(&self.number);
    }
}

/// The verdict on a drive has fallen, so nothing is put onto it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedDrive {
    /// The member.
    pub(crate) member: u32,
}

impl From<FailedDrive> for IoError {
    fn from(_: FailedDrive) -> IoError {
        IoError::Gone
    }
}

impl RepairPool {
    /// Begins to put something onto drives, unless the verdict on one of them has fallen. To be dropped when the record is stable and the sets of this array know of it.
    pub(crate) fn place(&self, placing: Placement) -> Result<PendingPlacement<'_>, FailedDrive> {
        let failed = placing.members().into_iter().find(|member| self.arbiter.has_failed(*member));
        if let Some(member) = failed.filter(|_| !planted(PlantedBug::PlaceOnFailed)) {
            return Err(FailedDrive { member });
        }
        if let Placement::Column { set, column, .. } = placing {
            self.forget_return(set.0, u32::from(column.0));
        }
        let pending_placements = &self.arbiter.pending_placements;
        let number = pending_placements.begun.replace(pending_placements.begun.get() + 1);
        pending_placements.under_way.borrow_mut().insert(number, placing);
        Ok(PendingPlacement { pending_placements, number })
    }
}
