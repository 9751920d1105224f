//! The state against single rules, and against a naive model with random records.

use tier0_units::WriteCache;

use super::*;
use crate::samples::{
    CHUNKLET_SECTORS, EXTENT_SECTORS, chunklet, empty, extent, flash_cache, full, member, ring, slot, story,
    volume,
};
use crate::{
    CacheSwitches, Caching, Ceilings, CeilingsChange, ExtentRun, FlashCacheDevice, FlashCachePlacement,
    MappedRun, SharedRun,
};

mod balance;
mod groups;
mod leaving_groups;
mod model;
mod returning;
mod roles;

fn refused(state: &PoolState, record: MetaRecord) -> MetaError {
    state.check(&record).expect_err("refused")
}

#[test]
fn sizes_from_damaged_metadata_can_be_told() {
    let error = MetaError::MemberTooSmall { name: "d0".to_owned(), sectors: 1, needed: u64::MAX };
    assert!(error.to_string().contains("16.00EiB"), "{error}");
}

#[test]
fn a_story_is_told_record_by_record() {
    let mut state = empty(4);
    for record in story() {
        state.check(&record).unwrap_or_else(|error| panic!("{record:?}: {error}"));
        state.apply(record);
        state.verify().expect("sound");
    }
    assert_eq!(state.displaced_from(3).collect::<Vec<_>>(), [(3, 1)], "it was rebuilt on another drive");
    state.inventory.displaced.clear();
    assert_eq!(state, full());
    assert_eq!(state.slot(extent(0, 3)), Some(slot(6, 4)));
    assert_eq!(state.slot(extent(0, 1)), None);
    assert_eq!(state.reserved_slot_count(), 4);
    assert_eq!(state.column(3, 1), chunklet(4, 1));
    assert_eq!(state.lost_columns().collect::<Vec<_>>(), [(5, 1), (7, 1)]);
    assert_eq!(state.volume_named("redo log").map(|volume| volume.number), Some(2));
    assert_eq!(state.next_volume(), 4);
}

#[test]
fn a_transaction_is_all_or_nothing() {
    let state = full();
    let hopeless = MetaRecord::VolumeDeleted { volume: 77 };
    let parts: [&[MetaRecord]; 6] = [
        &[MetaRecord::unmap([extent(0, 0)]), MetaRecord::map([(extent(0, 1), slot(3, 90))])],
        &[MetaRecord::VolumeDeleted { volume: 0 }, MetaRecord::VolumeCreated(volume(9, 3, true))],
        &[
            MetaRecord::AllocationsReserved { end: 5000 },
            MetaRecord::VolumeCreated(volume(9, 3, true)),
            MetaRecord::map([(extent(9, 2), slot(30, 4000))]),
        ],
        &[MetaRecord::SlotsRebuilt { set: 1, column: 1, ranges: vec![0..4] }],
        &[
            MetaRecord::ColumnRebuilding { set: 1, column: 1, target: chunklet(4, 7) },
            MetaRecord::SlotsRebuilt { set: 1, column: 1, ranges: vec![2..3] },
        ],
        &[
            MetaRecord::SetsAdded {
                columns: vec![chunklet(1, 8), chunklet(2, 8)],
                sets_per_band: 1,
                group: 0,
            },
            MetaRecord::map([(extent(0, 7), slot(33, 900))]),
        ],
    ];
    for part in parts {
        let mut changed = state.clone();
        changed.apply_all(part).unwrap_or_else(|error| panic!("{part:?}: {error}"));
        changed.verify().expect("sound");
        assert_ne!(changed, state);
        let mut unchanged = state.clone();
        let records: Vec<MetaRecord> = part.iter().cloned().chain([hopeless.clone()]).collect();
        assert_eq!(unchanged.apply_all(&records), Err(MetaError::NoVolume { volume: 77 }));
        assert_eq!(unchanged, state, "{part:?} was not taken back");
    }
}

#[test]
fn slots_and_extents_have_one_partner() {
    let state = full();
    let map = |pairs: &[(ExtentId, SlotRef)]| MetaRecord::map(pairs.iter().copied());
    let cases = [
        (map(&[(extent(0, 0), slot(9, 50))]), MetaError::ExtentMapped { extent: extent(0, 0) }),
        (map(&[(extent(0, 6), slot(3, 50))]), MetaError::SlotTaken { slot: 3 }),
        (map(&[(extent(0, 6), slot(9, 50)), (extent(0, 7), slot(9, 51))]), MetaError::SlotTaken { slot: 9 }),
        (
            map(&[(extent(0, 6), slot(9, 50)), (extent(0, 6), slot(10, 52))]),
            MetaError::ExtentMapped { extent: extent(0, 6) },
        ),
        (
            map(&[(extent(0, 6), slot(9, 50)), (extent(0, 7), slot(11, 50))]),
            MetaError::Allocation { allocation: 50, end: 1000 },
        ),
        (map(&[(extent(0, 6), slot(9, 1000))]), MetaError::Allocation { allocation: 1000, end: 1000 }),
        (map(&[(extent(0, 6), slot(9, 0))]), MetaError::Allocation { allocation: 0, end: 1000 }),
        (map(&[(extent(0, 9), slot(9, 50))]), MetaError::ExtentOutside { extent: extent(0, 9) }),
        (map(&[(extent(7, 0), slot(9, 50))]), MetaError::NoVolume { volume: 7 }),
        (map(&[(extent(0, 6), slot(32, 50))]), MetaError::SlotOutside { slot: 32, count: 32 }),
        (MetaRecord::unmap([extent(0, 1)]), MetaError::ExtentUnmapped { extent: extent(0, 1) }),
        (
            MetaRecord::UnmapExtents(vec![ExtentRun { first: extent(0, 3), count: 1 }; 2]),
            MetaError::ExtentUnmapped { extent: extent(0, 3) },
        ),
    ];
    for (record, expected) in cases {
        assert_eq!(refused(&state, record), expected);
    }
}

#[test]
fn runs_that_leave_the_numbers_are_refused() {
    let state = full();
    let run = |index, count, first, allocation| {
        let run = Run { index, count, slot: slot(first, allocation) };
        MetaRecord::MapExtents(vec![MappedRun { volume: 0, run }])
    };
    for record in [
        run(u32::MAX, u32::MAX, u64::MAX, u64::MAX),
        run(5, u32::MAX, 8, 50),
        run(5, 0, 8, 50),
        run(5, 2, u64::MAX, 50),
        run(5, 2, 8, u64::MAX),
        MetaRecord::UnmapExtents(vec![ExtentRun { first: extent(0, u32::MAX), count: u32::MAX }]),
    ] {
        refused(&state, record);
    }
}

#[test]
fn thick_volumes_keep_their_space() {
    let state = full();
    // 32 slots, 5 used, 4 more reserved by the thick volume: 23 are left.
    assert_eq!(state.free_slot_count_of(0) - state.reserved_slot_count(), 23);
    let thick = |extents| MetaRecord::VolumeCreated(volume(8, extents, false));
    assert_eq!(state.check(&thick(23)), Ok(()));
    assert_eq!(refused(&state, thick(24)), MetaError::NoSpace { wanted: 24, free: 23 });
    let mut full_pool = state.clone();
    full_pool.apply(thick(23));
    let thin = MetaRecord::map([(extent(0, 8), slot(31, 50))]);
    assert_eq!(refused(&full_pool, thin), MetaError::NoSpace { wanted: 1, free: 0 });
    let own = MetaRecord::map([(extent(2, 1), slot(31, 50))]);
    assert_eq!(full_pool.check(&own), Ok(()), "its own space is there for a thick volume");
    let grown = MetaRecord::VolumeResized { volume: 2, sectors: 7 * EXTENT_SECTORS };
    assert_eq!(refused(&full_pool, grown), MetaError::NoSpace { wanted: 1, free: 0 });
}

#[test]
fn chunklets_have_one_owner_and_serving_drives() {
    let state = full();
    let add = |columns: &[ChunkletAddress]| MetaRecord::SetsAdded {
        columns: columns.to_vec(),
        sets_per_band: 1,
        group: 0,
    };
    let target = |set, column, target| MetaRecord::ColumnRebuilding { set, column, target };
    let texts = [
        (add(&[chunklet(0, 8), chunklet(0, 9)]), "two columns on drive 0"),
        (add(&[chunklet(0, 8), chunklet(1, 1)]), "column 1 of set 0"),
        (add(&[chunklet(0, 0), chunklet(1, 8)]), "the write log"),
        (add(&[chunklet(2, 8), chunklet(4, 0)]), "the rebuild of column 1 of set 1"),
        (add(&[chunklet(0, 8), chunklet(3, 8)]), "is lost"),
        (add(&[chunklet(0, 8), chunklet(1, 12)]), "no chunklet 12"),
        (add(&[chunklet(0, 8)]), "whole sets"),
        (add(&[]), "whole sets"),
        (target(1, 1, chunklet(2, 8)), "two columns on drive 2"),
        (target(1, 1, chunklet(4, 0)), "the rebuild of column 1 of set 1"),
        (target(9, 1, chunklet(4, 8)), "no column 1 of set 9"),
        (target(5, 1, chunklet(3, 8)), "is lost"),
        (MetaRecord::ColumnRebuilt { set: 5, column: 1, with_lost_pages: false }, "not being rebuilt"),
        (MetaRecord::SlotsRebuilt { set: 5, column: 1, ranges: vec![] }, "not being rebuilt"),
        (MetaRecord::SlotsRebuilt { set: 1, column: 1, ranges: vec![3..5] }, "among the 4"),
        (MetaRecord::MemberRemoved { member: 3 }, "still holds column 1 of set 1"),
        (MetaRecord::MemberRemoved { member: 0 }, "still holds the write log"),
        (MetaRecord::MemberLost { member: 3 }, "is lost"),
        (MetaRecord::MemberLost { member: 9 }, "no drive 9"),
        (MetaRecord::MemberAdded(member(2)), "already"),
        (MetaRecord::MemberAdded(Member { sectors: 100, ..member(9) }), "holds 50KiB, too small"),
        (MetaRecord::MemberAdded(Member { sectors: 1 << 55, ..member(9) }), "a drive cannot have"),
        (MetaRecord::AllocationsReserved { end: 999 }, "back"),
        (MetaRecord::VolumeCreated(volume(3, 1, true)), "used before"),
        (MetaRecord::VolumeCreated(Volume { name: "redo log".into(), ..volume(9, 1, true) }), "already"),
        (
            MetaRecord::VolumeResized { volume: 0, sectors: 4 * EXTENT_SECTORS },
            "extent 4 of volume 0 is mapped",
        ),
        (MetaRecord::VolumeResized { volume: 0, sectors: 0 }, "cannot have 0 sectors"),
        (MetaRecord::VolumeResized { volume: 0, sectors: u64::MAX }, "choose a size"),
    ];
    for (record, text) in texts {
        let error = refused(&state, record.clone()).to_string();
        assert!(error.contains(text), "{record:?}: {error}");
    }
}

#[test]
fn a_cache_is_used_where_volume_and_pool_have_it_on() {
    let mut state = full();
    let mut caching = |record: MetaRecord| {
        state.apply_all(&[record]).expect("valid");
        state.verify().expect("sound");
        let volume = state.volume(0).expect("it is there");
        let Caching { read, write } = state.caching(volume);
        (read, write)
    };
    let pool = |read, write| MetaRecord::PoolCacheChanged(CacheSwitches { read, write });
    let volume = |read_cache| MetaRecord::ReadCacheChanged { volume: 0, read_cache };
    let mode = |write_cache| MetaRecord::ModeChanged { volume: 0, write_cache };
    assert_eq!(caching(mode(WriteCache::Volatile)), (true, WriteCache::Volatile));
    assert_eq!(caching(pool(true, false)), (true, WriteCache::Off));
    assert_eq!(caching(mode(WriteCache::Durable)), (true, WriteCache::Off));
    assert_eq!(caching(pool(false, true)), (false, WriteCache::Durable), "its own is as it was set");
    assert_eq!(caching(volume(false)), (false, WriteCache::Durable));
    assert_eq!(caching(pool(true, true)), (false, WriteCache::Durable));
    assert_eq!(caching(volume(true)), (true, WriteCache::Durable));
    let gone = MetaRecord::ReadCacheChanged { volume: 77, read_cache: true };
    assert_eq!(refused(&state, gone), MetaError::NoVolume { volume: 77 });
}

/// Chunklets of the flash cache are nobody else's, and a drive that is lost takes its part with it.
#[test]
fn a_flash_cache_has_chunklets_of_its_own() {
    let mut state = full();
    let placed = |devices| MetaRecord::FlashCachePlaced(FlashCachePlacement { devices });
    let devices = flash_cache().devices;
    let with = |at: usize, change: &dyn Fn(&mut FlashCacheDevice)| {
        let mut devices = devices.clone();
        change(&mut devices[at]);
        placed(devices)
    };
    let refused = [
        with(0, &|device| device.chunklets = vec![1..2]),
        with(0, &|device| device.chunklets = vec![5..1000]),
        with(0, &|device| device.chunklets = vec![]),
        with(0, &|device| device.member = 3),
        with(0, &|device| device.member = 4),
        with(1, &|device| device.chunklets = vec![2..4, 3..5]),
        with(1, &|device| device.id = devices[0].id),
    ];
    for record in refused {
        state.check(&record).expect_err("refused");
    }
    let free = state.free_chunklets(4);
    state.apply_all(&[placed(devices.clone())]).expect("valid");
    assert_eq!((state.free_chunklets(4), state.flash_cache().devices.len()), (free - 3, 2));
    state.check(&MetaRecord::MemberRemoved { member: 4 }).expect_err("it holds columns and a cache");
    state.apply_all(&[MetaRecord::MemberLost { member: 4 }]).expect("valid");
    assert_eq!(state.flash_cache().devices, devices[..1]);
    state.verify().expect("sound");
    let grown = FlashCacheDevice { chunklets: vec![5..7], epoch: 8, ..devices[0].clone() };
    state.apply_all(&[placed(vec![grown])]).expect("valid");
    state.verify().expect("sound");
    state.apply_all(&[placed(vec![])]).expect("valid");
    state.verify().expect("sound");
}

/// The first switch that is off takes room for those of all volumes.
#[test]
fn switches_that_could_outgrow_their_place_are_refused() {
    let mut state = empty(2);
    let mut number = 0;
    for bytes in [200, 3] {
        let record = |number| {
            let name = format!("{number:0>bytes$}");
            MetaRecord::VolumeCreated(Volume { name, ..volume(number, 5, true) })
        };
        while state.check(&record(number)).is_ok() {
            state.apply(record(number));
            number += 1;
        }
    }
    let off = [
        MetaRecord::ReadCacheChanged { volume: 0, read_cache: false },
        MetaRecord::PoolCacheChanged(CacheSwitches { read: true, write: false }),
    ];
    for record in off {
        assert!(matches!(refused(&state, record), MetaError::TooLarge { .. }));
    }
    let on = MetaRecord::ReadCacheChanged { volume: 0, read_cache: true };
    assert_eq!(state.check(&on), Ok(()), "it is on already");
    for volume in [1, 2] {
        state.apply_all(&[MetaRecord::VolumeDeleted { volume }]).expect("it is there");
    }
    state
        .apply_all(&[MetaRecord::ReadCacheChanged { volume: 0, read_cache: false }])
        .expect("there is room now");
    state.verify().expect("sound");
}

#[test]
fn ceilings_change_as_far_as_something_is_said() {
    let known = Ceilings { iops_max: 100, mbps_max: 0, burst_seconds: 5 };
    let change = CeilingsChange { mbps_max: Some(20), ..CeilingsChange::default() };
    assert_eq!(change.of(known), Ceilings { mbps_max: 20, ..known });
    let lift = CeilingsChange { iops_max: Some(0), ..CeilingsChange::default() };
    assert_eq!(lift.of(known), Ceilings::default(), "without ceilings there is no burst");
    assert_eq!(MetaRecord::limit(0, known, CeilingsChange::default()), None);
}

#[test]
fn ceilings_are_of_a_volume_and_go_with_it() {
    let mut state = full();
    let ceilings = Ceilings { iops_max: 100, ..Ceilings::default() };
    state.apply_all(&[MetaRecord::CeilingsChanged { volume: 2, ceilings }]).expect("valid");
    assert_eq!(state.ceilings(2), ceilings);
    let gone = MetaRecord::CeilingsChanged { volume: 77, ceilings };
    assert_eq!(refused(&state, gone), MetaError::NoVolume { volume: 77 });
    for wrong in [
        Ceilings { burst_seconds: 5, ..Ceilings::default() },
        Ceilings { iops_max: Ceilings::MOST.iops_max + 1, ..Ceilings::default() },
    ] {
        let record = MetaRecord::CeilingsChanged { volume: 2, ceilings: wrong };
        assert!(matches!(refused(&state, record), MetaError::Contradiction { .. }));
    }
    state.apply_all(&[MetaRecord::VolumeDeleted { volume: 2 }]).expect("it is there");
    assert_eq!(state.ceilings(2), Ceilings::default());
    state.verify().expect("sound");
}

#[test]
fn weights_are_of_a_volume_and_go_with_it() {
    let mut state = full();
    state.apply_all(&[MetaRecord::WeightChanged { volume: 2, weight: 100 }]).expect("valid");
    assert_eq!((state.weight(2), state.weight(0)), (100, 10));
    let gone = MetaRecord::WeightChanged { volume: 77, weight: 5 };
    assert_eq!(refused(&state, gone), MetaError::NoVolume { volume: 77 });
    for weight in [0, 101] {
        let record = MetaRecord::WeightChanged { volume: 2, weight };
        assert!(matches!(refused(&state, record), MetaError::Contradiction { .. }));
    }
    state.apply_all(&[MetaRecord::VolumeDeleted { volume: 2 }]).expect("it is there");
    assert_eq!(state.weight(2), 10);
    state.verify().expect("sound");
    assert_eq!(MetaRecord::weigh(0, 10, Some(10)), None);
    assert_eq!(MetaRecord::weigh(0, 10, None), None);
}

#[test]
fn a_rebuild_is_complete_when_every_extent_is_there() {
    let mut state = full();
    let done = MetaRecord::ColumnRebuilt { set: 1, column: 1, with_lost_pages: false };
    // Slot index 1 of set 1 is pool slot 3, which has an extent.
    assert_eq!(state.slot_home(3), Some(SlotHome { set: 1, index: 1 }));
    assert_eq!(refused(&state, done.clone()), MetaError::NotRebuilt { set: 1, column: 1, slot: 3 });
    let mut moved = state.clone();
    moved.apply_all(&[MetaRecord::unmap([extent(0, 0)]), done.clone()]).expect("nothing is missing now");
    state
        .apply_all(&[MetaRecord::SlotsRebuilt { set: 1, column: 1, ranges: vec![1..2] }, done])
        .expect("complete");
    assert_eq!(state.column(1, 1), chunklet(4, 0));
    assert!(!state.inventory.owners.contains_key(&chunklet(3, 1)), "the old chunklet is nobody's");
    state.verify().expect("sound");
}

#[test]
fn a_rebuild_starts_again_elsewhere() {
    let mut state = full();
    state
        .apply_all(&[MetaRecord::MemberAdded(member(5)), MetaRecord::MemberLost { member: 4 }])
        .expect("valid");
    let lost: Vec<(u32, u32)> = state.lost_columns().collect();
    assert_eq!(lost, [(1, 1), (3, 1), (5, 1), (7, 1)]);
    for (set, column) in lost {
        let target = state.choose_spare(set, column).expect("there is one");
        state.apply_all(&[MetaRecord::ColumnRebuilding { set, column, target }]).expect("valid");
        assert!(state.rebuild(set, column).is_some_and(|rebuild| rebuild.rebuilt.count() == 0));
    }
    assert_eq!(state.lost_columns().next(), None);
    let targets: Vec<u32> = state.rebuilds().map(|(_, _, rebuild)| rebuild.target.drive).collect();
    assert!(targets.contains(&5) && targets.iter().all(|drive| [0, 1, 5].contains(drive)), "{targets:?}");
    state.verify().expect("sound");
}

#[test]
fn logs_lie_apart_on_whole_pages() {
    let state = full();
    let place = |rings: Vec<LogRing>| MetaRecord::LogPlaced(LogPlacement { rings, lanes: 1 });
    let mut odd = ring(0, &[0, 1]);
    odd.copies[0].first_sector += 4;
    let mut in_front = ring(0, &[0, 1]);
    in_front.copies[0].first_sector = 8;
    let mut over_data = ring(0, &[0, 1]);
    over_data.copies[1].sectors = CHUNKLET_SECTORS + 8;
    let texts = [
        (place(vec![odd]), "whole pages"),
        (place(vec![in_front]), "whole pages"),
        (place(vec![over_data]), "column 1 of set 0"),
        (place(vec![ring(0, &[0, 1]), ring(0, &[2])]), "identity"),
        (place(vec![ring(0, &[0, 0])]), "two copies"),
        (place(vec![ring(0, &[])]), "1 to 3 copies"),
        (place(vec![ring(0, &[0]), LogRing { id: Uuid::from_u128(5), ..ring(0, &[0]) }]), "overlap"),
        (place(vec![ring(0, &[0, 3])]), "is lost"),
    ];
    for (record, text) in texts {
        let error = refused(&state, record.clone()).to_string();
        assert!(error.contains(text), "{record:?}: {error}");
    }
    let many = (0..100_000).map(|number| LogRing { id: Uuid::from_u128(number), ..ring(0, &[0]) });
    assert!(refused(&state, place(many.collect())).to_string().contains("make it smaller"));
    let mut moved = state.clone();
    moved.apply_all(&[place(vec![ring(0, &[2, 4])])]).expect_err("chunklet 0 of drive 4 is being rebuilt to");
    moved.apply_all(&[place(vec![ring(0, &[2, 1])])]).expect("valid");
    moved.verify().expect("sound");
    assert!(!moved.inventory.owners.contains_key(&chunklet(0, 0)));
}

#[test]
fn a_state_that_could_outgrow_its_place_is_refused() {
    let mut state = empty(2);
    let mut number = 0;
    let error = loop {
        let name = format!("{number:0>200}");
        let record = MetaRecord::VolumeCreated(Volume { name, ..volume(number, 5, true) });
        match state.check(&record) {
            Ok(()) => state.apply(record),
            Err(error) => break error,
        }
        number += 1;
    };
    assert!(matches!(error, MetaError::TooLarge { .. }), "{error}");
    assert!(number > 50, "{number}");
    // A new drive is still welcome.
    assert_eq!(state.check(&MetaRecord::MemberAdded(member(2))), Ok(()));
    let room = state.geometry.area.body_bytes_max(crate::checkpoint::page_count(state.slot_count()));
    assert!(crate::checkpoint::image::encode_parts(&state).0.len() as u64 <= room);
    state.verify().expect("sound");
}
