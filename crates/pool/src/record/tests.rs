//! Transactions as bytes: every record, arbitrary bytes, the frozen image.

use tier0_world::Random;

use super::*;
use crate::samples::{chunklet, empty, extent, flash_cache, slot, story, volume};
use crate::{Pin, Place, Run, fixtures};

/// Every kind of record.
fn all() -> Vec<MetaRecord> {
    let mut records = story();
    records.push(MetaRecord::MemberRemoved { member: 7 });
    records.push(MetaRecord::ColumnRebuilding { set: 9, column: 2, target: chunklet(4, 5) });
    records.push(MetaRecord::MapExtents(Vec::new()));
    records
}

#[test]
fn every_record_comes_back() {
    assert_eq!(decode(&encode(&all())), Some(all()));
    for record in all() {
        assert_eq!(decode(&encode(std::slice::from_ref(&record))), Some(vec![record]));
    }
    assert_eq!(decode(&encode(&[])), Some(vec![]));
}

#[test]
fn neighbours_share_a_run() {
    let record =
        MetaRecord::map((0..100).map(|i| (extent(1, i + 5), slot(u64::from(i) + 70, u64::from(i) + 9))));
    let run = Run { index: 5, count: 100, slot: slot(70, 9) };
    assert_eq!(record, MetaRecord::MapExtents(vec![MappedRun { volume: 1, run }]));
    let record =
        MetaRecord::map([(extent(1, 5), slot(7, 1)), (extent(2, 6), slot(8, 2)), (extent(2, 7), slot(8, 3))]);
    assert!(matches!(record, MetaRecord::MapExtents(runs) if runs.len() == 3));
    let record = MetaRecord::unmap([extent(0, 1), extent(0, 2), extent(1, 3), extent(1, 5)]);
    assert!(matches!(record, MetaRecord::UnmapExtents(runs) if runs.len() == 3));
}

#[test]
fn what_is_cut_short_or_longer_or_newer_is_refused() {
    let bytes = encode(&all());
    for end in 0..bytes.len() {
        assert_eq!(decode(&bytes[..end]), None, "the first {end} bytes");
    }
    assert_eq!(decode(&[&bytes[..], &[0]].concat()), None);
    let mut newer = bytes.clone();
    newer[0] = 2;
    assert_eq!(decode(&newer), None);
    // Extents that share a slot belong to a later version.
    let mut shared = encode(&[MetaRecord::map([(extent(0, 0), slot(0, 1))])]);
    let references_at = 2 + 4 + 1 + 4 + 4 + 8;
    assert_eq!(shared[references_at], 1);
    shared[references_at] = 2;
    assert_eq!(decode(&shared), None);
}

#[test]
fn arbitrary_bytes_do_no_harm() {
    let mut random = Random::new(3, 0);
    let image = encode(&all());
    let mut read = 0;
    for _ in 0..20_000 {
        let mut bytes = image.clone();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = [random.bits() as u8, 0, 0xff][random.below(3) as usize];
        }
        bytes.truncate(random.below(bytes.len() as u64 + 1) as usize + 6);
        read += usize::from(decode(&bytes).is_some());
        let noise: Vec<u8> = (0..random.below(100)).map(|_| random.bits() as u8 & 0x1f).collect();
        read += usize::from(decode(&noise).is_some());
    }
    assert!(read < 20_000, "{read}");
}

#[test]
fn a_volume_without_read_cache_exists_by_two_records() {
    let off = Volume { read_cache: false, ..volume(4, 3, true) };
    let records = MetaRecord::create(off.clone());
    let expected = [
        MetaRecord::VolumeCreated(volume(4, 3, true)),
        MetaRecord::ReadCacheChanged { volume: 4, read_cache: false },
    ];
    assert_eq!(records, expected);
    assert_eq!(MetaRecord::create(volume(4, 3, true)), expected[..1]);
    let mut state = empty(4);
    state.apply_all(&records).expect("valid");
    assert_eq!(state.volume(4), Some(&off));
    // Programs from before this would not see it in the record of the volume.
    state
        .check(&MetaRecord::VolumeCreated(Volume { read_cache: false, ..volume(5, 3, true) }))
        .expect_err("refused");
}

#[test]
fn the_frozen_image_of_cache_switches_is_read_and_written() {
    let records = vec![
        MetaRecord::ReadCacheChanged { volume: 2, read_cache: false },
        MetaRecord::PoolCacheChanged(CacheSwitches { read: true, write: false }),
        MetaRecord::ReadCacheChanged { volume: 2, read_cache: true },
    ];
    fixtures::check("records-v1-switches.bin", &encode(&records), |bytes| {
        assert_eq!(decode(bytes), Some(records.clone()))
    });
}

#[test]
fn the_frozen_image_of_placements_is_read_and_written() {
    let pin = Pin { extents: 3..9, to: Place::Fast, until_unix_s: 1 << 33 };
    let placement = Placement { place: Place::Auto, pins: vec![pin] };
    let records = vec![
        MetaRecord::PlacementChanged { volume: 2, placement },
        MetaRecord::TierChanged(TierSettings { is_on: false, rate_bytes_per_s: 1 << 20 }),
    ];
    fixtures::check("records-v1-placements.bin", &encode(&records), |bytes| {
        assert_eq!(decode(bytes), Some(records.clone()))
    });
}

#[test]
fn the_frozen_image_of_groups_that_leave_is_read_and_written() {
    let records = vec![
        MetaRecord::GroupNamed { group: 0, name: "disks".to_owned() },
        MetaRecord::FamilyGroupChanged { family: 2, group: 1 },
        MetaRecord::GroupLeaving { group: 0, leaving: true },
        MetaRecord::GroupLeaving { group: 0, leaving: false },
        MetaRecord::GroupRemoved { group: 0 },
    ];
    fixtures::check("records-v1-leaving-groups.bin", &encode(&records), |bytes| {
        assert_eq!(decode(bytes), Some(records.clone()))
    });
}

#[test]
fn the_frozen_image_of_weights_is_read_and_written() {
    let records = vec![
        MetaRecord::WeightChanged { volume: 2, weight: 100 },
        MetaRecord::WeightChanged { volume: 2, weight: 10 },
    ];
    fixtures::check("records-v1-weights.bin", &encode(&records), |bytes| {
        assert_eq!(decode(bytes), Some(records.clone()))
    });
}

#[test]
fn the_frozen_image_of_ceilings_is_read_and_written() {
    let ceilings = Ceilings { iops_max: 5000, mbps_max: 200, burst_seconds: 10 };
    let records = vec![
        MetaRecord::CeilingsChanged { volume: 2, ceilings },
        MetaRecord::CeilingsChanged { volume: 2, ceilings: Ceilings::default() },
    ];
    fixtures::check("records-v1-ceilings.bin", &encode(&records), |bytes| {
        assert_eq!(decode(bytes), Some(records.clone()))
    });
}

#[test]
fn the_frozen_image_of_a_placed_flash_cache_is_read_and_written() {
    let records = vec![MetaRecord::FlashCachePlaced(flash_cache())];
    fixtures::check("records-v1-flash-cache.bin", &encode(&records), |bytes| {
        assert_eq!(decode(bytes), Some(records.clone()))
    });
}

#[test]
fn the_frozen_image_is_read_and_written() {
    fixtures::check("records-v1.bin", &encode(&all()), |bytes| assert_eq!(decode(bytes), Some(all())));
}
