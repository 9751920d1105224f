//! What a flash cache has on its devices: headers, map pages and records, told apart by their first bytes.

use tier0_flash_cache::header::{self, Header, HeaderPlace};
use tier0_flash_cache::map_page::{self, MapHead};
use tier0_flash_cache::{Entry, Line, record};
use uuid::Uuid;

use super::checksum::{crc64, put_u32, put_u64, u32_at};
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "flash-cache",
    seeds,
    repair,
    run,
    input_bytes_max: 4096,
    inputs_in_tests: 4000,
    // A change takes 12 bytes on the device and 24 in memory.
    memory_bytes_max: (32 << 10, 16),
};

const HEADER_MAGIC: &[u8] = b"tier0fh\0";
const MAP_MAGIC: &[u8] = b"tier0fm\0";

fn seeds() -> Vec<Vec<u8>> {
    let mut header_place = vec![0; header::BYTES];
    let header = Header {
        id: Uuid::from_u128(7),
        shard: 1,
        shards: 4,
        pages_per_slot: 4096,
        current: 11,
        next: Some(12),
        format: 5,
        generation: 9,
        sets: 2730,
        ring_blocks: 512,
        ways_at_format: 48,
        budget: 1e9,
        born: (0..60).map(|way| way * 1000).collect(),
    };
    header::encode(&header, &mut header_place);
    let entry = |n: u32| Entry {
        tag: n * 77 % (1 << 19),
        valid: 1 + (n % 3) as u8,
        rrpv: (n % 4) as u8,
        check: n << 9,
    };
    let mut page = vec![0; map_page::BYTES];
    let head = MapHead { id: Uuid::from_u128(7), format: 5, born: 3000, way: 3, index: 2 };
    map_page::encode(&head, (0..400).map(|n| (n % 5 != 0).then(|| entry(n))), &mut page);
    let changes: Vec<record::Change> =
        (0..40).map(|n| (Line { way: n as u8, set: n * 60 }, (n % 3 != 0).then(|| entry(n)))).collect();
    vec![header_place, page, record::encode(5e8, &changes)]
}

fn repair(bytes: &mut Vec<u8>) {
    let is_header = bytes.starts_with(&HEADER_MAGIC[..7]);
    if is_header || bytes.starts_with(&MAP_MAGIC[..7]) {
        let (magic, checksum_at, rest) =
            if is_header { (HEADER_MAGIC, 120, 128) } else { (MAP_MAGIC, 56, 64) };
        bytes.resize(4096, 0);
        bytes[..8].copy_from_slice(magic);
        if is_header {
            put_u32(bytes, 8, header::VERSION);
            let ways = u32_at(bytes, 12) % 256;
            put_u32(bytes, 12, ways);
        }
        let checksum = crc64(&[&bytes[..checksum_at], &bytes[rest..]]);
        put_u64(bytes, checksum_at, checksum);
        return;
    }
    let changes = bytes.len().saturating_sub(16) / 12;
    bytes.resize(16 + changes * 12, 0);
    put_u32(bytes, 0, 1);
    put_u32(bytes, 4, changes as u32);
}

fn run(bytes: &[u8]) -> bool {
    if let HeaderPlace::Valid(found) = header::decode(bytes) {
        let mut again = vec![0; header::BYTES];
        header::encode(&found, &mut again);
        assert_eq!(header::decode(&again), HeaderPlace::Valid(found), "what is written is read back");
        return true;
    }
    if let Some((head, entries)) = map_page::decode(bytes) {
        let entries: Vec<Option<Entry>> = entries.collect();
        let mut again = vec![0; map_page::BYTES];
        map_page::encode(&head, entries.iter().copied(), &mut again);
        let (head_again, entries_again) = map_page::decode(&again).expect("it was written");
        assert!(head == head_again && entries_again.eq(entries), "what is written is read back");
        return true;
    }
    let Some(found) = record::decode(bytes) else { return false };
    let again = record::decode(&record::encode(found.budget, &found.changes));
    assert_eq!(again, Some(found), "what is written is read back");
    true
}
