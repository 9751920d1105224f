//! A copy of a superblock.

use std::collections::BTreeMap;

use tier0_pool::metadata::Starts;
use tier0_pool::metadata::superblock::{self, Copy, PoolLabel, Superblock};
use tier0_pool::{DriveClass, Features, Member, MemberState, MetadataArea};
use uuid::Uuid;

use super::checksum::{crc64, put_u32, put_u64, u32_at};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "superblock",
    seeds,
    repair,
    run,
    input_bytes_max: 60 << 10,
    inputs_in_tests: 4000,
    // A member takes at most 80 bytes in memory and its name, and at least 28 and its name on the drive; vectors double, and
    // it is encoded again.
    memory_bytes_max: (64 << 10, 16),
};

const HEADER_BYTES: usize = 48;

fn seeds() -> Vec<Vec<u8>> {
    let member = |number: u32, state| Member {
        id: Uuid::from_u128(u128::from(number)),
        name: format!("d{number}"),
        sectors: 1 << 20,
        class: DriveClass::Flash,
        state,
        leaving: false,
        role: Default::default(),
        group: 0,
        path: format!("/dev/disk/by-id/d{number}"),
    };
    let label = PoolLabel {
        pool: Uuid::from_u128(100),
        array: "lab".into(),
        name: "pool0".into(),
        area: MetadataArea::plan([1 << 20; 3], 1024, 64),
        carriers: vec![0, 2],
        members: vec![
            member(1, MemberState::Active),
            member(2, MemberState::Lost),
            member(3, MemberState::Removed),
        ],
        features: Features { compatible: 1, ..Features::default() },
        settled: 4,
        lost_in: BTreeMap::from([(1, 3)]),
        given_up: BTreeMap::new(),
        starts: Starts::default(),
    };
    let mut bytes = superblock::encode(&Superblock { generation: 5, member: Uuid::from_u128(1), label });
    // Without the filling.
    bytes.truncate(HEADER_BYTES + u32_at(&bytes, 12) as usize);
    vec![bytes]
}

fn repair(bytes: &mut Vec<u8>) {
    if bytes.len() < HEADER_BYTES {
        bytes.resize(HEADER_BYTES, 0);
    }
    bytes[..8].copy_from_slice(b"tier0sb\0");
    put_u32(bytes, 8, superblock::VERSION);
    let length = bytes.len() - HEADER_BYTES;
    put_u32(bytes, 12, length as u32);
    let checksum = crc64(&[&bytes[..40], &bytes[HEADER_BYTES..]]);
    put_u64(bytes, 40, checksum);
}

fn run(bytes: &[u8]) -> bool {
    let Copy::Valid(read) = superblock::decode(bytes) else { return false };
    let written = superblock::encode(&read);
    assert_eq!(superblock::decode(&written), Copy::Valid(read), "what is written is read back");
    true
}
