//! Where the columns of a lost drive go: spare chunklets on many drives, so that many drives share the rebuild.

use std::collections::BTreeSet;

use tier0_pool::ChunkletAddress;

use crate::layout::Column;
use crate::set::{RaidSets, SetIndex};

/// A drive that may take columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareRoom {
    /// Its place in the pool.
    pub drive: u32,
    /// All chunklets it is cut into.
    pub chunklets: u32,
}

/// A column that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpareMove {
    /// The set.
    pub set: SetIndex,
    /// The column.
    pub column: Column,
    /// The chunklet it moves to.
    pub target: ChunkletAddress,
}

/// Where the columns of a lost drive go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparePlan {
    /// The columns that find a place.
    pub moves: Vec<SpareMove>,
    /// Those that do not: every free chunklet is on a drive that their set uses already.
    pub homeless: Vec<(SetIndex, Column)>,
}

/// Finds a spare chunklet for every column on the drive `lost`: on one of the `live` drives that the column's set does
/// not use yet, each drive taking about as many as any other. `taken` are chunklets in use by others than sets, the
/// write log's for instance. Drives give their lowest free chunklets first.
pub fn plan_spares(
    sets: &RaidSets,
    live: &[SpareRoom],
    taken: &BTreeSet<ChunkletAddress>,
    lost: u32,
) -> SparePlan {
    let mut used: BTreeSet<ChunkletAddress> = sets.table().into_iter().collect();
    used.extend(taken);
    let mut rooms: Vec<Room> = live
        .iter()
        .filter(|room| room.drive != lost)
        .map(|room| Room {
            drive: room.drive,
            free: (0..room.chunklets)
                .rev()
                .map(|index| ChunkletAddress { drive: room.drive, index })
                .filter(|chunklet| !used.contains(chunklet))
                .collect(),
            given: 0,
        })
        .collect();
    let mut columns = columns_on(sets, lost);
    // Columns that can go to few drives choose first.
    columns.sort_by_cached_key(|(set, column)| (choices(sets, &rooms, *set), *set, *column));
    let mut plan = SparePlan::default();
    for (set, column) in columns {
        let allowed = rooms.iter_mut().filter(|room| room.allows(sets, set));
        // The least used so far; among equals the one with most left.
        match allowed.min_by_key(|room| (room.given, std::cmp::Reverse(room.free.len()), room.drive)) {
            Some(room) => {
                let target = room.free.pop().expect("a room that allows it has a free chunklet");
                room.given += 1;
                plan.moves.push(SpareMove { set, column, target });
            }
            None => plan.homeless.push((set, column)),
        }
    }
    plan.moves.sort_by_key(|one| (one.set, one.column));
    plan
}

/// A drive while the plan is made.
struct Room {
    drive: u32,
    /// Free chunklets, the lowest last.
    free: Vec<ChunkletAddress>,
    /// How many columns it was given.
    given: usize,
}

impl Room {
    fn allows(&self, sets: &RaidSets, set: SetIndex) -> bool {
        !self.free.is_empty()
            && sets.columns(set).all(|column| sets.chunklet(set, column).drive != self.drive)
    }
}

fn choices(sets: &RaidSets, rooms: &[Room], set: SetIndex) -> usize {
    rooms.iter().filter(|room| room.allows(sets, set)).count()
}

fn columns_on(sets: &RaidSets, drive: u32) -> Vec<(SetIndex, Column)> {
    let all = sets.all().flat_map(|set| sets.columns(set).map(move |column| (set, column)));
    all.filter(|(set, column)| sets.chunklet(*set, *column).drive == drive).collect()
}

#[cfg(test)]
mod tests {
    use tier0_pool::{Chunklets, DATA_START_SECTORS};
    use tier0_units::SectorCount;

    use super::*;
    use crate::layout::{Layout, RaidConfig, RaidLevel};

    fn pool(columns: usize, drives: u32, chunklets: u32, spare: u64) -> (RaidSets, Vec<SpareRoom>) {
        let layout = Layout::new(&RaidConfig::new(RaidLevel::Raid5, columns, SectorCount(8))).expect("valid");
        let sizes = (0..drives).map(|_| ("drive", DATA_START_SECTORS + u64::from(chunklets) * 1024));
        let sets = RaidSets::form(layout, &mut Chunklets::new(sizes, 1024, spare).expect("large enough"));
        (sets, (0..drives).map(|drive| SpareRoom { drive, chunklets }).collect())
    }

    #[test]
    fn a_lost_drive_spreads_over_all_others() {
        // 11 drives of 46 chunklets, 6 of them spare: 40 columns move to 10 drives with 60 spares.
        let (sets, rooms) = pool(4, 11, 46, 6);
        let plan = plan_spares(&sets, &rooms, &BTreeSet::new(), 5);
        assert!(plan.homeless.is_empty());
        assert_eq!(plan.moves.len(), 40);
        let mut targets = BTreeSet::new();
        let mut given = [0; 11];
        for one in &plan.moves {
            assert_eq!(sets.chunklet(one.set, one.column).drive, 5);
            assert!(targets.insert(one.target), "{:?} is given twice", one.target);
            assert!(!sets.table().contains(&one.target));
            let others = (0..4).map(|column| sets.chunklet(one.set, Column(column)).drive);
            assert!(others.into_iter().all(|drive| drive != one.target.drive));
            given[one.target.drive as usize] += 1;
        }
        // 4 each, but for what sets forbid.
        assert!((0..11).filter(|d| *d != 5).all(|d| (3..=5).contains(&given[d])), "{given:?}");
    }

    #[test]
    fn what_others_use_stays_theirs() {
        let (sets, rooms) = pool(3, 6, 8, 4);
        let taken: BTreeSet<_> =
            (0..6).flat_map(|drive| (4..7).map(move |index| ChunkletAddress { drive, index })).collect();
        let plan = plan_spares(&sets, &rooms, &taken, 0);
        assert!(plan.moves.iter().all(|one| one.target.index == 7), "{:?}", plan.moves);
        assert!(plan.moves.len() <= 4 && !plan.moves.is_empty());
    }

    #[test]
    fn a_set_on_all_drives_finds_no_spare() {
        let (sets, rooms) = pool(5, 5, 8, 4);
        let plan = plan_spares(&sets, &rooms, &BTreeSet::new(), 2);
        assert!(plan.moves.is_empty());
        assert_eq!(plan.homeless.len(), 4);
        assert!(plan.homeless.iter().all(|(set, column)| sets.chunklet(*set, *column).drive == 2));
    }
}
