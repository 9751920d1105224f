//! The table of a slot's checksums.

use tier0_integrity::table::{FoundTable, TABLE_VERSION, TableBlock, block_sectors, decode, encode};
use tier0_raid::set::SetIndex;
use tier0_units::{SECTOR_BYTES, SlotRef};

use super::checksum::{crc64, put_u32, put_u64, u32_at};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "slot-table",
    seeds,
    repair,
    run,
    input_bytes_max: 8192,
    inputs_in_tests: 4000,
    memory_bytes_max: (16 << 10, 4),
};

const HEADER_BYTES: usize = 64;

fn seeds() -> Vec<Vec<u8>> {
    let table = TableBlock {
        pool: 0x0123_4567_89ab_cdef,
        set: SetIndex(7),
        slot: SlotRef { slot: 1_000_000, allocation: 42 },
        generation: 3,
        entries: (0..100).map(|page: u32| page.wrapping_mul(0x9e37_79b9)).collect(),
    };
    vec![bytes_of(&table)]
}

fn bytes_of(table: &TableBlock) -> Vec<u8> {
    let mut block = vec![0; (block_sectors(table.entries.len() as u32) * SECTOR_BYTES) as usize];
    encode(table, &mut block);
    block
}

fn repair(bytes: &mut Vec<u8>) {
    if bytes.len() < HEADER_BYTES {
        bytes.resize(HEADER_BYTES, 0);
    }
    bytes[..8].copy_from_slice(b"tier0st\0");
    put_u32(bytes, 8, TABLE_VERSION);
    let most = (bytes.len() - HEADER_BYTES) / 4;
    let pages = u32_at(bytes, 12).min(most as u32);
    put_u32(bytes, 12, pages);
    let checksum = crc64(&[&bytes[..56], &bytes[HEADER_BYTES..]]);
    put_u64(bytes, 56, checksum);
}

fn run(bytes: &[u8]) -> bool {
    let FoundTable::Valid(table) = decode(bytes) else { return false };
    assert_eq!(decode(&bytes_of(&table)), FoundTable::Valid(table), "what is written is read back");
    true
}
