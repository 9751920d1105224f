//! Superblocks as bytes: damaged ones, arbitrary ones, the frozen image.

use tier0_world::Random;
use uuid::Uuid;

use super::superblock::{self, Copy, PoolLabel, Superblock};
use crate::fixtures;
use crate::samples::{area, member};
use crate::{Member, MemberState};

fn superblock() -> Superblock {
    let lost = Member { state: MemberState::Lost, ..member(2) };
    let removed = Member { state: MemberState::Removed, ..member(3) };
    let label = PoolLabel {
        pool: Uuid::from_u128(1),
        array: "lab".into(),
        name: "pool0".into(),
        area: area(),
        carriers: vec![1, 0, 4],
        members: vec![member(0), member(1), lost, removed, member(4)],
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
    for version in [1, 3, 77] {
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
    fixtures::check("superblock-v2.bin", &superblock::encode(&superblock()), |bytes| {
        assert_eq!(superblock::decode(bytes), Copy::Valid(Box::new(superblock())));
    });
}
