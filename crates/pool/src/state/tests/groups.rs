//! Groups of sets: what belongs to one stays in it, and space is promised group by group.

use std::collections::BTreeSet;

use tier0_world::Random;

use super::*;
use crate::samples::{SLOTS_PER_SET, grouped};
use crate::{SetGroup, Volume};

/// The second group of [`grouped`].
const SLOW: u32 = 1;

fn slow(number: u32, extents: u64, thin: bool) -> Volume {
    Volume { group: SLOW, ..volume(number, extents, thin) }
}

#[test]
fn a_pool_has_sets_of_several_shapes() {
    let mut state = grouped();
    state.verify().expect("sound");
    assert_eq!((state.set_count(), state.slot_count()), (4, 2 * 4 + 2 * 10));
    assert_eq!((state.slot_count_of(0), state.slot_count_of(SLOW)), (8, 20));
    let sets = |slots: std::ops::Range<u64>| -> BTreeSet<u32> {
        slots.filter_map(|slot| state.slot_home(slot)).map(|home| home.set).collect()
    };
    assert_eq!((sets(0..8), sets(8..28)), ([0, 1].into(), [2, 3].into()));
    assert_eq!(state.column(3, 2), chunklet(6, 2));
    assert!(state.all_columns().eq([
        (0, 0),
        (0, 1),
        (1, 0),
        (1, 1),
        (2, 0),
        (2, 1),
        (2, 2),
        (3, 0),
        (3, 1),
        (3, 2)
    ]));
    // A third batch, of the first group again.
    let columns = vec![chunklet(0, 5), chunklet(1, 5)];
    state.apply_all(&[MetaRecord::SetsAdded { columns, sets_per_band: 1, group: 0 }]).expect("free");
    state.verify().expect("sound");
    assert_eq!(
        (state.slot_count_of(0), state.group_number_of(4), state.column(4, 1)),
        (12, 0, chunklet(1, 5))
    );
    assert_eq!(
        state.slot_at(SlotHome { set: 2, index: 9 }).and_then(|slot| state.slot_home(slot)),
        Some(SlotHome { set: 2, index: 9 })
    );
    assert_eq!(state.slot_at(SlotHome { set: 1, index: 9 }), None);
}

#[test]
fn what_is_of_a_group_stays_in_it() {
    let state = grouped();
    let added = |drives: &[u32], group| MetaRecord::SetsAdded {
        columns: drives.iter().map(|drive| chunklet(*drive, 7)).collect(),
        sets_per_band: 1,
        group,
    };
    assert!(matches!(refused(&state, added(&[0, 4], 0)), MetaError::OtherGroup { group: 1, wanted: 0, .. }));
    assert!(matches!(refused(&state, added(&[0, 1, 2], SLOW)), MetaError::OtherGroup { .. }));
    assert!(matches!(refused(&state, added(&[0, 1], 2)), MetaError::NoGroup { group: 2, count: 2 }));
    let moves = MetaRecord::ColumnEvacuating { set: 0, column: 0, target: chunklet(4, 7) };
    assert!(matches!(refused(&state, moves), MetaError::OtherGroup { .. }));
    let member = MetaRecord::MemberAdded(crate::Member { group: 2, ..member(20) });
    assert!(matches!(refused(&state, member), MetaError::NoGroup { .. }));
    let volume = MetaRecord::VolumeCreated(Volume { group: 2, ..volume(9, 1, true) });
    assert!(matches!(refused(&state, volume), MetaError::NoGroup { .. }));
    // A lost drive's columns go to drives of their group, though another has more free.
    let mut lost = state.clone();
    lost.apply_all(&[MetaRecord::MemberLost { member: 4 }]).expect("active");
    let homes: Vec<u32> = lost
        .lost_columns()
        .filter_map(|(set, column)| lost.choose_spare(set, column))
        .map(|chunklet| chunklet.drive)
        .collect();
    assert!(!homes.is_empty() && homes.iter().all(|drive| *drive == 7), "{homes:?}");
}

#[test]
fn groups_need_names_of_their_own_and_sets_that_can_be() {
    let state = grouped();
    let like = |name: &str| SetGroup { name: name.to_owned(), ..state.groups()[1].clone() };
    for name in ["", "fast", "slow"] {
        state.check(&MetaRecord::GroupAdded(like(name))).expect_err("no name");
    }
    let slots_per_set = 0;
    state.check(&MetaRecord::GroupAdded(SetGroup { slots_per_set, ..like("x") })).expect_err("no slots");
    state.check(&MetaRecord::GroupAdded(like("x"))).expect("a group");
    // A pool whose group has no name has no other one: who does not know of groups may open it.
    empty(4).check(&MetaRecord::GroupAdded(like("x"))).expect_err("the first has no name");
    assert!(!empty(4).has_groups() && state.has_groups());
}

/// What is promised to thick volumes of each group is there, whatever volumes of the others take.
#[test]
fn space_is_promised_by_group() {
    let mut state = grouped();
    let more = |number, extents, thin| MetaRecord::VolumeCreated(slow(number, extents, thin));
    state.apply_all(&[MetaRecord::AllocationsReserved { end: 100 }, more(0, 15, false)]).expect("it fits");
    assert!(matches!(refused(&state, more(1, 6, false)), MetaError::NoSpace { wanted: 6, free: 5 }));
    let fast = |number, extents| MetaRecord::VolumeCreated(volume(number, extents, false));
    assert!(matches!(refused(&state, fast(1, 9)), MetaError::NoSpace { wanted: 9, free: 8 }));
    state.apply_all(&[fast(1, 8), more(2, 30, true)]).expect("they fit");
    state.verify().expect("sound");
    // Five of the slow group's slots are nobody's.
    let map = |first: u32, count: u64| {
        MetaRecord::map(
            (0..count).map(|n| (extent(2, first + n as u32), slot(8 + u64::from(first) + n, 1 + n))),
        )
    };
    state.apply_all(&[map(0, 5)]).expect("free");
    assert!(matches!(refused(&state, map(5, 1)), MetaError::NoSpace { wanted: 1, free: 0 }));
    // Nor may it take what the fast group's volume has reserved.
    let astray = MetaRecord::map([(extent(2, 9), slot(0, 9))]);
    assert!(
        matches!(refused(&state, astray.clone()), MetaError::Contradiction { .. }),
        "extents stay in their group"
    );
    state.apply_all(&[MetaRecord::GroupsMixed {}]).expect("there are two");
    assert!(matches!(refused(&state, astray), MetaError::NoSpace { wanted: 1, free: 0 }));
    // A thick volume's extent in another group gives back what was reserved for it in its own.
    state.apply_all(&[MetaRecord::map([(extent(0, 0), slot(20, 50))])]).expect("its own");
    assert_eq!((state.reserved_slot_count_of(SLOW), state.room_in(SLOW)), (14, 0));
    // Of one that lies in another group a slot in its own stays reserved: it can always come back.
    let moved = MetaRecord::moves([(&[extent(0, 0)][..], Some(slot(0, 51)))]);
    assert!(state.clone().apply_all(&moved).is_err(), "the fast group's volume has reserved all of it");
    state.apply_all(&[MetaRecord::VolumeDeleted { volume: 1 }]).expect("there");
    state.apply_all(&moved).expect("free now");
    assert_eq!((state.reserved_slot_count_of(SLOW), state.room_in(SLOW)), (15, 0));
    assert_eq!(state.groups_reached_from(SLOW), [0, SLOW].into());
    let back = MetaRecord::moves([(&[extent(0, 0)][..], Some(slot(20, 52)))]);
    state.apply_all(&back).expect("its own");
    assert_eq!((state.reserved_slot_count_of(SLOW), state.away_of(0).count()), (14, 0));
    state.verify().expect("sound");
}

/// Random records against sums over everything.
#[test]
fn counts_by_group_agree_with_sums() {
    for seed in 0..200 {
        let mut random = Random::new(seed, 0);
        let mut state = grouped();
        state
            .apply_all(&[MetaRecord::AllocationsReserved { end: 1 << 20 }, MetaRecord::GroupsMixed {}])
            .expect("forward");
        let (mut volumes, mut next, mut allocation) = (Vec::new(), 0, 1);
        for _ in 0..120 {
            let record = match random.below(6) {
                0 | 1 => {
                    let (group, thin) = (random.below(2) as u32, random.chance(0.5));
                    let new = Volume { group, ..volume(next, 1 + random.below(8), thin) };
                    MetaRecord::VolumeCreated(new)
                }
                2 if !volumes.is_empty() => {
                    MetaRecord::VolumeDeleted { volume: volumes[random.below(volumes.len() as u64) as usize] }
                }
                _ if !volumes.is_empty() => {
                    let own = volumes[random.below(volumes.len() as u64) as usize];
                    allocation += 1;
                    let to = slot(random.below(state.slot_count()), allocation);
                    MetaRecord::map([(extent(own, random.below(8) as u32), to)])
                }
                _ => continue,
            };
            let before = state.clone();
            if state.apply_all(&[record.clone(), MetaRecord::VolumeDeleted { volume: 777 }]).is_ok() {
                panic!("there is no such volume");
            }
            assert_eq!(state, before, "seed {seed}: it is as before");
            if state.apply_all(std::slice::from_ref(&record)).is_ok() {
                match record {
                    MetaRecord::VolumeCreated(volume) => {
                        volumes.push(volume.number);
                        next += 1;
                    }
                    MetaRecord::VolumeDeleted { volume } => volumes.retain(|own| *own != volume),
                    _ => {}
                }
            }
            state.verify().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            for group in 0..2 {
                let own = (0..state.slot_count()).filter(|slot| {
                    let home = state.slot_home(*slot).expect("it is there");
                    state.group_number_of(home.set) == group
                });
                let (used, free): (Vec<u64>, Vec<u64>) =
                    own.partition(|slot| state.used_slots().contains(*slot));
                assert_eq!(state.used_slot_count_of(group), used.len() as u64);
                assert_eq!(state.free_slot_count_of(group), free.len() as u64);
                assert!(state.reserved_slot_count_of(group) <= free.len() as u64, "seed {seed}");
            }
        }
    }
    assert_eq!(u64::from(SLOTS_PER_SET), 4, "as the groups above have it");
}

/// The last drive that was accepted said its group in 4 bytes that had not been asked for, and the pool did not open again.
#[test]
fn what_is_accepted_fits_with_the_groups_that_it_names() {
    let one = |number: u32, length: usize| {
        let name = format!("d{number:0>length$}");
        Member { name, group: SLOW, ..member(number) }
    };
    let mut state = grouped();
    let mut number = 100;
    while state.apply_all(&[MetaRecord::MemberAdded(one(number, 63))]).is_ok() {
        number += 1;
    }
    let mut accepted = 0;
    for length in 1..63 {
        let mut next = state.clone();
        if next.apply_all(&[MetaRecord::MemberAdded(one(number, length))]).is_ok() {
            next.verify().unwrap_or_else(|error| panic!("a name of {length} bytes: {error}"));
            accepted += 1;
        }
    }
    assert!(number > 110 && accepted > 0, "{number} {accepted}");
}

/// Drives were added until a rebuild had no room in the metadata, and waited for ever.
#[test]
fn drives_that_are_added_leave_room_for_rebuilds() {
    let mut state = grouped();
    let newcomer = |number: u32| Member { name: format!("d{number:0>63}"), group: SLOW, ..member(number) };
    let mut number = 100;
    while state.check_member_leaves_room(&newcomer(number)).is_ok() {
        state.apply_all(&[MetaRecord::MemberAdded(newcomer(number))]).expect("it has room");
        number += 1;
    }
    assert!(number > 110, "{number}");
    let lost = MetaRecord::MemberLost { member: state.column(0, 0).drive };
    state.apply_all(&[lost]).expect("it can be lost");
    let columns: Vec<(u32, u32)> = state.lost_columns().collect();
    assert!(!columns.is_empty());
    for (set, column) in columns {
        let target = state.choose_spare(set, column);
        let Some(target) = target else { continue };
        state.apply_all(&[MetaRecord::ColumnRebuilding { set, column, target }]).expect("there is room");
    }
}

/// A checkpoint with right checksums ended the program when its sets were planned.
#[test]
fn extents_without_end_are_damage() {
    let mut geometry = grouped().geometry().clone();
    (geometry.chunklet_sectors, geometry.extent_sectors) = (u64::from(u32::MAX), 1 << 36);
    geometry.raid.set_size = 64;
    let members = (0..2).map(member).collect();
    let refused = PoolState::new("lab", "p", uuid::Uuid::from_u128(1), geometry, members);
    assert!(matches!(refused, Err(MetaError::Geometry { .. })), "{refused:?}");
}

#[test]
fn groups_have_lanes_of_the_log_and_more_come_with_new_rings() {
    let state = grouped();
    let placed = |count, lanes| {
        let rings = (0..count).map(|number| LogRing { is_void: true, ..ring(number, &[0, 1]) });
        MetaRecord::LogPlaced(LogPlacement { rings: rings.collect(), lanes })
    };
    // A ring takes half of a chunklet, and the first of each drive belongs to no set.
    for (count, lanes) in [(2, 3), (2, 0), (1, 2)] {
        assert!(
            matches!(refused(&state, placed(count, lanes)), MetaError::BadLog { .. }),
            "{count}, {lanes}"
        );
    }
    let mut single = empty(4);
    assert!(matches!(refused(&single, placed(2, 2)), MetaError::BadLog { .. }));
    single.apply_all(&[placed(2, 1)]).expect("two shards");
    assert_eq!((single.log().shards(), single.log().lane_of(1)), (2, 0));
    let mut state = state;
    state.apply_all(&[placed(2, 1)]).expect("two shards with one lane for both groups");
    let MetaRecord::LogPlaced(made) = placed(2, 2) else { unreachable!("it is placed") };
    assert!(matches!(refused(&state, MetaRecord::LogPlaced(made.made())), MetaError::BadLog { .. }));
    state.apply_all(&[placed(2, 2)]).expect("a shard");
    let log = state.log();
    assert_eq!((log.shards(), log.lane_of(0), log.lane_of(1)), (1, 0, 1));
    assert_eq!((log.of_shard(0).len(), log.of_shard(1).len()), (2, 0));
    assert!(matches!(refused(&state, placed(2, 1)), MetaError::BadLog { .. }));
    state.verify().expect("sound");
}

/// A pool of one group without a name gets a name for it and another group, and the other way round is refused.
#[test]
fn a_pool_of_one_group_gets_another() {
    let mut state = empty(4);
    let other = SetGroup { name: "flash".to_owned(), ..state.groups()[0].clone() };
    let named = |group: u32, name: &str| MetaRecord::GroupNamed { group, name: name.to_owned() };
    state.check(&named(1, "disks")).expect_err("there is no such group");
    state.check(&named(0, "")).expect_err("no name");
    state.apply_all(&[named(0, "disks"), MetaRecord::GroupAdded(other)]).expect("a group");
    state.verify().expect("sound");
    assert_eq!(state.name_of_group(0), Some("disks"));
    assert_eq!(state.name_of_group(1), Some("flash"));
    state.check(&named(0, "flash")).expect_err("the other has it");
}

#[test]
fn a_family_is_of_another_group_where_it_finds_room() {
    let mut state = grouped();
    let changed = |group| MetaRecord::FamilyGroupChanged { family: 0, group };
    let volumes =
        [MetaRecord::VolumeCreated(slow(0, 6, false)), MetaRecord::VolumeCreated(volume(1, 3, false))];
    state.apply_all(&volumes).expect("they fit");
    state.apply_all(&[MetaRecord::AllocationsReserved { end: 100 }]).expect("forward");
    state
        .apply_all(&[MetaRecord::map([(extent(0, 0), slot(8, 1)), (extent(0, 1), slot(9, 2))])])
        .expect("free");
    assert!(
        matches!(refused(&state, changed(0)), MetaError::Contradiction { .. }),
        "extents keep to their groups"
    );
    state.apply_all(&[MetaRecord::GroupsMixed {}]).expect("there are two");
    assert!(matches!(refused(&state, changed(0)), MetaError::NoSpace { wanted: 6, free: 5 }));
    state.apply_all(&[MetaRecord::VolumeDeleted { volume: 1 }]).expect("there");
    state.apply_all(&[changed(0)]).expect("there is room now");
    state.verify().expect("sound");
    assert_eq!(state.away_of(0).collect::<Vec<_>>(), [(SLOW, 2)]);
    assert_eq!((state.reserved_slot_count_of(0), state.reserved_slot_count_of(SLOW)), (6, 0));
    // One of its extents comes after it, and the volume goes back.
    let moved = MetaRecord::moves([(&[extent(0, 0)][..], Some(slot(3, 3)))]);
    state.apply_all(&moved).expect("free");
    state.apply_all(&[changed(SLOW)]).expect("it was there");
    state.verify().expect("sound");
    assert_eq!(state.away_of(0).collect::<Vec<_>>(), [(0, 1)]);
    assert_eq!((state.reserved_slot_count_of(0), state.reserved_slot_count_of(SLOW)), (0, 5));
    assert!(matches!(
        refused(&state, MetaRecord::FamilyGroupChanged { family: 7, group: 0 }),
        MetaError::NoVolume { .. }
    ));
}
