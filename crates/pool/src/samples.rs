//! States for tests.

use tier0_units::{ExtentId, SlotRef, WriteCache};
use uuid::Uuid;

use crate::{
    ChunkletAddress, DriveClass, ExtentRun, FlashCacheDevice, FlashCachePlacement, Geometry, GroupStage,
    LogCopy, LogPlacement, LogRing, Member, MemberState, MetaRecord, MetadataArea, PoolState, RaidRecord,
    ScrubCursor, SetGroup, Volume,
};

pub(crate) const CHUNKLET_SECTORS: u64 = 1024;
pub(crate) const EXTENT_SECTORS: u64 = 256;
pub(crate) const SLOTS_PER_SET: u32 = 4;
/// Chunklets of a drive of the sample.
pub(crate) const CHUNKLETS: u64 = 12;

pub(crate) fn chunklet(drive: u32, index: u32) -> ChunkletAddress {
    ChunkletAddress { drive, index }
}

pub(crate) fn slot(slot: u64, allocation: u64) -> SlotRef {
    SlotRef { slot, allocation }
}

pub(crate) fn extent(volume: u32, index: u32) -> ExtentId {
    ExtentId { volume, index }
}

pub(crate) fn area() -> MetadataArea {
    // As pools had it whose frozen images are here.
    MetadataArea { journal_sectors: 512, checkpoint_sectors: 168, data_start_sectors: 1280 }
}

pub(crate) fn member(number: u32) -> Member {
    Member {
        id: Uuid::from_u128(0x1000 + u128::from(number)),
        name: format!("drive{number}"),
        sectors: area().data_start_sectors + CHUNKLETS * CHUNKLET_SECTORS + 7,
        class: if number < 2 { DriveClass::Flash } else { DriveClass::Disk },
        state: MemberState::Active,
        leaving: false,
        role: Default::default(),
        group: 0,
        path: String::new(),
    }
}

pub(crate) fn volume(number: u32, extents: u64, thin: bool) -> Volume {
    Volume {
        number,
        id: Uuid::from_u128(0x2000 + u128::from(number)),
        name: format!("volume{number}"),
        sectors: extents * EXTENT_SECTORS - 3,
        thin,
        write_cache: WriteCache::Durable,
        read_cache: true,
        group: 0,
        branch: None,
    }
}

pub(crate) fn ring(number: u32, members: &[u32]) -> LogRing {
    let first_sector = area().data_start_sectors + u64::from(number) * CHUNKLET_SECTORS / 2;
    let copies =
        members.iter().map(|member| LogCopy { member: *member, first_sector, sectors: CHUNKLET_SECTORS / 2 });
    LogRing { id: Uuid::from_u128(0x3000 + u128::from(number)), copies: copies.collect(), is_void: false }
}

/// Chunklets for a flash cache on drives 2 and 4 of a pool with a bit of everything.
pub(crate) fn flash_cache() -> FlashCachePlacement {
    let device = |member: u32, chunklets: &[std::ops::Range<u32>]| FlashCacheDevice {
        id: Uuid::from_u128(0x5000 + u128::from(member)),
        member,
        epoch: 7,
        chunklets: chunklets.to_vec(),
    };
    FlashCachePlacement { devices: vec![device(2, &[5..6]), device(4, &[4..5, 2..4])] }
}

/// Mirrors on this many drives, one chunklet kept free on each; no sets, log or volumes.
pub(crate) fn empty(members: u32) -> PoolState {
    let geometry = Geometry {
        chunklet_sectors: CHUNKLET_SECTORS,
        extent_sectors: EXTENT_SECTORS,
        slots_per_set: SLOTS_PER_SET,
        spare_chunklets: 1,
        raid: RaidRecord { level: "raid1".into(), set_size: 2, groups: 1, stripe_unit_sectors: 64 },
        checksums: true,
        area: area(),
    };
    let members = (0..members).map(member).collect();
    PoolState::new("lab", "pool0", Uuid::from_u128(1), geometry, members).expect("valid")
}

/// Two groups: `fast`, mirrors on drives 0 to 3, and `slow`, RAID 5 of three on drives 4 to 7, with two sets each.
pub(crate) fn grouped() -> PoolState {
    let mut state = empty(4);
    state.name_first_group("fast").expect("a name");
    let raid = RaidRecord { level: "raid5".into(), set_size: 3, groups: 1, stripe_unit_sectors: 64 };
    let slow = SetGroup {
        name: "slow".into(),
        raid,
        slots_per_set: 10,
        spare_chunklets: 2,
        stage: GroupStage::Stays,
    };
    let joins = (4..8).map(|number| MetaRecord::MemberAdded(Member { group: 1, ..member(number) }));
    let columns = |drives: [u32; 3], index| drives.map(|drive| chunklet(drive, index));
    let sets = [
        MetaRecord::SetsAdded {
            columns: vec![chunklet(0, 1), chunklet(1, 1), chunklet(2, 1), chunklet(3, 1)],
            sets_per_band: 2,
            group: 0,
        },
        MetaRecord::SetsAdded {
            columns: [columns([4, 5, 6], 1), columns([4, 5, 6], 2)].concat(),
            sets_per_band: 1,
            group: 1,
        },
    ];
    let records: Vec<MetaRecord> =
        std::iter::once(MetaRecord::GroupAdded(slow)).chain(joins).chain(sets).collect();
    state.apply_all(&records).expect("valid");
    state
}

/// Records that bring `empty(4)` to a state with a bit of everything.
pub(crate) fn story() -> Vec<MetaRecord> {
    let columns = (1..5).flat_map(|i| [chunklet(0, i), chunklet(1, i), chunklet(2, i), chunklet(3, i)]);
    vec![
        MetaRecord::LogPlaced(LogPlacement { rings: vec![ring(0, &[0, 1]), ring(1, &[0, 1])], lanes: 1 }),
        MetaRecord::SetsAdded { columns: columns.collect(), sets_per_band: 2, group: 0 },
        MetaRecord::AllocationsReserved { end: 1000 },
        MetaRecord::VolumeCreated(volume(0, 10, true)),
        MetaRecord::VolumeCreated(volume(2, 6, false)),
        MetaRecord::VolumeRenamed { volume: 2, name: "redo log".into() },
        MetaRecord::map((0..5).map(|i| (extent(0, i), slot(u64::from(i) + 3, u64::from(i) + 1)))),
        MetaRecord::map([(extent(2, 4), slot(20, 17)), (extent(2, 0), slot(0, 9))]),
        MetaRecord::UnmapExtents(vec![ExtentRun { first: extent(0, 1), count: 2 }]),
        MetaRecord::ModeChanged { volume: 0, write_cache: WriteCache::Volatile },
        MetaRecord::MemberAdded(member(4)),
        MetaRecord::MemberLost { member: 3 },
        MetaRecord::ColumnRebuilding { set: 1, column: 1, target: chunklet(4, 0) },
        MetaRecord::SlotsRebuilt { set: 1, column: 1, ranges: vec![0..1, 2..4] },
        MetaRecord::ColumnRebuilding { set: 3, column: 1, target: chunklet(4, 1) },
        MetaRecord::SlotsRebuilt { set: 3, column: 1, ranges: vec![0..4] },
        MetaRecord::ColumnRebuilt { set: 3, column: 1, with_lost_pages: false },
        MetaRecord::VolumeResized { volume: 0, sectors: 9 * EXTENT_SECTORS },
        MetaRecord::ScrubCursor(ScrubCursor { next_slot: 5, passes: 2 }),
        MetaRecord::VolumeCreated(volume(3, 1, true)),
        MetaRecord::VolumeDeleted { volume: 3 },
    ]
}

/// A state with a bit of everything that the first frozen images have.
pub(crate) fn full() -> PoolState {
    let mut state = empty(4);
    state.apply_all(&story()).expect("valid");
    // They do not tell to which drives columns belong that lie on others.
    state.inventory.displaced.clear();
    state
}
