//! Finding and opening a pool on drives whose metadata areas hold anything: superblocks, checkpoints, journal.

use std::rc::Rc;

use tier0_drive::DriveHandle;
use tier0_pool::metadata::{Metadata, survey};
use tier0_pool::{
    ChunkletAddress, DriveClass, Geometry, GroupStage, LogCopy, LogPlacement, LogRing, Member, MemberState,
    MetaRecord, MetadataArea, PoolState, RaidRecord, SetGroup, Volume,
};
use tier0_units::{ExtentId, SlotRef, WriteCache};
use tier0_world::World;
use uuid::Uuid;

use super::image::Image;
use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "pool-open",
    seeds,
    repair,
    run,
    input_bytes_max: 32 << 10,
    inputs_in_tests: 500,
    // The drives keep pieces of 128 KiB of what is written; a checkpoint slot and both superblocks are read whole, from each
    // drive. The state of a pool is in proportion to what its checkpoint names.
    memory_bytes_max: (32 << 20, 1024),
};

const DRIVES: u16 = 2;
const DRIVE_SECTORS: u64 = 16_384;
const DRIVE_BLOCKS: u16 = (DRIVE_SECTORS / 8) as u16;
const CHUNKLET_SECTORS: u64 = 1024;
const EXTENT_SECTORS: u64 = 64;

/// A pool of one group of mirrors.
fn mirrored() -> PoolState {
    let mut state = PoolState::new("lab", "pool0", Uuid::from_u128(7), geometry(&mirrors()), Vec::new())
        .expect("a sound geometry");
    let columns = (0..4).flat_map(|index| [0, 1].map(|drive| ChunkletAddress { drive, index }));
    let records = [
        MetaRecord::MemberAdded(member(0, 0)),
        MetaRecord::MemberAdded(member(1, 0)),
        MetaRecord::SetsAdded { columns: columns.collect(), sets_per_band: 2, group: 0 },
        MetaRecord::VolumeCreated(volume()),
        MetaRecord::AllocationsReserved { end: 1000 },
    ];
    state.apply_all(&records).expect("valid");
    state
}

/// A pool of two groups, a drive each, with a lane of the write log for each.
fn grouped() -> PoolState {
    let single = RaidRecord { level: "raid0".into(), set_size: 1, groups: 1, stripe_unit_sectors: 8 };
    let mut state = PoolState::new("lab", "pool0", Uuid::from_u128(8), geometry(&single), Vec::new())
        .expect("a sound geometry");
    state.name_first_group("fast").expect("a name");
    let slow = SetGroup {
        name: "slow".into(),
        raid: single,
        slots_per_set: 15,
        spare_chunklets: 1,
        stage: GroupStage::default(),
    };
    let start = state.geometry().area.data_start_sectors;
    let ring = |number: u64| LogRing {
        id: Uuid::from_u128(2000 + u128::from(number)),
        copies: vec![LogCopy { member: 0, first_sector: start + number * 512, sectors: 512 }],
        is_void: true,
    };
    let set = |drive: u32, group| MetaRecord::SetsAdded {
        columns: vec![ChunkletAddress { drive, index: 1 }],
        sets_per_band: 1,
        group,
    };
    let records = [
        MetaRecord::GroupAdded(slow),
        MetaRecord::MemberAdded(member(0, 0)),
        MetaRecord::MemberAdded(member(1, 1)),
        MetaRecord::LogPlaced(LogPlacement { rings: vec![ring(0), ring(1)], lanes: 2 }),
        set(0, 0),
        set(1, 1),
        MetaRecord::VolumeCreated(volume()),
        MetaRecord::AllocationsReserved { end: 1000 },
    ];
    state.apply_all(&records).expect("valid");
    state
}

/// The same, of which the second group has left.
fn left() -> PoolState {
    let mut state = grouped();
    let records =
        [MetaRecord::GroupLeaving { group: 1, leaving: true }, MetaRecord::GroupRemoved { group: 1 }];
    state.apply_all(&records).expect("nothing lies in it");
    state
}

fn mirrors() -> RaidRecord {
    RaidRecord { level: "raid1".into(), set_size: 2, groups: 1, stripe_unit_sectors: 8 }
}

fn geometry(raid: &RaidRecord) -> Geometry {
    Geometry {
        chunklet_sectors: CHUNKLET_SECTORS,
        extent_sectors: EXTENT_SECTORS,
        slots_per_set: 15,
        spare_chunklets: 1,
        raid: raid.clone(),
        checksums: true,
        area: MetadataArea::plan([DRIVE_SECTORS; DRIVES as usize], CHUNKLET_SECTORS, EXTENT_SECTORS),
    }
}

fn member(number: u16, group: u32) -> Member {
    Member {
        id: Uuid::from_u128(100 + u128::from(number)),
        name: format!("d{number}"),
        sectors: DRIVE_SECTORS,
        class: DriveClass::Disk,
        state: MemberState::Active,
        leaving: false,
        role: Default::default(),
        group,
        path: String::new(),
    }
}

fn volume() -> Volume {
    Volume {
        number: 0,
        id: Uuid::from_u128(1000),
        name: "data".into(),
        sectors: 32 * EXTENT_SECTORS,
        thin: true,
        write_cache: WriteCache::Durable,
        read_cache: true,
        group: 0,
        branch: None,
    }
}

fn seeds() -> Vec<Vec<u8>> {
    [mirrored(), grouped(), left()].into_iter().flat_map(seeds_of).collect()
}

fn seeds_of(state: PoolState) -> Vec<Vec<u8>> {
    let blank = Image::of(&[], DRIVES, DRIVE_BLOCKS);
    let images = blank.run(|world, drives| async move {
        let pool = Metadata::create(&world, drives.clone(), state, Rc::new(|_, _| {})).await;
        let pool = pool.expect("the drives are good");
        for index in 0..3 {
            let extent = ExtentId { volume: 0, index: 2 * index };
            let slot = SlotRef { slot: u64::from(index), allocation: u64::from(index) + 1 };
            pool.commit(vec![MetaRecord::map([(extent, slot)])]).await.expect("the drives are good");
        }
        drop(pool);
        // The map is in the journal alone; an opening puts it into a page.
        let first = Image::taken(&drives).await;
        assert!(open(&world, &drives).await, "it opens");
        [first, Image::taken(&drives).await]
    });
    images.iter().map(Image::to_input).collect()
}

fn repair(input: &mut Vec<u8>) {
    let mut image = Image::of(input, DRIVES, DRIVE_BLOCKS);
    image.repair();
    *input = image.to_input();
}

fn run(input: &[u8]) -> bool {
    let image = Image::of(input, DRIVES, DRIVE_BLOCKS);
    image.run(|world, drives| async move { open(&world, &drives).await })
}

/// Opens every pool that is found; whether there was one.
async fn open(world: &World, drives: &[DriveHandle]) -> bool {
    let found = survey(drives.to_vec()).await;
    for other in &found.others {
        std::hint::black_box(format!("{other:?}").len());
    }
    let mut opened = false;
    for pool in found.pools {
        std::hint::black_box(pool.notes());
        match pool.open(world, Rc::new(|_, _| {})).await {
            Ok(pool) => {
                pool.state().verify().expect("what was opened was verified");
                opened = true;
            }
            Err(error) => {
                std::hint::black_box(error.to_string());
            }
        }
    }
    opened
}
