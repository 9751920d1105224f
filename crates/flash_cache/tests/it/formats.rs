//! What is stored: what is written is read back, and arbitrary bytes are read without harm.

use proptest::prelude::*;
use tier0_flash_cache::header::{self, Header, HeaderPlace};
use tier0_flash_cache::map_page::{self, ENTRIES, MapHead};
use tier0_flash_cache::{Entry, Line, record};
use uuid::Uuid;

fn entries() -> impl Strategy<Value = Option<Entry>> {
    proptest::option::of(
        (0..1u32 << 19, 1..4u8, 0..4u8, any::<u32>()).prop_map(|(tag, valid, rrpv, check)| Entry {
            tag,
            valid,
            rrpv,
            check,
        }),
    )
}

fn headers() -> impl Strategy<Value = Header> {
    let ids = (any::<u128>(), any::<u32>(), any::<u32>(), any::<u32>());
    let epochs = (any::<u64>(), proptest::option::of(any::<u64>()), any::<u64>(), any::<u64>());
    let shape = (1..=u32::MAX, any::<u64>(), any::<u32>(), -1e15..1e15);
    let born = proptest::collection::vec(any::<u64>(), 0..=255);
    (ids, epochs, shape, born).prop_map(|(ids, epochs, shape, born)| Header {
        id: Uuid::from_u128(ids.0),
        shard: ids.1,
        shards: ids.2,
        pages_per_slot: ids.3,
        current: epochs.0,
        next: epochs.1,
        format: epochs.2,
        generation: epochs.3,
        sets: shape.0,
        ring_blocks: shape.1,
        ways_at_format: shape.2,
        budget: shape.3,
        born,
    })
}

proptest! {
    #[test]
    fn a_header_is_read_back_and_a_flipped_bit_is_seen(header in headers(), bit in 0..4096 * 8usize) {
        let mut place = vec![1; header::BYTES];
        header::encode(&header, &mut place);
        prop_assert_eq!(header::decode(&place), HeaderPlace::Valid(header));
        place[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(header::decode(&place), HeaderPlace::None);
    }

    #[test]
    fn a_map_page_is_read_back_and_a_flipped_bit_is_seen(
        ids in (any::<u128>(), any::<u64>(), any::<u64>(), any::<u8>(), any::<u32>()),
        entries in proptest::collection::vec(entries(), 0..=ENTRIES),
        bit in 0..4096 * 8usize,
    ) {
        let head = MapHead { id: Uuid::from_u128(ids.0), format: ids.1, born: ids.2, way: ids.3, index: ids.4 };
        let mut page = vec![1; map_page::BYTES];
        map_page::encode(&head, entries.iter().copied(), &mut page);
        {
            let (found, read) = map_page::decode(&page).expect("it is a page");
            prop_assert_eq!(found, head);
            let read: Vec<Option<Entry>> = read.collect();
            prop_assert_eq!(&read[..entries.len()], &entries[..]);
            prop_assert!(read.len() == ENTRIES && read[entries.len()..].iter().all(Option::is_none));
        }
        page[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(map_page::decode(&page).is_none());
    }

    #[test]
    fn a_record_is_read_back(
        budget in -1e15..1e15,
        changes in proptest::collection::vec((any::<u8>(), any::<u32>(), entries()), 0..300),
    ) {
        let changes: Vec<record::Change> =
            changes.into_iter().map(|(way, set, entry)| (Line { way, set }, entry)).collect();
        let bytes = record::encode(budget, &changes);
        prop_assert_eq!(record::decode(&bytes), Some(record::Changes { budget, changes }));
        prop_assert_eq!(record::decode(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn arbitrary_bytes_are_read_without_harm(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..5000),
        magic in 0..4usize,
    ) {
        let magics: [&[u8]; 4] = [b"tier0fh\0", b"tier0fm\0", &[1, 0, 0, 0], b""];
        for (place, byte) in bytes.iter_mut().zip(magics[magic]) {
            *place = *byte;
        }
        bytes.resize(if bytes.len() > 2500 { 4096 } else { bytes.len() }, 0);
        header::decode(&bytes);
        if let Some((_, entries)) = map_page::decode(&bytes) {
            prop_assert_eq!(entries.count(), ENTRIES);
        }
        record::decode(&bytes);
    }
}

/// What version 2 is, byte by byte: a header, a map page and a record.
const FIXTURE: &[u8] = include_bytes!("../fixtures/flash-v2.bin");

fn fixture() -> Vec<u8> {
    let mut bytes = vec![0; header::BYTES + map_page::BYTES];
    let (place, page) = bytes.split_at_mut(header::BYTES);
    let header = Header {
        id: Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
        shard: 3,
        shards: 4,
        pages_per_slot: 4096,
        current: 0x1111,
        next: Some(0x2222),
        format: 0x3333,
        generation: 44,
        sets: 600,
        ring_blocks: 100,
        ways_at_format: 48,
        budget: 12_345_678.5,
        born: (0..50).map(|way| if way < 48 { 0 } else { way }).collect(),
    };
    header::encode(&header, place);
    let entry = Entry { tag: 0x7_1234, valid: 2, rrpv: 1, check: 0x89ab_cdef };
    let head = MapHead { id: header.id, format: header.format, born: 49, way: 49, index: 1 };
    map_page::encode(&head, [None, Some(entry)].into_iter(), page);
    bytes.extend(record::encode(
        1.5,
        &[(Line { way: 49, set: 505 }, Some(entry)), (Line { way: 2, set: 7 }, None)],
    ));
    bytes
}

#[test]
fn the_format_is_that_of_version_2() {
    if std::env::var_os("TIER0_WRITE_FIXTURES").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/flash-v2.bin");
        std::fs::write(path, fixture()).expect("it is written");
        return;
    }
    assert_eq!(fixture(), FIXTURE);
    assert!(
        matches!(header::decode(&FIXTURE[..header::BYTES]), HeaderPlace::Valid(header) if header.generation == 44)
    );
    let page = map_page::decode(&FIXTURE[header::BYTES..header::BYTES + map_page::BYTES]);
    assert_eq!(page.map(|(head, entries)| (head.way, entries.flatten().count())), Some((49, 1)));
    let found = record::decode(&FIXTURE[header::BYTES + map_page::BYTES..]);
    assert_eq!(found.map(|found| found.changes.len()), Some(2));
}
