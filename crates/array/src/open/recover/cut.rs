//! Parts of drives that store nothing although they should: the drive ends before the size that it had as a member, or was
//! cut short and given its size again. No superblock knows of that; the file system does, where the drive is a file.

use std::collections::BTreeMap;

use tier0_drive::DriveHandle;
use tier0_plan::PoolShape;
use tier0_pool::PoolState;
use tier0_raid::layout::{Column, ColumnMask};
use tier0_raid::set::SetIndex;
use tier0_units::SectorCount;

use super::choice::{Choice, lacking};

/// The drives that store less than they should.
pub(super) struct Cut {
    /// By member: the sectors that it stores.
    stored: BTreeMap<u32, u64>,
    /// By set: the columns that it does not have when it is assembled.
    lacking: BTreeMap<u32, ColumnMask>,
}

impl Cut {
    /// Of the members whose drives are there.
    pub(super) fn of(
        state: &PoolState,
        shape: &PoolShape,
        choice: &Choice,
        drive: impl Fn(u32) -> Option<DriveHandle>,
    ) -> Cut {
        let members = (0u32..).zip(state.members());
        let stored = members.filter_map(|(place, member)| {
            let drive = drive(place)?;
            let stored = drive.stored().0.min(drive.info().sectors.0);
            (stored < member.sectors).then_some((place, stored))
        });
        let believed = |set: u32| -> ColumnMask {
            let of_set = choice.believed.iter().filter(|(own, _)| *own == set);
            of_set.map(|(_, column)| Column(*column as u8)).collect()
        };
        let lacking = |set: u32| lacking(state, shape.sets.layout(SetIndex(set)), set) - believed(set);
        Cut {
            stored: stored.collect(),
            lacking: (0..state.set_count())
                .filter(|set| !shape.sets.is_gone(SetIndex(*set)))
                .map(|set| (set, lacking(set)))
                .collect(),
        }
    }

    /// Whether a slot cannot do without what is stored on no drive that its set has.
    pub(super) fn needs(&self, state: &PoolState, shape: &PoolShape, slot: u64) -> bool {
        let first_row = shape.slots.rows(slot).start.0;
        let set = shape.slots.place(slot).set;
        let layout = shape.sets.layout(set);
        let is_cut = |column: &Column| {
            let (_, start) = shape.sets.place(set, *column);
            let drive = state.column(set.0, u32::from(column.0)).drive;
            let first = start + SectorCount(first_row * layout.stripe_unit().0);
            self.stored.get(&drive).is_some_and(|stored| *stored <= first.0)
        };
        let cut: ColumnMask = shape.sets.columns(set).filter(is_cut).collect();
        let lacking = self.lacking.get(&set.0).copied().unwrap_or_default();
        !cut.is_empty() && layout.survives(lacking) && !layout.survives(lacking | cut)
    }

    /// A sentence on each of them.
    pub(super) fn notes(&self, state: &PoolState) -> Vec<String> {
        let note = |(place, stored): (&u32, &u64)| {
            let member = state.member(*place)?;
            let (from, to) = (SectorCount(*stored).bytes().0, SectorCount(member.sectors).bytes().0);
            Some(format!(
                "drive {:?} holds no data from byte {from} to its end at {to}: it was truncated (even if its \
                 size was restored), or writes there were not stored",
                member.name
            ))
        };
        self.stored.iter().filter_map(note).collect()
    }
}
