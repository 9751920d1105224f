//! Superblocks as bytes: damaged ones, arbitrary ones, the frozen image.

use std::collections::BTreeMap;

use tier0_world::Random;
use uuid::Uuid;

use super::starts::Starts;
use super::superblock::{self, Copy, GivenUp, PoolLabel, Superblock};
use crate::codec::crc64;
use crate::features::{GIVEN_UP, GROUPS, LEFT};
use crate::fixtures;
use crate::samples::{area, member};
use crate::{Features, Member, MemberState};

fn superblock() -> Superblock {
    let lost = Member { state: MemberState::Lost, ..member(2) };
    let removed = Member { state: MemberState::Removed, ..member(3) };
    let label = PoolLabel {
        pool: Uuid::from_u128(1),
        array: "lab".into(),
        name: "pool0".into(),
        area: area(),
        carriers: vec![1, 0, 4],
        members: vec![
            member(0),
            Member { path: "/dev/disk/by-id/sample-1".into(), ..member(1) },
            lost,
            removed,
            member(4),
        ],
        features: Features::default(),
        settled: 11,
        lost_in: BTreeMap::from([(2, 9)]),
        given_up: BTreeMap::from([(member(2).id, GivenUp { up_to: 8, start: None })]),
        starts: Starts::default(),
    };
    Superblock { generation: 12, member: label.members[1].id, label }
}

#[test]
fn a_superblock_comes_back() {
    let bytes = superblock::encode(&superblock());
    assert!(bytes.len().is_multiple_of(4096));
    assert_eq!(superblock::decode(&bytes), Copy::Valid(Box::new(superblock())));
    assert!(superblock::fits(&superblock().label));
}

#[test]
fn any_flipped_bit_is_damage() {
    let bytes = superblock::encode(&superblock());
    let used = bytes.iter().rposition(|byte| *byte != 0).expect("not empty") + 1;
    for bit in 0..used * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(!matches!(superblock::decode(&damaged), Copy::Valid(_)), "bit {bit}");
    }
}

#[test]
fn other_formats_are_recognised() {
    let mut bytes = superblock::encode(&superblock());
    for version in [1, 4, 77] {
        bytes[8] = version;
        bytes[12..].fill(7);
        assert_eq!(superblock::decode(&bytes), Copy::Other(u32::from(version)));
    }
    bytes[8] = 0;
    assert_eq!(superblock::decode(&bytes), Copy::Damaged);
}

#[test]
fn arbitrary_bytes_do_no_harm() {
    let mut random = Random::new(5, 0);
    let image = superblock::encode(&superblock());
    for _ in 0..20_000 {
        let mut bytes = image.clone();
        bytes.truncate(random.below(700) as usize);
        for _ in 0..1 + random.below(3) {
            if let Some(last) = bytes.len().checked_sub(1) {
                let at = random.below(last as u64 + 1) as usize;
                bytes[at] = !bytes[at];
            }
        }
        // Twice the same byte: it is as it was.
        if let Copy::Valid(read) = superblock::decode(&bytes) {
            assert_eq!(*read, superblock());
        }
    }
}

#[test]
fn a_label_too_large_for_its_place_is_known() {
    let mut label = superblock().label;
    let many = (0..1000).map(|number| Member { name: format!("{number:0>100}"), ..member(number) });
    label.members.extend(many);
    assert!(!superblock::fits(&label));
}

#[test]
fn the_frozen_image_is_read_and_written() {
    fixtures::check("superblock-v3.bin", &superblock::encode(&superblock()), |bytes| {
        assert_eq!(superblock::decode(bytes), Copy::Valid(Box::new(superblock())));
    });
}

#[test]
fn the_frozen_image_with_starts_is_read_and_written() {
    let mut with_starts = superblock();
    with_starts.label.features = Features::NONE.of_next_superblock();
    with_starts.label.starts = Starts::of(&[(1, 0x0123_4567_89ab_cdef), (12, 7)]);
    fixtures::check("superblock-v3-starts.bin", &superblock::encode(&with_starts), |bytes| {
        assert_eq!(superblock::decode(bytes), Copy::Valid(Box::new(with_starts.clone())));
    });
}

#[test]
fn the_frozen_image_that_says_when_members_left_is_read_and_written() {
    let mut with_left = superblock();
    with_left.label.features.compatible = LEFT | 1;
    with_left.label.starts = Starts::of(&[(1, 5)]);
    with_left.label.lost_in.insert(3, 7);
    fixtures::check("superblock-v3-left.bin", &superblock::encode(&with_left), |bytes| {
        assert_eq!(superblock::decode(bytes), Copy::Valid(Box::new(with_left.clone())));
    });
    // Of members that are not removed, of none, or twice it is said by nobody.
    let bytes = superblock::encode(&with_left);
    let used = bytes.iter().rposition(|byte| *byte != 0).expect("not empty") + 1;
    let place = used - 1 - 4;
    assert_eq!(bytes[place], 3, "the place is here");
    for wrong in [0, 2, 5] {
        let mut bytes = bytes.clone();
        bytes[place] = wrong;
        assert_eq!(superblock::decode(&with_checksum(bytes)), Copy::Damaged, "{wrong}");
    }
}

#[test]
fn the_frozen_image_that_says_what_was_given_up_is_read_and_written() {
    let mut superblock = superblock();
    superblock.label.features.compatible = GIVEN_UP | LEFT | 1;
    superblock.label.starts = Starts::of(&[(1, 5)]);
    superblock.label.lost_in.insert(3, 7);
    superblock.label.given_up = BTreeMap::from([
        (member(1).id, GivenUp { up_to: 7, start: None }),
        (member(2).id, GivenUp { up_to: 8, start: Some(5) }),
        (member(9).id, GivenUp { up_to: 10, start: None }),
        (member(8).id, GivenUp { up_to: 12, start: Some(6) }),
    ]);
    fixtures::check("superblock-v3-given-up.bin", &superblock::encode(&superblock), |bytes| {
        assert_eq!(superblock::decode(bytes), Copy::Valid(Box::new(superblock.clone())));
    });
    // Nobody is given up twice, and a member as what was said of it before.
    let bytes = superblock::encode(&superblock);
    let last = bytes.iter().rposition(|byte| *byte != 0).expect("not empty") + 1;
    // The last entry is that of drive 8: the last byte of its identity, its generation, its start.
    let identity = last - 10;
    assert_eq!((bytes[identity], bytes[identity + 1], bytes[last - 1]), (8, 12, 6));
    for (at, wrong) in [(identity, 1), (identity, 9), (identity + 1, 0)] {
        let mut bytes = bytes.clone();
        bytes[at] = wrong;
        assert_eq!(superblock::decode(&with_checksum(bytes)), Copy::Damaged, "{at}: {wrong}");
    }
}

/// A superblock with its checksum made right.
fn with_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) as usize;
    let checksum = crc64(&[&bytes[..40], &bytes[48..48 + length]]);
    bytes[40..48].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// A drive with such a superblock ended the program, and had the others write numbers that nothing can follow.
#[test]
fn generations_that_nothing_can_follow_are_damage() {
    let bytes = superblock::encode(&superblock());
    for generation in [1 << 62, u64::MAX - 2, u64::MAX] {
        let mut absurd = superblock();
        absurd.generation = generation;
        assert_eq!(superblock::decode(&superblock::encode(&absurd)), Copy::Damaged);
        let mut absurd = superblock();
        (absurd.label.features.compatible, absurd.label.starts) = (1, Starts::of(&[(generation, 5)]));
        assert_eq!(superblock::decode(&superblock::encode(&absurd)), Copy::Damaged);
        let mut absurd = superblock();
        absurd.label.settled = generation;
        assert_eq!(superblock::decode(&superblock::encode(&absurd)), Copy::Damaged);
    }
    assert!(matches!(superblock::decode(&bytes), Copy::Valid(_)));
}

#[test]
fn a_superblock_says_the_groups_of_drives_where_there_are_any() {
    let mut grouped = superblock();
    grouped.label.features = Features { incompatible: GROUPS, compatible: 1, ..Features::NONE };
    grouped.label.starts = Starts::of(&[(1, 5)]);
    grouped.label.members[1].group = 1;
    fixtures::check("superblock-v3-groups.bin", &superblock::encode(&grouped), |bytes| {
        assert_eq!(superblock::decode(bytes), Copy::Valid(Box::new(grouped.clone())));
    });
    assert_eq!(grouped.label.features.of_next_superblock().incompatible, GROUPS, "it stays");
}

/// The members that left last are remembered where there is no room for all, and paths give way to them.
#[test]
fn as_many_that_left_are_remembered_as_there_is_room_for() {
    let mut label = superblock().label;
    label.features.compatible = 1;
    let name = |number: u32| format!("{number:0>200}");
    let gone =
        (5..250).map(|number| Member { name: name(number), state: MemberState::Removed, ..member(number) });
    label.members.extend(gone);
    label.lost_in.extend((5..250).map(|place| (place, u64::from(place))));
    let read = |label: &PoolLabel| match superblock::decode(&superblock::encode(&Superblock {
        generation: 300,
        member: label.members[0].id,
        label: label.clone(),
    })) {
        Copy::Valid(read) => read.label,
        other => panic!("{other:?}"),
    };
    assert_eq!(read(&label).lost_in, label.lost_in);
    let last = (250..).map(|number| Member { name: name(number), ..member(number) });
    for member in last {
        let mut larger = label.clone();
        larger.members.push(member);
        if !superblock::fits(&larger) {
            break;
        }
        label = larger;
    }
    let known = read(&label).lost_in;
    assert!(known.len() < label.lost_in.len(), "{} of {}", known.len(), label.lost_in.len());
    assert!(known.iter().all(|(place, generation)| label.lost_in[place] == *generation));
    let removed: Vec<u32> = known.keys().copied().filter(|place| *place >= 5).collect();
    assert!(removed.iter().rev().zip((5..250).rev()).all(|(place, last)| *place == last), "the last stay");
}

#[test]
fn the_frozen_image_of_version_2_is_read() {
    let mut old = superblock();
    old.label.members[1].path.clear();
    (old.label.settled, old.label.lost_in) = (0, BTreeMap::new());
    old.label.given_up.clear();
    assert_eq!(superblock::decode(&fixtures::read("superblock-v2.bin")), Copy::Valid(Box::new(old)));
}

/// A superblock whose sets of features are these, with bytes behind that only others understand.
fn with_features(features: Features) -> Copy {
    let mut superblock = superblock();
    superblock.label.features = features;
    let mut bytes = superblock::encode(&superblock);
    let length = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes")) + 8;
    bytes[12..16].copy_from_slice(&length.to_le_bytes());
    let checksum = crc64(&[&bytes[..40], &bytes[48..48 + length as usize]]);
    bytes[40..48].copy_from_slice(&checksum.to_le_bytes());
    superblock::decode(&bytes)
}

#[test]
fn features_that_are_not_known_are_ignored_or_refused() {
    for features in
        [Features { compatible: 16, ..Features::default() }, Features { read_only: 1, ..Features::default() }]
    {
        let mut expected = superblock();
        expected.label.features = features;
        assert_eq!(with_features(features), Copy::Valid(Box::new(expected)));
    }
    let features = Features { compatible: 1, read_only: 0, incompatible: 1 << 3 | 1 << 17 };
    assert_eq!(with_features(features), Copy::Unknown(1 << 3 | 1 << 17));
    assert_eq!(with_features(Features::default()), Copy::Damaged, "nobody's bytes");
}

#[test]
fn paths_without_room_are_left_out() {
    let mut superblock = superblock();
    let path = |number: u32| format!("/dev/disk/by-id/{number:0>1000}");
    let many = (5..300).map(|number| Member { path: path(number), ..member(number) });
    superblock.label.members.extend(many);
    assert!(superblock::fits(&superblock.label));
    let Copy::Valid(read) = superblock::decode(&superblock::encode(&superblock)) else {
        panic!("it is valid")
    };
    let kept = read.label.members.iter().filter(|member| !member.path.is_empty()).count();
    assert!((30..64).contains(&kept), "{kept} paths of 1 KiB in 64 KiB");
    assert_eq!(read.label.members.len(), 300);
}
