//! What is about to lie on other drives: between the choice of a drive and the record that names it, a verdict may fall.
//!
//! A verdict on a drive holds for what the drives hold when it falls ([`super::arbiter`]); it is recorded later. So a
//! task that puts something onto drives says so first. Nothing goes onto a drive on which the verdict has fallen, and a
//! verdict counts what is on its way as if it had arrived, and as if it had not.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use tier0_raid::layout::{Column, ColumnMask, Layout};
use tier0_raid::set::SetIndex;
use tier0_world::{IoError, PlantedBug, planted};

use super::PoolCore;

/// Something that is about to lie on drives.
#[derive(Clone, Debug)]
pub(super) enum Placing {
    /// A column, on this member.
    Column { set: SetIndex, column: Column, to: u32 },
    /// New sets of a layout: by set and column, the members.
    Sets { layout: Layout, members: Vec<Vec<u32>> },
    /// The copy of the log that a member has, on another one.
    LogCopy { from: u32, to: u32 },
}

impl Placing {
    fn members(&self) -> Vec<u32> {
        match self {
            Placing::Column { to, .. } | Placing::LogCopy { to, .. } => vec![*to],
            Placing::Sets { members, .. } => members.concat(),
        }
    }
}

/// All that is about to lie on drives of a pool.
#[derive(Default)]
pub(super) struct Placings {
    begun: Cell<u64>,
    under_way: RefCell<BTreeMap<u64, Placing>>,
}

impl Placings {
    /// Whether a member that is gone was to have this column.
    pub(super) fn column_lacks(&self, set: SetIndex, column: Column, gone: impl Fn(u32) -> bool) -> bool {
        self.under_way.borrow().values().any(|one| match one {
            Placing::Column { set: its_set, column: its_column, to } => {
                (*its_set, *its_column) == (set, column) && gone(*to)
            }
            Placing::Sets { .. } | Placing::LogCopy { .. } => false,
        })
    }

    /// Whether the new sets do without members that are gone.
    pub(super) fn sets_survive(&self, gone: impl Fn(u32) -> bool) -> bool {
        let survives = |layout: &Layout, members: &[u32]| {
            let lacking: ColumnMask = (0u8..)
                .zip(members)
                .filter(|(_, member)| gone(**member))
                .map(|(place, _)| Column(place))
                .collect();
            layout.survives(lacking)
        };
        self.under_way.borrow().values().all(|one| match one {
            Placing::Sets { layout, members } => members.iter().all(|members| survives(layout, members)),
            Placing::Column { .. } | Placing::LogCopy { .. } => true,
        })
    }

    /// The members that will have the copies of the log which these members have.
    pub(super) fn log_holders(&self, mut holders: Vec<u32>) -> Vec<u32> {
        for one in self.under_way.borrow().values() {
            if let Placing::LogCopy { from, to } = one {
                holders.iter_mut().filter(|holder| **holder == *from).for_each(|holder| *holder = *to);
            }
        }
        holders
    }
}

/// Until this is dropped, verdicts count what is on its way.
pub(super) struct UnderWay<'a> {
    placings: &'a Placings,
    number: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.placings.under_way.borrow_mut().remove(&self.number);
    }
}

/// The verdict on a drive has fallen, so nothing is put onto it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FailedDrive {
    /// The member.
    pub(super) member: u32,
}

impl From<FailedDrive> for IoError {
    fn from(_: FailedDrive) -> IoError {
        IoError::Gone
    }
}

impl PoolCore {
    /// Begins to put something onto drives, unless the verdict on one of them has fallen. To be dropped when the record is stable and the sets of this array know of it.
    pub(super) fn place(&self, placing: Placing) -> Result<UnderWay<'_>, FailedDrive> {
        let failed = placing.members().into_iter().find(|member| self.arbiter.has_failed(*member));
        if let Some(member) = failed.filter(|_| !planted(PlantedBug::PlaceOnFailed)) {
            return Err(FailedDrive { member });
        }
        if let Placing::Column { set, column, .. } = placing {
            self.forget_return(set.0, u32::from(column.0));
        }
        let placings = &self.arbiter.placings;
        let number = placings.begun.replace(placings.begun.get() + 1);
        placings.under_way.borrow_mut().insert(number, placing);
        Ok(UnderWay { placings, number })
    }
}
