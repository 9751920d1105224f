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
