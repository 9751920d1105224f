//! Columns that should lie on other drives: so that every drive has free again what it keeps for rebuilding, or so that
//! free chunklets, which a new drive has alone, lie on as many drives as a set needs.
//!
//! Which columns move where is reckoned with what will be free when the moves that are under way have ended. Nothing is
//! changed here, and no plan is remembered: the caller that carries it out asks again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::state::{Owner, PoolState, RebuildSource, SetGroup};

/// A column that should move to another member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnMove {
    /// The set.
    pub set: u32,
    /// The column.
    pub column: u32,
    /// The place of the member on which it should go on.
    pub to: u32,
}

/// Sets that could be formed of free chunklets, and what has to move first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetsToCome {
    /// How many sets.
    pub sets: u64,
    /// Columns that have to move before; none where the sets can be formed at once.
    pub moves: Vec<ColumnMove>,
}

impl PoolState {
    /// The moves after which as many drives as possible have free what they keep for rebuilding: from drives that have
    /// less, to those of their class that have more.
    pub fn moves_for_spares(&self) -> Vec<ColumnMove> {
        self.groups_there().flat_map(|(group, _)| self.moves_for_spares_of(group)).collect()
    }

    fn moves_for_spares_of(&self, group: u32) -> Vec<ColumnMove> {
        let spare = self.groups()[group as usize].spare_chunklets;
        let mut plan = Plan::new(self, group);
        let mut moves = Vec::new();
        loop {
            let short = |(place, free): (&u32, &u64)| (*free < spare).then_some((*free, *place));
            let mut donors: Vec<(u64, u32)> = plan.free.iter().filter_map(short).collect();
            donors.sort_unstable();
            let next = donors.iter().find_map(|(_, from)| plan.shift(*from, |free| free > spare));
            let Some(next) = next else { return moves };
            moves.push(next);
        }
    }

    /// The sets of a group that the free chunklets of its drives make, but for those that are kept for rebuilding, and the
    /// columns that have to move before all of them can be formed; none of one that does not stay.
    pub fn sets_to_come(&self, group: u32) -> SetsToCome {
        if !self.group_stays(group) {
            return SetsToCome { sets: 0, moves: Vec::new() };
        }
        let SetGroup { spare_chunklets: spare, .. } = self.groups()[group as usize];
        let width = u64::from(self.groups()[group as usize].columns());
        let mut plan = Plan::new(self, group);
        let formable = plan.formable(spare, width);
        let aim = match plan.free.len() as u64 >= width {
            true => plan.beyond(spare).sum::<u64>() / width,
            false => 0,
        };
        let mut moves = Vec::new();
        while plan.formable(spare, width) < aim {
            let poor = |(place, free): (&u32, &u64)| (*free < spare + aim).then_some((*free, *place));
            let mut donors: Vec<(u64, u32)> = plan.free.iter().filter_map(poor).collect();
            donors.sort_unstable();
            let next = donors.iter().find_map(|(_, from)| plan.shift(*from, |free| free > spare + aim));
            let Some(next) = next else { break };
            moves.push(next);
        }
        let sets = plan.formable(spare, width);
        if sets == formable {
            moves.clear();
        }
        SetsToCome { sets, moves }
    }
}

/// How it would be after the moves that were chosen.
struct Plan<'a> {
    state: &'a PoolState,
    /// Free chunklets of the members that can have columns.
    free: BTreeMap<u32, u64>,
    /// The columns of a member that may still move, the next one last.
    movable: BTreeMap<u32, Vec<(u32, u32)>>,
    /// Sets with the members to which columns of them move.
    joined: BTreeSet<(u32, u32)>,
}

impl<'a> Plan<'a> {
    /// Of the drives of a group.
    fn new(state: &'a PoolState, group: u32) -> Plan<'a> {
        let mut free: BTreeMap<u32, u64> = state
            .members_by_place()
            .filter(|(place, member)| {
                member.group == group && member.takes_more() && state.is_for_data(*place)
            })
            .map(|(place, _)| (place, state.free_chunklets(place)))
            .collect();
        for (set, column, _) in state.rebuilds().filter(|(_, _, one)| one.source == RebuildSource::Whole) {
            free.entry(state.column(set, column).drive).and_modify(|free| *free += 1);
        }
        Plan { state, free, movable: BTreeMap::new(), joined: BTreeSet::new() }
    }

    /// What the members have free beyond what they keep.
    fn beyond(&self, spare: u64) -> impl Iterator<Item = u64> {
        self.free.values().map(move |free| free.saturating_sub(spare))
    }

    /// How many sets of `width` different drives each can be formed: the most at which the drives, none of which gives
    /// more than one chunklet to a set, have enough.
    fn formable(&self, spare: u64, width: u64) -> u64 {
        let enough = |sets: u64| self.beyond(spare).map(|free| free.min(sets)).sum::<u64>() >= sets * width;
        let (mut sure, mut too_many) = (0, self.beyond(spare).sum::<u64>() / width + 1);
        while sure + 1 < too_many {
            let middle = sure + (too_many - sure) / 2;
            if enough(middle) { sure = middle } else { too_many = middle }
        }
        sure
    }

    /// Moves a column of `from` to the member with the most free, of those that have enough; one of the same class if there
    /// is one.
    fn shift(&mut self, from: u32, has_enough: impl Fn(u64) -> bool) -> Option<ColumnMove> {
        let class_of = |place: u32| self.state.member(place).map(|member| member.class);
        let class = class_of(from);
        let takes = |(place, free): (&u32, &u64)| {
            (has_enough(*free) && *place != from).then_some((
                class_of(*place) != class,
                Reverse(*free),
                *place,
            ))
        };
        let mut targets: Vec<(bool, Reverse<u64>, u32)> = self.free.iter().filter_map(takes).collect();
        targets.sort_unstable();
        let (state, joined) = (self.state, &self.joined);
        let movable = self.movable.entry(from).or_insert_with(|| movable_columns(state, from));
        let found = targets.iter().find_map(|(_, _, to)| {
            let may = |(set, _): &(u32, u32)| !joined.contains(&(*set, *to)) && !uses(state, *set, *to);
            movable.iter().rposition(may).map(|position| (position, *to))
        });
        let (position, to) = found?;
        let (set, column) = movable.remove(position);
        self.joined.insert((set, to));
        self.free.entry(from).and_modify(|free| *free += 1);
        self.free.entry(to).and_modify(|free| *free -= 1);
        Some(ColumnMove { set, column, to })
    }
}

/// The columns of a member that do not move yet.
fn movable_columns(state: &PoolState, member: u32) -> Vec<(u32, u32)> {
    let owners = state.owned(member).filter_map(|(_, owner)| match owner {
        Owner::Set { set, column } => Some((*set, *column)),
        _ => None,
    });
    owners.filter(|(set, column)| state.rebuild(*set, *column).is_none()).collect()
}

/// Whether a set has a column on a member, or has one that moves to it or off it.
fn uses(state: &PoolState, set: u32, member: u32) -> bool {
    (0..state.group_of(set).columns()).any(|column| {
        state.column(set, column).drive == member || state.place_of(set, column).drive == member
    })
}
