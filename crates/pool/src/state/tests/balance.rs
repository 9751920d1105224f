//! Columns that should move: random pools, whose plans are carried out record by record.

use tier0_world::Random;

use super::*;
use crate::samples::CHUNKLETS;
use crate::{DriveClass, Member};

/// A pool of mirrors on drives of one kind, of which some joined late, with random columns.
fn random_pool(random: &mut Random) -> PoolState {
    let mut state = empty(2 + random.below(3) as u32);
    let mut place = state.members().len() as u32;
    for member in &mut state.inventory.members {
        member.class = DriveClass::Disk;
    }
    let wanted = random.below(CHUNKLETS * 2);
    for _ in 0..wanted {
        let mut room: Vec<(u64, u32)> = (0..place)
            .map(|member| (state.free_chunklets(member), member))
            .filter(|(free, _)| *free > 1)
            .collect();
        random_order(random, &mut room);
        let columns: Vec<_> = room.iter().take(2).filter_map(|(_, to)| state.free_chunklet(*to, 0)).collect();
        if columns.len() == 2 {
            state
                .apply_all(&[MetaRecord::SetsAdded { columns, sets_per_band: 1, group: 0 }])
                .expect("free chunklets");
        }
    }
    for _ in 0..random.below(4) {
        let member = Member { class: DriveClass::Disk, ..member(place) };
        state.apply_all(&[MetaRecord::MemberAdded(member)]).expect("a fresh drive");
        place += 1;
    }
    if random.below(4) == 0 {
        let leaving =
            MetaRecord::MemberLeaving { member: random.below(u64::from(place)) as u32, leaving: true };
        state.apply_all(&[leaving]).expect("it is a member");
    }
    state
}

fn random_order<T>(random: &mut Random, items: &mut [T]) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// Carries moves out. No set of these pools has an extent, so a column has moved at once.
pub(super) fn carry_out(state: &mut PoolState, moves: &[ColumnMove]) {
    for ColumnMove { set, column, to } in moves.iter().copied() {
        let target = state.free_chunklet(to, 0).expect("the plan knows what is free");
        let records = [
            MetaRecord::ColumnEvacuating { set, column, target },
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages: false },
        ];
        state.apply_all(&records).unwrap_or_else(|error| panic!("{set} {column} to {to}: {error}"));
        state.verify().expect("sound");
    }
}

/// How many mirrors can be formed when one takes from the drives that have most, again and again.
fn formed(state: &PoolState) -> u64 {
    let mut free: Vec<u64> = (0..state.members().len() as u32)
        .map(|member| state.free_chunklets(member).saturating_sub(state.groups()[0].spare_chunklets))
        .collect();
    let mut sets = 0;
    loop {
        free.sort_unstable_by_key(|free| std::cmp::Reverse(*free));
        if free.len() < 2 || free[1] == 0 {
            return sets;
        }
        free[0] -= 1;
        free[1] -= 1;
        sets += 1;
    }
}

#[test]
fn what_moves_for_sets_makes_room_for_as_many_as_were_promised() {
    let (mut with_moves, mut more) = (0, 0);
    for seed in 0..400 {
        let mut random = Random::new(seed, 1);
        let mut state = random_pool(&mut random);
        let before = formed(&state);
        let SetsToCome { sets, moves } = state.sets_to_come(0);
        carry_out(&mut state, &moves);
        assert_eq!(formed(&state), sets, "seed {seed}: {} moves", moves.len());
        assert_eq!(moves.is_empty(), sets == before, "seed {seed}: it moves nothing in vain");
        assert!(state.sets_to_come(0).moves.is_empty(), "seed {seed}: all has moved");
        with_moves += u64::from(!moves.is_empty());
        more += sets - before;
    }
    assert!(with_moves > 40 && more > 100, "{with_moves} plans with moves, {more} sets more");
}

#[test]
fn what_moves_for_spares_leaves_no_drive_short_while_another_has_more() {
    let mut moved = 0;
    for seed in 0..400 {
        let mut random = Random::new(seed, 2);
        let mut state = random_pool(&mut random);
        // As after rebuilds, which take what drives keep.
        state.inventory.groups[0].spare_chunklets = 2 + random.below(3);
        let missing = |state: &PoolState| -> u64 {
            let takes = state.members_by_place().filter(|(_, member)| member.takes_more());
            takes
                .map(|(place, _)| {
                    state.groups()[0].spare_chunklets.saturating_sub(state.free_chunklets(place))
                })
                .sum()
        };
        let before = missing(&state);
        let moves = state.moves_for_spares();
        carry_out(&mut state, &moves);
        assert_eq!(missing(&state) + moves.len() as u64, before, "seed {seed}: every move mends something");
        assert!(state.moves_for_spares().is_empty(), "seed {seed}");
        moved += moves.len();
    }
    assert!(moved > 200, "{moved} moves");
}
