//! Groups that leave: nothing new comes to one, and when it is empty it is gone, without a change of any number.

use super::*;
use crate::samples::grouped;
use crate::{GroupStage, RebuildSource, SetGroup, Volume};

/// The second group of [`grouped`].
const SLOW: u32 = 1;

fn leaving(group: u32, leaving: bool) -> MetaRecord {
    MetaRecord::GroupLeaving { group, leaving }
}

fn removed(group: u32) -> MetaRecord {
    MetaRecord::GroupRemoved { group }
}

/// [`grouped`] with a volume of the fast group, two extents of which lie in the slow one, in slots 8 and 9.
fn lent() -> PoolState {
    let mut state = grouped();
    let pairs = [(extent(0, 0), slot(0, 1)), (extent(0, 1), slot(8, 2)), (extent(0, 2), slot(9, 3))];
    let records = [
        MetaRecord::VolumeCreated(volume(0, 5, true)),
        MetaRecord::AllocationsReserved { end: 100 },
        MetaRecord::GroupsMixed {},
        MetaRecord::map(pairs),
    ];
    state.apply_all(&records).expect("valid");
    state
}

fn brings_home() -> Vec<MetaRecord> {
    MetaRecord::moves([(&[extent(0, 1)][..], Some(slot(1, 4))), (&[extent(0, 2)][..], Some(slot(2, 5)))])
}

#[test]
fn a_group_with_volumes_and_the_last_one_do_not_leave() {
    let mut state = lent();
    assert!(matches!(refused(&state, leaving(0, true)), MetaError::GroupInUse { .. }), "a volume is of it");
    assert!(matches!(refused(&state, leaving(7, true)), MetaError::NoGroup { .. }));
    assert!(matches!(refused(&state, removed(SLOW)), MetaError::GroupInUse { .. }), "it is to stay");
    state.apply_all(&[leaving(SLOW, true)]).expect("no volume is of it");
    state.verify().expect("sound");
    assert_eq!(state.groups_that_leave().collect::<Vec<_>>(), [SLOW]);
    assert_eq!(state.slot_count_of(SLOW), 20, "it serves what lies there");
    state.apply_all(&[MetaRecord::VolumeDeleted { volume: 0 }]).expect("there");
    assert!(matches!(refused(&state, leaving(0, true)), MetaError::GroupInUse { .. }), "it is the last");
}

#[test]
fn nothing_new_comes_to_a_group_that_leaves() {
    let mut state = lent();
    state.apply_all(&[leaving(SLOW, true)]).expect("no volume is of it");
    let columns = vec![chunklet(4, 7), chunklet(5, 7), chunklet(6, 7)];
    for record in [
        MetaRecord::VolumeCreated(Volume { group: SLOW, ..volume(1, 2, true) }),
        MetaRecord::FamilyGroupChanged { family: 0, group: SLOW },
        MetaRecord::SetsAdded { columns, sets_per_band: 1, group: SLOW },
    ] {
        assert!(matches!(refused(&state, record), MetaError::GroupLeaves { .. }));
    }
    assert!(state.sets_to_come(SLOW).sets == 0 && grouped().sets_to_come(SLOW).sets > 0);
    // What was on its way when it began to leave arrives.
    state.check(&MetaRecord::map([(extent(0, 3), slot(10, 9))])).expect("allocated before");
    state.apply_all(&[leaving(SLOW, false)]).expect("it stays after all");
    assert_eq!(state, lent());
}

#[test]
fn an_empty_group_is_gone_and_every_number_stays() {
    let mut state = lent();
    let before = state.clone();
    state.apply_all(&[leaving(SLOW, true)]).expect("no volume is of it");
    assert!(matches!(refused(&state, removed(SLOW)), MetaError::GroupInUse { .. }), "extents lie in it");
    state.apply_all(&brings_home()).expect("free");
    let target = chunklet(7, 1);
    state.apply_all(&[MetaRecord::ColumnEvacuating { set: 2, column: 0, target }]).expect("free");
    assert!(matches!(refused(&state, removed(SLOW)), MetaError::GroupInUse { .. }), "a column moves");
    state
        .apply_all(&[MetaRecord::ColumnRebuilt { set: 2, column: 0, with_lost_pages: false }])
        .expect("done");
    state.apply_all(&[removed(SLOW)]).expect("nothing lies in it");
    state.verify().expect("sound");

    assert_eq!((state.set_count(), state.slot_count()), (before.set_count(), before.slot_count()));
    assert_eq!((state.slot_count_of(SLOW), state.room_in(SLOW), state.name_of_group(SLOW)), (0, 0, None));
    for home in (0..state.slot_count()).filter_map(|slot| before.slot_home(slot)) {
        assert_eq!(state.slot_at(home), before.slot_at(home));
    }
    assert_eq!((state.column(1, 1), state.all_columns().count()), (before.column(1, 1), 4));
    // Its drives hold nothing, so they can go.
    assert!((4..8).all(|drive| !state.has_columns(drive) && state.spares_of(drive) == 0));
    state.check(&MetaRecord::MemberRemoved { member: 4 }).expect("it holds nothing");
    for record in [leaving(SLOW, false), leaving(SLOW, true), removed(SLOW)] {
        assert!(matches!(refused(&state, record), MetaError::GroupGone { .. }));
    }
    let late = MetaRecord::map([(extent(0, 3), slot(10, 9))]);
    assert!(matches!(refused(&state, late), MetaError::GroupGone { .. }));
    let joins = MetaRecord::MemberAdded(Member { group: SLOW, ..member(8) });
    assert!(matches!(refused(&state, joins), MetaError::GroupGone { .. }));
    let moves = MetaRecord::ColumnRebuilding { set: 2, column: 0, target: chunklet(5, 7) };
    assert!(matches!(refused(&state, moves), MetaError::NoColumn { .. }));
}

/// The name of a group that is gone is free, and sets that join have numbers behind all others.
#[test]
fn a_group_of_the_same_name_comes_again() {
    let mut state = lent();
    state.apply_all(&brings_home()).expect("free");
    state.apply_all(&[leaving(SLOW, true), removed(SLOW)]).expect("nothing lies in it");
    let again = SetGroup { stage: GroupStage::Stays, ..state.groups()[1].clone() };
    state.apply_all(&[MetaRecord::GroupAdded(again)]).expect("the name is free");
    assert_eq!((state.group_named("slow"), state.groups_there().count()), (Some(2), 2));
    let joins = (8..12).map(|number| MetaRecord::MemberAdded(Member { group: 2, ..member(number) }));
    let columns = [8, 9, 10].map(|drive| chunklet(drive, 1)).to_vec();
    let records: Vec<MetaRecord> =
        joins.chain([MetaRecord::SetsAdded { columns, sets_per_band: 1, group: 2 }]).collect();
    state.apply_all(&records).expect("free");
    state.verify().expect("sound");
    assert_eq!((state.set_count(), state.column(4, 2), state.slot_count_of(2)), (5, chunklet(10, 1), 10));
    state.apply_all(&[MetaRecord::map([(extent(0, 3), slot(28, 9))])]).expect("the first of its slots");
    assert_eq!(state.away_of(0).collect::<Vec<_>>(), [(2, 1)]);
}

/// The first group is that of the geometry, and can go like any other.
#[test]
fn the_first_group_goes_too() {
    let mut state = grouped();
    state.apply_all(&[leaving(0, true), removed(0)]).expect("nothing is of it");
    state.verify().expect("sound");
    assert_eq!((state.default_group(), state.slot_count_of(0), state.column(2, 1)), (1, 0, chunklet(5, 1)));
    assert_eq!(state.slot_home(8), Some(SlotHome { set: 2, index: 0 }));
    let records = [
        MetaRecord::AllocationsReserved { end: 100 },
        MetaRecord::VolumeCreated(Volume { group: SLOW, ..volume(1, 4, false) }),
        MetaRecord::map([(extent(1, 0), slot(8, 1))]),
        MetaRecord::ColumnEvacuating { set: 3, column: 1, target: chunklet(7, 1) },
    ];
    state.apply_all(&records).expect("it serves");
    assert_eq!(state.rebuild(3, 1).map(|one| one.source), Some(RebuildSource::Whole));
    state.verify().expect("sound");
}

/// A transaction that cannot be leaves the group as it was.
#[test]
fn a_group_comes_back_with_a_transaction_that_fails() {
    let mut state = grouped();
    let before = state.clone();
    let hopeless = MetaRecord::VolumeDeleted { volume: 77 };
    state.apply_all(&[leaving(SLOW, true), removed(SLOW), hopeless]).expect_err("no such volume");
    assert_eq!(state, before);
}

/// A number is given once, so groups that have left count, and the refusal says so.
#[test]
fn a_pool_has_so_many_groups_in_its_life() {
    let mut state = grouped();
    state.apply_all(&[leaving(SLOW, true), removed(SLOW)]).expect("nothing lies in it");
    let first = state.groups()[0].clone();
    let another = |number: usize| {
        let name = format!("group{number}");
        MetaRecord::GroupAdded(SetGroup { name, stage: GroupStage::Stays, ..first.clone() })
    };
    let more: Vec<MetaRecord> = (state.groups().len()..crate::GROUPS_MAX).map(another).collect();
    let one_too_many = another(crate::GROUPS_MAX);
    state.apply_all(&more).expect("as many as there can be");
    let told = refused(&state, one_too_many).to_string();
    assert!(told.contains("16 groups in its life, and the 1 that have left it count"), "{told}");
}
