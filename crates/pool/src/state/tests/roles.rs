//! What drives are for, and columns that go back: to drives of data, and to the drive that replaces theirs.

use std::collections::BTreeMap;

use super::balance::carry_out;
use super::*;
use crate::{DriveClass, DriveRole, Member};

/// Mirrors on three drives of data, two sets on each pair, with two more drives that are for the log and the cache alone. On the
/// drives of data so many chunklets are free each.
fn pool(free: u64) -> PoolState {
    let mut state = empty(0);
    state.geometry.spare_chunklets = 0;
    state.inventory.groups[0].spare_chunklets = 0;
    let area = state.geometry().area.data_start_sectors;
    for number in 0..5 {
        let role = if number < 3 { DriveRole::Data } else { DriveRole::Auxiliary };
        let chunklets = if number < 3 { 4 + free } else { 12 };
        let sectors = area + chunklets * state.geometry().chunklet_sectors;
        let joins = Member { role, sectors, class: DriveClass::Disk, ..member(number) };
        state.apply_all(&[MetaRecord::MemberAdded(joins)]).expect("valid");
    }
    for pair in [[0, 1], [1, 2], [0, 2], [0, 1], [1, 2], [0, 2]] {
        let columns = pair.map(|drive| state.free_chunklet(drive, 0).expect("it is free"));
        let sets = MetaRecord::SetsAdded { columns: columns.to_vec(), sets_per_band: 1, group: 0 };
        state.apply_all(&[sets]).expect("valid");
    }
    state
}

/// Loses a drive and rebuilds what it had where there is a place; where the columns went.
fn lose(state: &mut PoolState, drive: u32) -> BTreeMap<(u32, u32), u32> {
    state.apply_all(&[MetaRecord::MemberLost { member: drive }]).expect("valid");
    let mut went = BTreeMap::new();
    for (set, column) in state.lost_columns().collect::<Vec<_>>() {
        let Some(target) = state.choose_spare(set, column) else { continue };
        let records = [
            MetaRecord::ColumnRebuilding { set, column, target },
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages: false },
        ];
        state.apply_all(&records).expect("valid");
        went.insert((set, column), target.drive);
    }
    state.verify().expect("sound");
    went
}

fn replaced(state: &mut PoolState, old: u32, like: u32) -> u32 {
    let place = state.members().len() as u32;
    let Member { sectors, role, .. } = state.members()[like as usize].clone();
    let joins = Member { sectors, role, class: DriveClass::Disk, ..member(place) };
    let records = [MetaRecord::MemberAdded(joins), MetaRecord::MemberReplaced { member: old, by: place }];
    state.apply_all(&records).expect("valid");
    place
}

#[test]
fn a_drive_that_is_not_for_data_takes_columns_only_where_no_other_is_left() {
    let mut roomy = pool(4);
    let went = lose(&mut roomy, 0);
    assert_eq!(went.len(), 4);
    assert!(went.values().all(|drive| *drive < 3), "drives of data had room: {went:?}");
    // One chunklet is free on each of the others, and their sets do not let them have all.
    let mut full = pool(1);
    let went = lose(&mut full, 0);
    assert_eq!(went.len(), 4, "all are redundant again: {went:?}");
    assert!(went.values().any(|drive| *drive < 3) && went.values().any(|drive| *drive >= 3), "{went:?}");
    let misplaced: u64 = full.misplaced_columns().map(|(_, columns)| columns).sum();
    assert_eq!(misplaced, went.values().filter(|drive| **drive >= 3).count() as u64);
    assert!(full.moves_to_data_drives().is_empty(), "there is no room");
    // It does not become one of data by that.
    for drive in [3, 4] {
        assert!(!full.is_for_data(drive));
        assert!(full.sets_to_come(0).moves.iter().all(|one| one.to != drive));
    }
}

#[test]
fn no_column_leaves_a_drive_that_serves_for_one_that_is_not_for_data() {
    let mut state = pool(0);
    assert_eq!(state.homeless_without(0), 4, "the only free chunklets are not for data");
    state.apply_all(&[MetaRecord::MemberLeaving { member: 0, leaving: true }]).expect("valid");
    let leaving: Vec<_> = state.leaving_columns().collect();
    assert!(leaving.iter().all(|(set, column)| state.choose_spare(*set, *column).is_none()));
    // What lies on one already may go to another one.
    let mut state = pool(0);
    let went = lose(&mut state, 0);
    let from = *went.values().next().expect("it had columns");
    assert_eq!(state.homeless_without(from), 0);
}

#[test]
fn columns_go_back_to_drives_of_data_when_one_has_room() {
    let mut state = pool(0);
    assert!(lose(&mut state, 0).values().all(|drive| *drive >= 3));
    let Member { sectors, .. } = state.members()[0].clone();
    let added = Member { sectors, role: DriveRole::Data, class: DriveClass::Disk, ..member(5) };
    state.apply_all(&[MetaRecord::MemberAdded(added)]).expect("valid");
    let moves = state.moves_to_data_drives();
    assert_eq!(moves.len(), 4);
    carry_out(&mut state, &moves);
    assert_eq!(state.misplaced_columns().count(), 0);
    assert!(state.moves_to_data_drives().is_empty() && state.moves_home().is_empty());
}

/// The drive that had replaced another one stayed empty, because spares had taken over what its predecessor had.
#[test]
fn a_drive_that_replaces_another_gets_the_columns_that_this_one_had() {
    for free in [0, 1, 4] {
        let mut state = pool(free);
        let before: Vec<_> = state.all_columns().map(|(set, column)| state.column(set, column)).collect();
        lose(&mut state, 0);
        let new = replaced(&mut state, 0, 0);
        let moves = state.moves_home();
        assert_eq!(moves.len(), 4, "{free} free");
        assert!(moves.iter().all(|one| one.to == new));
        carry_out(&mut state, &moves);
        let now = state.all_columns().map(|(set, column)| state.column(set, column));
        for (was, now) in before.iter().zip(now) {
            let expected = if was.drive == 0 { new } else { was.drive };
            assert_eq!(now.drive, expected, "{free} free");
        }
        assert_eq!(state.displaced_from(new).count() + state.displaced_from(0).count(), 0);
        assert!(state.moves_home().is_empty());
        state.apply_all(&[MetaRecord::MemberRemoved { member: 0 }]).expect("it holds nothing");
        state.verify().expect("sound");
    }
}

/// What has not been rebuilt when the new drive comes is rebuilt there at once, and what a drive that serves has is moved there,
/// although others have more room.
#[test]
fn a_drive_that_replaces_another_is_the_first_choice_for_what_this_one_has() {
    for is_lost in [true, false] {
        let mut state = pool(4);
        let Member { sectors, .. } = state.members()[0].clone();
        let roomy =
            Member { sectors: 4 * sectors, role: DriveRole::Data, class: DriveClass::Disk, ..member(5) };
        state.apply_all(&[MetaRecord::MemberAdded(roomy)]).expect("valid");
        let lost = MetaRecord::MemberLost { member: 0 };
        let leaves = MetaRecord::MemberLeaving { member: 0, leaving: true };
        let new = replaced(&mut state, 0, 0);
        state.apply_all(&[if is_lost { lost } else { leaves }]).expect("valid");
        let columns: Vec<_> = state.lost_columns().chain(state.leaving_columns()).collect();
        assert_eq!(columns.len(), 4);
        for (set, column) in columns {
            let target = state.choose_spare(set, column).expect("there is room");
            assert_eq!(target.drive, new, "lost: {is_lost}");
            let records = [
                MetaRecord::ColumnRebuilding { set, column, target },
                MetaRecord::ColumnRebuilt { set, column, with_lost_pages: false },
            ];
            state.apply_all(&records).expect("valid");
        }
        assert_eq!(state.displaced_from(new).count(), 0, "they are at home");
    }
}

/// A replacement that the administrator stops: the columns would have moved to the new drive all the same.
#[test]
fn a_drive_that_stays_keeps_its_columns() {
    let mut state = pool(1);
    let new = replaced(&mut state, 0, 0);
    assert_ne!(state.displaced_from(new).count(), 0, "they were to move");
    for leaving in [true, false] {
        state.apply_all(&[MetaRecord::MemberLeaving { member: 0, leaving }]).expect("valid");
    }
    assert_eq!(state.displaced_from(new).count(), 0);
    assert!(state.moves_home().is_empty());
    state.verify().expect("sound");
}

/// What drives of the log had taken over and lost would have gone to the drives that replaced them.
#[test]
fn no_column_belongs_to_a_drive_that_is_not_for_data() {
    let mut state = pool(0);
    let went = lose(&mut state, 0);
    let log_drive = *went.values().next().expect("it had columns");
    let went = lose(&mut state, log_drive);
    assert!(!went.is_empty());
    assert_eq!((state.displaced_from(log_drive).count(), state.displaced_from(0).count()), (0, 4));
    let new = replaced(&mut state, log_drive, log_drive);
    assert!(!state.is_for_data(new) && state.moves_home().is_empty());
    // They belong to the drive of data that was lost first.
    let new = replaced(&mut state, 0, 0);
    assert_eq!(state.moves_home().iter().filter(|one| one.to == new).count(), 4);
}

#[test]
fn nothing_belongs_to_a_drive_that_has_left() {
    let mut state = pool(1);
    lose(&mut state, 0);
    assert_eq!(state.displaced_from(0).count(), 4);
    let removed = MetaRecord::MemberRemoved { member: 0 };
    state.apply_all(std::slice::from_ref(&removed)).expect("it holds nothing");
    assert_eq!(state.displaced_from(0).count(), 0);
    state.verify().expect("sound");
    let by = MetaRecord::MemberReplaced { member: 0, by: 1 };
    assert!(matches!(refused(&state, by), MetaError::MemberState { .. }));
}

/// A disk that joined when the log needed a place was taken for one that had been given for the log alone.
#[test]
fn what_is_said_of_a_drive_counts_before_its_use() {
    let mut state = full();
    // The log lies on drives 0 and 1, which have columns.
    let joins = [5, 6].map(|number| MetaRecord::MemberAdded(member(number)));
    state.apply_all(&joins).expect("valid");
    let rings = [5, 6].map(|drive| LogCopy { member: drive, ..ring(0, &[0]).copies[0] });
    let ring = LogRing { copies: rings.to_vec(), ..ring(0, &[0]) };
    let log = LogPlacement { rings: vec![ring], lanes: 1 };
    state.apply_all(&[MetaRecord::LogPlaced(log)]).expect("valid");
    let said = |state: &mut PoolState, role| {
        state.apply_all(&[MetaRecord::MemberRole { member: 5, role }]).expect("valid");
        state.is_for_data(5)
    };
    assert!(!state.is_for_data(5) && state.is_for_data(2));
    assert!(said(&mut state, DriveRole::Data));
    assert!(!said(&mut state, DriveRole::Auxiliary));
    assert!(!said(&mut state, DriveRole::ByUse));
}
