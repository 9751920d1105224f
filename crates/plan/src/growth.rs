//! What a pool grows by: sets of all free chunklets but the spares, on old and new drives alike, those at once that need
//! nothing to move before.
//!
//! The chunklets that every drive keeps free for rebuilding are not touched, nor are drives that hold the log and no
//! column of any set: they were given for the log alone. Where one change of the metadata could not name all sets, they
//! join in several groups; a crash between two of them leaves a pool that has grown by the first.

use std::collections::BTreeSet;
use std::ops::Range;

use tier0_pool::{Chunklets, MetaRecord, PoolState, SetGroup};
use tier0_raid::set::{RaidSets, SetShape};
use tier0_units::counted;

use super::pool::shape_of;

/// The most bytes that a chunklet takes in a change of the metadata, its braces, names and commas included:
/// `{"drive":4294967295,"index":4294967295},`.
const COLUMN_BYTES: usize = 48;
/// What a change takes beside.
const CHANGE_BYTES: usize = 256;

/// Sets that can join.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// One change of the metadata each.
    pub records: Vec<MetaRecord>,
    /// How many sets they add.
    pub sets: u64,
    /// How many more there can be when columns have moved.
    pub sets_later: u64,
    /// How many columns have to move for that.
    pub moves: usize,
}

/// What a pool can grow by, in changes of at most `change_bytes_max` bytes: in each of its groups, or in one.
///
/// # Errors
/// Why it cannot grow: the fact and the remedy.
pub fn plan_growth(state: &PoolState, group: Option<u32>, change_bytes_max: usize) -> Result<Growth, String> {
    // A group that has room grows although another one waits for drives.
    let lacking = state.lost_columns().map(|(set, _)| set);
    let busy: BTreeSet<u32> =
        lacking.chain(state.rebuilds().map(|(set, ..)| set)).map(|set| state.group_number_of(set)).collect();
    let groups: Vec<u32> =
        state.groups_that_stay().filter(|own| group.is_none_or(|one| one == *own)).collect();
    if groups.iter().all(|group| busy.contains(group)) {
        return Err(
            "sets are degraded, rebuilding, or being evacuated, which needs free chunklets; wait until that \
             is done (tier0 status), then grow"
                .to_owned(),
        );
    }
    let mut growth = Growth::default();
    for group in groups.iter().copied().filter(|group| !busy.contains(group)) {
        growth.add_group(state, group, change_bytes_max)?;
    }
    if growth.sets + growth.sets_later == 0 {
        return Err(nothing_to_form(state, &groups));
    }
    Ok(growth)
}

impl Growth {
    fn add_group(&mut self, state: &PoolState, group: u32, change_bytes_max: usize) -> Result<(), String> {
        let to_come = state.sets_to_come(group);
        if to_come.sets == 0 {
            return Ok(());
        }
        let geometry = state.geometry();
        let SetShape { layout, table_sectors } = shape_of(state, &state.groups()[group as usize])?;
        let runs: Vec<Vec<Range<u32>>> = (0u32..)
            .zip(state.members())
            .map(|(place, member)| if member.group == group { room_of(state, place) } else { Vec::new() })
            .collect();
        let usable = runs.iter().filter(|runs| !runs.is_empty()).count();
        let mut chunklets = Chunklets::of_runs(geometry.chunklet_sectors, runs);
        let columns = layout.columns();
        let formed = RaidSets::form_with_tables(layout, &mut chunklets, table_sectors);
        let sets = u64::from(formed.count());
        let sets_per_change = ((change_bytes_max - CHANGE_BYTES) / (columns * COLUMN_BYTES)).max(1);
        let band = |sets: usize| (usable / columns).clamp(1, sets) as u32;
        let table = if sets > 0 { formed.table() } else { Vec::new() };
        let change = |part: &[_]| MetaRecord::SetsAdded {
            columns: part.to_vec(),
            sets_per_band: band(part.len() / columns),
            group,
        };
        self.records.extend(table.chunks(sets_per_change * columns).map(change));
        self.sets += sets;
        self.sets_later += to_come.sets.saturating_sub(sets);
        self.moves += to_come.moves.len();
        Ok(())
    }
}

fn nothing_to_form(state: &PoolState, groups: &[u32]) -> String {
    let lacking = |number: u32| {
        let group: &SetGroup = &state.groups()[number as usize];
        let drives = state.members_by_place().filter(|(_, member)| member.group == number);
        let runs = drives.flat_map(|(place, _)| room_of(state, place));
        let free: u64 = runs.map(|run| u64::from(run.end - run.start)).sum();
        format!(
            "a new set{} needs {} on different drives, and apart from the spares the drives have {} usable",
            state.name_of_group(number).map(|name| format!(" of group {name:?}")).unwrap_or_default(),
            counted(u64::from(group.columns()), "chunklet"),
            if free == 0 { "none".to_owned() } else { counted(free, "free one") },
        )
    };
    let lacking: Vec<String> = groups.iter().copied().map(lacking).collect();
    let which = if state.has_groups() { " --group GROUP" } else { "" };
    format!("{}; add drives (tier0 drive add{which})", lacking.join("; "))
}

/// Free chunklets of a member that sets may take: the lowest, so that as many as are to be spare are left.
fn room_of(state: &PoolState, member: u32) -> Vec<Range<u32>> {
    if !state.is_for_data(member) {
        return Vec::new();
    }
    let mut left = state.free_chunklets(member).saturating_sub(state.spares_of(member)) as u32;
    let mut runs = state.free_runs(member);
    for run in &mut runs {
        run.end = run.end.min(run.start + left);
        left -= run.end - run.start;
    }
    runs.retain(|run| !run.is_empty());
    runs
}
