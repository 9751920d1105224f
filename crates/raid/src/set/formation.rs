//! Forming sets: each takes one chunklet from as many different drives as it has columns.
//!
//! A set takes from the drives that have most chunklets left, in turn where they are equal. So drives of one size
//! are used evenly whatever the set's width, sets formed one after the other lie on different drives, and all of a
//! band of sets lie at about the same depth of the disks.
//!
//! Pools that rebuild choose at random among equals (Holland and Gibson, "Parity Declustering", ASPLOS 1992): taken in
//! turn, two drives could share all their sets, and neither could be the other's spare.

use tier0_pool::Chunklets;

use crate::layout::Layout;
use crate::set::{RaidSets, SetShape};

impl RaidSets {
    /// Forms as many sets as the chunklets allow, the first `table_sectors` of every chunklet left to slot tables. What
    /// was formed is [`RaidSets::table`].
    pub fn form_with_tables(layout: Layout, chunklets: &mut Chunklets, table_sectors: u64) -> RaidSets {
        RaidSets::form_by(layout, chunklets, table_sectors, |set: NextSet, drives| {
            drives.sort_by_key(|drive| scatter(set.number, *drive as u64));
        })
    }

    /// Forms sets of the drives that have most chunklets left; `order` brings drives, which come in the order of their
    /// places, into the order in which they are taken where they are equal.
    fn form_by(
        layout: Layout,
        chunklets: &mut Chunklets,
        table_sectors: u64,
        order: impl Fn(NextSet, &mut Vec<usize>),
    ) -> RaidSets {
        let mut table = Vec::new();
        let mut set = NextSet { number: 0, after: None };
        loop {
            let mut drives: Vec<usize> =
                (0..chunklets.drive_count()).filter(|drive| chunklets.free(*drive) > 0).collect();
            if drives.len() < layout.columns() {
                break;
            }
            order(set, &mut drives);
            // A stable sort keeps that order where they are equal.
            drives.sort_by_key(|drive| std::cmp::Reverse(chunklets.free(*drive)));
            let chosen = &drives[..layout.columns()];
            set = NextSet { number: set.number + 1, after: chosen.last().copied() };
            table.extend(chosen.iter().map(|drive| chunklets.take(*drive).expect("it has one left")));
        }
        let shape = SetShape { layout, table_sectors };
        let sets = RaidSets::from_table(shape, chunklets.chunklet_sectors(), &table);
        sets.expect("every set takes fresh chunklets of different drives")
    }

    /// Forms as many sets as the chunklets allow, of drives in turn and without room for slot tables.
    pub fn form(layout: Layout, chunklets: &mut Chunklets) -> RaidSets {
        let count = chunklets.drive_count();
        RaidSets::form_by(layout, chunklets, 0, move |set, drives| {
            let from = set.after.map_or(0, |last| (last + 1) % count);
            let first = drives.partition_point(|drive| *drive < from);
            drives.rotate_left(first);
        })
    }
}

/// The set that is formed next.
#[derive(Clone, Copy)]
struct NextSet {
    number: u64,
    /// The last drive of the set before it.
    after: Option<usize>,
}

/// A number that looks random, of a set and a drive: the finaliser of splitmix64 (Steele, Lea and Flood, OOPSLA 2014).
fn scatter(set: u64, drive: u64) -> u64 {
    let mut z = (set << 32 ^ drive).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use tier0_pool::DATA_START_SECTORS;
    use tier0_units::SectorCount;

    use super::*;
    use crate::layout::{Column, RaidConfig, RaidLevel};
    use crate::set::SetIndex;

    fn form(level: RaidLevel, columns: usize, drives: &[u64]) -> RaidSets {
        let layout = Layout::new(&RaidConfig::new(level, columns, SectorCount(128))).expect("valid");
        let sizes = drives.iter().map(|count| ("drive", DATA_START_SECTORS + count * 1024));
        RaidSets::form(layout, &mut Chunklets::new(sizes, 1024, 0).expect("large enough"))
    }

    #[test]
    fn equal_drives_are_used_up_evenly() {
        // 5 drives of 8 chunklets in sets of 4: 40 / 4 sets, nothing left over.
        let sets = form(RaidLevel::Raid5, 4, &[8; 5]);
        assert_eq!(sets.count(), 10);
        for set in 0..10 {
            let mut drives: Vec<usize> = (0..4).map(|c| sets.place(SetIndex(set), Column(c)).0).collect();
            drives.sort_unstable();
            drives.dedup();
            assert_eq!(drives.len(), 4, "set {set} has its columns on different drives");
        }
    }

    #[test]
    fn larger_drives_give_more() {
        // 12 + 4 + 4 + 4 chunklets in pairs: every chunklet finds a partner.
        assert_eq!(form(RaidLevel::Raid1, 2, &[12, 4, 4, 4]).count(), 12);
        // The large one alone cannot pair with itself.
        assert_eq!(form(RaidLevel::Raid1, 2, &[12, 4]).count(), 4);
    }

    #[test]
    fn any_drive_has_spares_on_many_others() {
        let layout = Layout::new(&RaidConfig::new(RaidLevel::Raid5, 4, SectorCount(128))).expect("valid");
        let sizes = (0..6).map(|_| ("drive", DATA_START_SECTORS + 64 * 1024));
        let mut chunklets = Chunklets::new(sizes, 1024, 10).expect("large enough");
        let sets = RaidSets::form_with_tables(layout, &mut chunklets, 0);
        assert!(sets.count() >= 80, "{} sets of 6 x 54 chunklets", sets.count());
        for lost in 0..6 {
            // How often each other drive could take this one's column.
            let mut takers = [0; 6];
            for set in (0..sets.count()).map(SetIndex) {
                let drives: Vec<usize> = (0..4).map(|c| sets.place(set, Column(c)).0).collect();
                if drives.contains(&lost) {
                    (0..6).filter(|drive| !drives.contains(drive)).for_each(|drive| takers[drive] += 1);
                }
            }
            takers[lost] = 20;
            assert!(takers.iter().all(|count| *count >= 10), "drive {lost}: {takers:?}");
        }
    }
}
