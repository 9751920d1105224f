//! Forming sets: each takes one chunklet from as many different drives as it has columns.
//!
//! A set takes from the drives that have most chunklets left, in turn where they are equal. So drives of one size
//! are used evenly whatever the set's width, sets formed one after the other lie on different drives, and all of a
//! band of sets lie at about the same depth of the disks.

use tier0_pool::{ChunkletAddress, Chunklets};

use crate::layout::Layout;
use crate::set::RaidSets;

impl RaidSets {
    /// Forms as many sets as the chunklets allow, the first `table_sectors` of every chunklet left to slot tables. What
    /// was formed is [`RaidSets::table`].
    pub fn form_with_tables(layout: Layout, chunklets: &mut Chunklets, table_sectors: u64) -> RaidSets {
        let mut table = Vec::new();
        let mut from = 0;
        while let Some(set) = next_set(&layout, chunklets, &mut from) {
            table.extend(set);
        }
        let sets = RaidSets::from_table(layout, chunklets.chunklet_sectors(), &table, table_sectors);
        sets.expect("every set takes fresh chunklets of different drives")
    }

    /// Forms as many sets as the chunklets allow, without room for slot tables.
    pub fn form(layout: Layout, chunklets: &mut Chunklets) -> RaidSets {
        RaidSets::form_with_tables(layout, chunklets, 0)
    }
}

/// The chunklets of one more set; none if fewer drives than columns have any left.
fn next_set(layout: &Layout, chunklets: &mut Chunklets, from: &mut usize) -> Option<Vec<ChunkletAddress>> {
    let count = chunklets.drive_count();
    let mut drives: Vec<usize> =
        (0..count).map(|i| (*from + i) % count).filter(|d| chunklets.free(*d) > 0).collect();
    if drives.len() < layout.columns() {
        return None;
    }
    // A stable sort keeps the drives in turn where they are equal.
    drives.sort_by_key(|drive| std::cmp::Reverse(chunklets.free(*drive)));
    drives.truncate(layout.columns());
    *from = (drives[layout.columns() - 1] + 1) % count;
    Some(drives.iter().map(|drive| chunklets.take(*drive).expect("it has one left")).collect())
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
}
