//! Which members to believe again, and of which sets: pure, from the pool's state and from when each member left.
//!
//! A set ends when it lacks more than its level makes up for. A column that was in service until then holds everything
//! that was ever acknowledged on the set; one that had left before is stale. As few columns are believed as the set needs,
//! the freshest: such a set has no redundancy that could contradict them, so it gives one answer at all times.

use std::collections::{BTreeMap, BTreeSet};

use tier0_pool::{PoolState, Rebuild, RebuildSource, SlotHome};
use tier0_raid::layout::{Column, ColumnMask, Layout};
use tier0_raid::set::{RaidSets, SetIndex};

/// What is known of members.
pub(super) trait Members {
    /// The generation in which a member left service, [`u64::MAX`] where it did not.
    fn left_in(&self, member: u32) -> u64;
    /// The generation until which its drive holds what was true: not after [`Self::left_in`].
    fn holds_until(&self, member: u32) -> u64;
    /// Whether it is there and could be believed again.
    fn is_candidate(&self, member: u32) -> bool;
}

/// How a set fares that has not all it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is assembled with columns that had left before it ended.
    Stale,
    /// It cannot be assembled.
    Dead,
}

/// What is to be done.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// Members to believe again.
    pub(super) readmitted: BTreeSet<u32>,
    /// By set, those that are not whole.
    pub(super) fates: BTreeMap<u32, Fate>,
    /// Set and column: what a readmitted member holds of it counts.
    pub(super) believed: Vec<(u32, u32)>,
    /// Set and column on readmitted members: what they hold does not count, the others make it anew.
    pub(super) rebuilt: Vec<(u32, u32)>,
}

/// Chooses; `also` are members that are believed again for another reason.
pub(super) fn choose(state: &PoolState, sets: &RaidSets, known: &impl Members, also: &[u32]) -> Choice {
    let mut choice = Choice { readmitted: also.iter().copied().collect(), ..Choice::default() };
    for set in (0..state.set_count()).filter(|set| !sets.is_gone(SetIndex(*set))) {
        let layout = sets.layout(SetIndex(set));
        let lacking = lacking(state, layout, set);
        if layout.survives(lacking) {
            continue;
        }
        let Some(needed) = needed(state, layout, known, set, lacking) else {
            choice.fates.insert(set, Fate::Dead);
            continue;
        };
        let end = end_of(state, layout, known, set);
        let is_stale = |column: Column| known.holds_until(drive_of(state, set, column)) < end;
        if needed.iter().any(is_stale) {
            choice.fates.insert(set, Fate::Stale);
        }
        choice.readmitted.extend(needed.iter().map(|column| drive_of(state, set, column)));
        choice.believed.extend(needed.iter().map(|column| (set, u32::from(column.0))));
    }
    let believed: BTreeSet<(u32, u32)> = choice.believed.iter().copied().collect();
    let others = state.all_columns().filter(|place| !believed.contains(place));
    choice.rebuilt = others.filter(|(set, column)| is_rebuilt(state, &choice, *set, *column)).collect();
    choice
}

fn drive_of(state: &PoolState, set: u32, column: Column) -> u32 {
    state.column(set, u32::from(column.0)).drive
}

/// Whether a column has to be made anew on its readmitted member: no rebuild makes it anew elsewhere.
fn is_rebuilt(state: &PoolState, choice: &Choice, set: u32, column: u32) -> bool {
    let elsewhere = state.rebuild(set, column).is_some_and(|rebuild| state.is_active(rebuild.target.drive));
    choice.readmitted.contains(&state.column(set, column).drive) && !elsewhere
}

fn columns(layout: &Layout) -> impl Iterator<Item = Column> + use<> {
    (0..layout.columns() as u8).map(Column)
}

/// The columns that a set does not have, or not all of.
pub(super) fn lacking(state: &PoolState, layout: &Layout, set: u32) -> ColumnMask {
    let lacks = |column: &Column| {
        let is_there = state.is_active(drive_of(state, set, *column));
        match state.rebuild(set, u32::from(column.0)) {
            None => !is_there,
            Some(rebuild) => {
                // Each row of a column that moves is at one place only.
                let has_target = state.is_active(rebuild.target.drive);
                let is_evacuated = rebuild.source == RebuildSource::Whole && is_there && has_target;
                let is_rebuilt = has_target && is_complete(state, set, rebuild);
                !(is_evacuated || is_rebuilt)
            }
        }
    };
    columns(layout).filter(lacks).collect()
}

/// Whether every slot of a set that is in use is on the target of a rebuild.
fn is_complete(state: &PoolState, set: u32, rebuild: &Rebuild) -> bool {
    let is_used = |index: u64| {
        let slot = state.slot_at(SlotHome { set, index: index as u32 });
        slot.is_some_and(|slot| state.used_slots().contains(slot))
    };
    (0..rebuild.rebuilt.bound()).all(|index| rebuild.rebuilt.contains(index) || !is_used(index))
}

/// The columns to believe again so that the set survives: no more than it takes, the freshest.
fn needed(
    state: &PoolState,
    layout: &Layout,
    known: &impl Members,
    set: u32,
    lacking: ColumnMask,
) -> Option<ColumnMask> {
    let is_there = |column: &Column| known.is_candidate(drive_of(state, set, *column));
    let mut stalest: Vec<Column> = lacking.iter().filter(is_there).collect();
    let mut needed: ColumnMask = stalest.iter().copied().collect();
    if !layout.survives(lacking - needed) {
        return None;
    }
    stalest.sort_by_key(|column| known.holds_until(drive_of(state, set, *column)));
    for column in stalest {
        if layout.survives(lacking - needed.without(column)) {
            needed = needed.without(column);
        }
    }
    Some(needed)
}

/// The generation in which a set lost what it could not do without: nothing was acknowledged on it since.
fn end_of(state: &PoolState, layout: &Layout, known: &impl Members, set: u32) -> u64 {
    let left = |column: Column| known.left_in(drive_of(state, set, column));
    let mut generations: Vec<u64> = columns(layout).map(left).collect();
    generations.sort_unstable();
    let ended = |generation: &u64| {
        let gone: ColumnMask = columns(layout).filter(|column| left(*column) <= *generation).collect();
        !layout.survives(gone)
    };
    generations.into_iter().find(ended).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tier0_pool::{
        ChunkletAddress, DriveClass, Geometry, Member, MemberState, MetaRecord, MetadataArea, RaidRecord,
    };
    use tier0_raid::layout::{RaidConfig, RaidLevel};
    use tier0_raid::set::SetShape;
    use tier0_units::SectorCount;
    use uuid::Uuid;

    use super::*;

    /// By member: when it left, and whether it is there. One that never left and has an older state is in `put_back`.
    struct Known {
        members: Vec<(u64, bool)>,
        put_back: Vec<(u32, u64)>,
    }

    impl Members for Known {
        fn left_in(&self, member: u32) -> u64 {
            self.members[member as usize].0
        }

        fn holds_until(&self, member: u32) -> u64 {
            let put_back = self.put_back.iter().find(|one| one.0 == member);
            put_back.map_or(self.left_in(member), |one| one.1)
        }

        fn is_candidate(&self, member: u32) -> bool {
            let (left, is_there) = self.members[member as usize];
            (left != u64::MAX || self.put_back.iter().any(|one| one.0 == member)) && is_there
        }
    }

    const SERVES: (u64, bool) = (u64::MAX, true);
    const MISSING: (u64, bool) = (u64::MAX, false);

    /// Sets on these members each, and what is chosen for them.
    fn chosen(level: RaidLevel, sets: &[&[u32]], known: Vec<(u64, bool)>) -> Choice {
        chosen_of(level, sets, known, Vec::new())
    }

    fn chosen_of(
        level: RaidLevel,
        sets: &[&[u32]],
        known: Vec<(u64, bool)>,
        put_back: Vec<(u32, u64)>,
    ) -> Choice {
        let width = sets[0].len();
        let member = |number: usize| Member {
            id: Uuid::from_u128(number as u128 + 1),
            name: format!("d{number}"),
            sectors: 1 << 20,
            class: DriveClass::Disk,
            state: MemberState::Active,
            path: String::new(),
            leaving: false,
            role: Default::default(),
            group: 0,
        };
        let geometry = Geometry {
            chunklet_sectors: 1024,
            extent_sectors: 64,
            slots_per_set: 4,
            spare_chunklets: 0,
            raid: RaidRecord {
                level: level.name().into(),
                set_size: width as u32,
                groups: 1,
                stripe_unit_sectors: 8,
            },
            checksums: true,
            area: MetadataArea::plan([1 << 20; 6], 1024, 64),
        };
        let members = (0..known.len()).map(member).collect();
        let mut state = PoolState::new("a", "p", Uuid::from_u128(99), geometry, members).expect("a pool");
        let columns = sets.iter().enumerate().flat_map(|(set, drives)| {
            drives.iter().map(move |drive| ChunkletAddress { drive: *drive, index: set as u32 })
        });
        let columns = columns.collect();
        state.apply_all(&[MetaRecord::SetsAdded { columns, sets_per_band: 1, group: 0 }]).expect("sets");
        for (place, (left, is_there)) in (0u32..).zip(&known) {
            if *left != u64::MAX || !is_there || put_back.iter().any(|one| one.0 == place) {
                state.apply_all(&[MetaRecord::MemberLost { member: place }]).expect("lost");
            }
        }
        let layout = Layout::new(&RaidConfig::new(level, width, SectorCount(8))).expect("a layout");
        let shape = SetShape { layout, table_sectors: 0 };
        let sets = RaidSets::from_table(shape, 1024, state.set_table()).expect("sets");
        choose(&state, &sets, &Known { members: known, put_back }, &[])
    }

    #[test]
    fn nothing_is_believed_that_is_not_needed() {
        let choice = chosen(RaidLevel::Raid5, &[&[0, 1, 2]], vec![(5, true), SERVES, SERVES]);
        assert_eq!(choice, Choice::default());
    }

    #[test]
    fn of_two_stale_legs_the_fresher_is_believed_and_it_has_everything() {
        let choice = chosen(RaidLevel::Raid1, &[&[0, 1]], vec![(5, true), (9, true)]);
        assert_eq!(choice.readmitted, BTreeSet::from([1]));
        assert_eq!((choice.fates, choice.believed), (BTreeMap::new(), vec![(0, 1)]));
        let choice = chosen(RaidLevel::Raid1, &[&[0, 1]], vec![(5, true), (9, false)]);
        assert_eq!(choice.fates, BTreeMap::from([(0, Fate::Stale)]));
        let choice = chosen(RaidLevel::Raid1, &[&[0, 1]], vec![(5, true), MISSING]);
        assert_eq!(choice.fates, BTreeMap::from([(0, Fate::Stale)]));
    }

    #[test]
    fn raid_5_believes_as_many_as_it_takes() {
        // The first left while the set went on; the second was the one it could not do without.
        let choice = chosen(RaidLevel::Raid5, &[&[0, 1, 2, 3]], vec![(5, true), (9, true), SERVES, SERVES]);
        assert_eq!((choice.readmitted, choice.fates), (BTreeSet::from([1]), BTreeMap::new()));
        let choice = chosen(RaidLevel::Raid5, &[&[0, 1, 2, 3]], vec![(5, true), (9, false), SERVES, SERVES]);
        assert_eq!(choice.readmitted, BTreeSet::from([0]));
        assert_eq!(choice.fates, BTreeMap::from([(0, Fate::Stale)]));
        let choice = chosen(RaidLevel::Raid5, &[&[0, 1, 2]], vec![SERVES, MISSING, MISSING]);
        assert_eq!((choice.readmitted, choice.fates), (BTreeSet::new(), BTreeMap::from([(0, Fate::Dead)])));
    }

    /// Both legs of a mirror that were put back together were believed and said to lose nothing.
    #[test]
    fn what_was_put_back_to_an_older_state_may_have_lost_what_came_after() {
        let (sets, put_back) = ([&[0, 1][..]], vec![(0, 5), (1, 6)]);
        let choice = chosen_of(RaidLevel::Raid1, &sets, vec![SERVES, SERVES], put_back);
        assert_eq!((choice.fates, choice.believed), (BTreeMap::from([(0, Fate::Stale)]), vec![(0, 1)]));
    }

    #[test]
    fn sets_that_do_without_a_member_make_its_columns_anew() {
        let sets: [&[u32]; 3] = [&[0, 1], &[0, 2], &[1, 2]];
        let choice = chosen(RaidLevel::Raid10, &sets, vec![(5, true), MISSING, SERVES]);
        assert_eq!(choice.readmitted, BTreeSet::from([0]));
        assert_eq!(choice.fates, BTreeMap::from([(0, Fate::Stale)]));
        assert_eq!((choice.believed, choice.rebuilt), (vec![(0, 0)], vec![(1, 0)]));
    }
}
