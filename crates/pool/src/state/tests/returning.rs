//! Places that are kept for what a lost drive holds.

use std::collections::BTreeSet;

use super::*;
use crate::state::Member;

#[test]
fn what_a_lost_drive_holds_keeps_its_places_on_the_drive_that_returns() {
    let mut state = full();
    let held: Vec<_> = state.returning(3).collect();
    assert!(!held.is_empty() && held.iter().all(|(_, _, old)| old.drive == 3), "{held:?}");
    assert_eq!(state.reserved(4).len(), 0, "another drive keeps nothing");
    let back = Member { id: uuid::Uuid::from_u128(77), ..member(3) };
    state.apply_all(&[MetaRecord::MemberAdded(back)]).expect("valid");
    let kept: BTreeSet<u32> = held.iter().map(|(_, _, old)| old.index).collect();
    assert_eq!(state.reserved(5), kept);
    let all = state.geometry().chunklets(member(3).sectors);
    assert_eq!(state.free_chunklets(5), all - kept.len() as u64);
    let runs: Vec<u32> = state.free_runs(5).into_iter().flatten().collect();
    let expected: Vec<u32> = (0..all as u32).filter(|index| !kept.contains(index)).collect();
    assert_eq!(runs, expected);

    // A column returns, while pages are lost.
    let idle = |(set, column, _): &&(u32, u32, _)| state.rebuild(*set, *column).is_none();
    let (set, column, old) = *held.iter().find(idle).expect("not all are being rebuilt");
    let record = state.return_record((set, column), chunklet(5, old.index)).expect("it is free");
    assert!(matches!(record, MetaRecord::ColumnRebuilding { .. }), "{record:?}");
    let rebuilt = |with_lost_pages| {
        vec![
            MetaRecord::SlotsRebuilt { set, column, ranges: vec![0..4] },
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages },
        ]
    };
    let mut returned = state.clone();
    returned.apply_all(&[vec![record], rebuilt(true)].concat()).expect("valid");
    assert_eq!(returned.return_record((set, column), chunklet(5, old.index)), None, "it is there");
    returned.verify().expect("sound");

    // It is rebuilt elsewhere, with nothing lost: its place is free.
    let elsewhere = MetaRecord::ColumnRebuilding { set, column, target: chunklet(4, 6) };
    let mut taken_over = state.clone();
    taken_over.apply_all(&[vec![elsewhere.clone()], rebuilt(false)].concat()).expect("valid");
    assert!(!taken_over.reserved(5).contains(&old.index));
    // With pages lost it is kept, and the column moves back.
    state.apply_all(&[vec![elsewhere], rebuilt(true)].concat()).expect("valid");
    assert!(state.reserved(5).contains(&old.index));
    let record = state.return_record((set, column), chunklet(5, old.index)).expect("it is free");
    assert!(matches!(record, MetaRecord::ColumnEvacuating { .. }), "{record:?}");
    state.apply_all(&[vec![record], rebuilt(true)].concat()).expect("valid");
    assert_eq!(state.left_behind(3).count(), 0, "it has returned");
    state.verify().expect("sound");
}

#[test]
fn a_drive_that_is_forgotten_takes_along_what_it_holds() {
    let mut state = full();
    for (set, column) in state.lost_columns().collect::<Vec<_>>() {
        let target = state.choose_spare(set, column).expect("there is one");
        let records = [
            MetaRecord::ColumnRebuilding { set, column, target },
            MetaRecord::SlotsRebuilt { set, column, ranges: vec![0..4] },
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages: true },
        ];
        state.apply_all(&records).expect("valid");
    }
    let under_way: Vec<_> = state.rebuilds().map(|(set, column, _)| (set, column)).collect();
    for (set, column) in under_way {
        let records = [
            MetaRecord::SlotsRebuilt { set, column, ranges: vec![0..4] },
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages: true },
        ];
        state.apply_all(&records).expect("valid");
    }
    let left: Vec<_> = state.left_behind(3).collect();
    state.apply_all(&[MetaRecord::MemberRemoved { member: 3 }]).expect("it holds nothing");
    assert_eq!((left.is_empty(), state.left_behind(3).count()), (false, 0));
    state.verify().expect("sound");
}

/// A spare that was lost while it took a column over kept the column from its own place, which was kept for it, for ever.
#[test]
fn a_column_returns_although_the_spare_that_took_it_over_is_lost() {
    let mut state = full();
    let rebuild = |target| MetaRecord::ColumnRebuilding { set: 1, column: 1, target };
    let old = state.column(1, 1);
    let back = Member { id: uuid::Uuid::from_u128(77), ..member(3) };
    let target = chunklet(5, old.index);
    state.apply_all(&[MetaRecord::MemberAdded(back)]).expect("valid");
    assert_eq!(state.return_record((1, 1), target), None, "a spare takes it over");
    state.apply_all(&[MetaRecord::MemberLost { member: 4 }]).expect("valid");
    assert_eq!(state.return_record((1, 1), target), Some(rebuild(target)));
    assert_ne!(state.choose_spare(1, 1), Some(target), "others come first");
    for drive in 0..6 {
        let free: Vec<u32> = state.free_runs(drive).into_iter().flatten().collect();
        let taken = free.into_iter().map(|index| (chunklet(drive, index), Owner::Log));
        state.inventory.owners.extend(taken);
    }
    assert_eq!(state.free_chunklets(5), 0);
    assert_eq!(state.choose_spare(1, 1), Some(target), "it is all that is left");
    state.apply_all(&[rebuild(target)]).expect("valid");
    assert_eq!(state.place_of(1, 1), target);
    assert_eq!(state.return_record((1, 1), target), None, "it is on its way");

    // A move that had a lost target is no move any more: the old place lacks what had been moved.
    let mut moving = full();
    let away = MetaRecord::ColumnEvacuating { set: 0, column: 0, target: chunklet(4, 5) };
    moving.apply_all(&[away, MetaRecord::MemberLost { member: 4 }]).expect("valid");
    let target = chunklet(2, 9);
    let record = MetaRecord::ColumnRebuilding { set: 0, column: 0, target };
    assert_eq!(moving.return_record((0, 0), target), Some(record));
}

/// Where no chunklet was free, a column whose drive serves stayed without redundancy for ever if the drive that it was moving to
/// was lost.
#[test]
fn a_column_is_rebuilt_where_it_is_if_the_drive_it_was_moving_to_is_lost() {
    let mut state = full();
    let own = state.column(0, 0);
    let away = MetaRecord::ColumnEvacuating { set: 0, column: 0, target: chunklet(4, 5) };
    let back = MetaRecord::ColumnRebuilding { set: 0, column: 0, target: own };
    assert!(matches!(refused(&state, back.clone()), MetaError::ChunkletTaken { .. }));
    state.apply_all(&[away]).expect("valid");
    assert!(matches!(refused(&state, back.clone()), MetaError::ChunkletTaken { .. }), "it is on its way");
    state.apply_all(&[MetaRecord::MemberLost { member: 4 }]).expect("valid");
    assert_eq!(state.choose_spare(0, 0), Some(own));
    state.apply_all(&[MetaRecord::MemberLeaving { member: own.drive, leaving: true }]).expect("valid");
    let other = state.choose_spare(0, 0).expect("others come first where it is to leave");
    assert_ne!(other, own);
    for drive in 0..5 {
        let free: Vec<u32> = state.free_runs(drive).into_iter().flatten().collect();
        let taken = free.into_iter().map(|index| (chunklet(drive, index), Owner::Log));
        state.inventory.owners.extend(taken);
    }
    assert_eq!(state.choose_spare(0, 0), Some(own), "it is all that is left");
    let rebuilt = [
        back,
        MetaRecord::SlotsRebuilt { set: 0, column: 0, ranges: vec![0..4] },
        MetaRecord::ColumnRebuilt { set: 0, column: 0, with_lost_pages: true },
    ];
    state.apply_all(&rebuilt).expect("valid");
    assert_eq!((state.place_of(0, 0), state.rebuild(0, 0)), (own, None));
    assert_eq!(state.inventory.owners.get(&chunklet(4, 5)), None);
    assert_eq!(state.inventory.owners.get(&own), Some(&Owner::Set { set: 0, column: 0 }));
}
