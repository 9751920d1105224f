//! A pool whose map has several pages: its frozen images, and power cuts while extents move and checkpoints are written.
//!
//! `pool-checkpoint-2.img` is what the last program without pages left after [`live`], `pool-checkpoint-3.img` what the first
//! one with them did: per block of 4 KiB that is not zeros its number (4 bytes, through all drives), the bytes kept (2), and
//! these. `TIER0_FREEZE=1 cargo test -p tier0-pool paged` writes the second if it is missing.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

use crate::common::{DRIVE_SECTORS, Essence, Rack, essence, member, no_hook, only_pool};
use tier0_drive::DriveHandle;
use tier0_drive::sim::{PowerSwitch, SimMedium, SimOptions};
use tier0_pool::metadata::{Metadata, survey};
use tier0_pool::{
    ChunkletAddress, Geometry, Member, MetaRecord, MetadataArea, PoolState, RaidRecord, ScrubCursor, Volume,
};
use tier0_units::{ExtentId, Lba, Nanos, SectorCount, SlotRef, WriteCache};
use tier0_world::{BufMut, IoError, PayloadWidth, PlantedBug, Random, World, plant};
use uuid::Uuid;

const MEMBERS: u32 = 4;
const DRIVES: usize = 5;
const CHUNKLET_SECTORS: u64 = 1024;
const EXTENT_SECTORS: u64 = 8;
const SLOTS_PER_SET: u32 = 100;
const SETS: u32 = 12;
/// Five pages of 252.
const SLOTS: u64 = SETS as u64 * SLOTS_PER_SET as u64;
const EXTENTS: u32 = 1100;
const BLOCK_BYTES: usize = 4096;
const BLOCKS: usize = (DRIVE_SECTORS / 8) as usize;

fn new_state() -> PoolState {
    state_of(SETS, EXTENTS, DRIVE_SECTORS)
}

/// Mirrors on four drives of this size, and one volume.
fn state_of(sets: u32, extents: u32, drive_sectors: u64) -> PoolState {
    let geometry = Geometry {
        chunklet_sectors: CHUNKLET_SECTORS,
        extent_sectors: EXTENT_SECTORS,
        slots_per_set: SLOTS_PER_SET,
        spare_chunklets: 1,
        raid: RaidRecord { level: "raid1".into(), set_size: 2, groups: 1, stripe_unit_sectors: 8 },
        checksums: true,
        area: MetadataArea::plan([drive_sectors; MEMBERS as usize], CHUNKLET_SECTORS, EXTENT_SECTORS),
    };
    let members = (0..MEMBERS).map(|number| Member { sectors: drive_sectors, ..member(number) }).collect();
    let mut state =
        PoolState::new("lab", "paged", Uuid::from_u128(7 << 90), geometry, members).expect("valid");
    let set = |set: u32| {
        [0, 1].map(|column| ChunkletAddress { drive: (2 * set + column) % MEMBERS, index: set / 2 })
    };
    let volume = Volume {
        number: 0,
        id: Uuid::from_u128(1000),
        name: "data".into(),
        sectors: u64::from(extents) * EXTENT_SECTORS,
        thin: true,
        write_cache: WriteCache::Durable,
        read_cache: true,
        group: 0,
        branch: None,
    };
    let records = [
        MetaRecord::SetsAdded { columns: (0..sets).flat_map(set).collect(), sets_per_band: 3, group: 0 },
        MetaRecord::VolumeCreated(volume),
        MetaRecord::AllocationsReserved { end: 1 << 40 },
    ];
    state.apply_all(&records).expect("valid");
    state
}

/// What the auditor knows: every state there was, and how many commits were acknowledged.
#[derive(Default)]
struct Known {
    state: RefCell<Option<PoolState>>,
    states: RefCell<Vec<Essence>>,
    acknowledged: RefCell<usize>,
}

impl Known {
    async fn commit(&self, metadata: &Metadata, batch: Vec<Vec<MetaRecord>>) {
        let mut commits = Vec::new();
        for records in batch {
            {
                let mut state = self.state.borrow_mut();
                let state = state.get_or_insert_with(new_state);
                state.apply_all(&records).expect("sound");
                self.states.borrow_mut().push(essence(state));
            }
            commits.push((self.states.borrow().len(), metadata.commit(records)));
        }
        for (number, commit) in commits {
            commit.await.expect("accepted");
            *self.acknowledged.borrow_mut() = number;
        }
    }

    /// A transaction that moves some extents that are mapped to slots that are free.
    fn moves(&self, random: &mut Random, count: u64, allocation: &mut u64) -> Vec<MetaRecord> {
        let state = self.state.borrow();
        let state = state.as_ref().expect("there is one");
        let map = state.map(0).expect("it has a map");
        let mut extents: Vec<ExtentId> = Vec::new();
        let mut pairs: Vec<(ExtentId, SlotRef)> = Vec::new();
        for _ in 0..count {
            let index = random.below(u64::from(EXTENTS)) as u32;
            let extent = ExtentId { volume: 0, index };
            let slot = random.below(SLOTS);
            let is_free = !state.used_slots().contains(slot) && pairs.iter().all(|(_, to)| to.slot != slot);
            if map.get(index).is_some() && is_free && !extents.contains(&extent) {
                *allocation += 1;
                extents.push(extent);
                pairs.push((extent, SlotRef { slot, allocation: *allocation }));
            }
        }
        match pairs.is_empty() {
            true => vec![MetaRecord::ScrubCursor(ScrubCursor { next_slot: *allocation, passes: 1 })],
            false => vec![MetaRecord::unmap(extents), MetaRecord::map(pairs)],
        }
    }
}

/// Fills the pool here and there, then moves extents, many at once, through several checkpoints; a carrier is lost on the way,
/// and all is renewed once.
async fn live(world: World, drives: Vec<DriveHandle>, known: Rc<Known>, rounds: u32) {
    let members = drives.into_iter().take(MEMBERS as usize).collect();
    let metadata = Metadata::create(&world, members, new_state(), no_hook()).await.expect("created");
    *known.state.borrow_mut() = Some(new_state());
    known.states.borrow_mut().push(essence(&new_state()));
    *known.acknowledged.borrow_mut() = 1;
    let mut random = Random::new(5, 0);
    let mut allocation = 0;
    // No two neighbours: 7 has no factor in common with either number.
    let pairs = (0..EXTENTS - 200).map(|i| {
        let index = i * 7 % EXTENTS;
        let slot = SlotRef { slot: u64::from(i) * 7 % SLOTS, allocation: u64::from(i) + 1 };
        (ExtentId { volume: 0, index }, slot)
    });
    let pairs: Vec<_> = pairs.collect();
    allocation += pairs.len() as u64 + 1;
    for some in pairs.chunks(250) {
        known.commit(&metadata, vec![vec![MetaRecord::map(some.iter().copied())]]).await;
    }
    for round in 0..rounds {
        let moves = known.moves(&mut random, 1 + u64::from(round % 7), &mut allocation);
        let scrub = vec![MetaRecord::ScrubCursor(ScrubCursor { next_slot: allocation, passes: 1 })];
        known.commit(&metadata, vec![moves, scrub]).await;
        if round == rounds / 2 {
            let lost = metadata.carriers()[0];
            metadata.lose(lost, IoError::Timeout).await.expect("others are left");
        }
        if round == rounds * 3 / 4 {
            metadata.renew().await.expect("others are left");
        }
    }
}

/// The blocks of all drives that are not zeros.
fn image(rack: &Rack) -> Vec<u8> {
    let mut image = Vec::new();
    let drives = rack.images();
    for (number, block) in (0u32..).zip(drives.iter().flat_map(|drive| drive.chunks(BLOCK_BYTES))) {
        if let Some(last) = block.iter().rposition(|byte| *byte != 0) {
            image.extend_from_slice(&number.to_le_bytes());
            image.extend_from_slice(&(last as u16 + 1).to_le_bytes());
            image.extend_from_slice(&block[..=last]);
        }
    }
    image
}

/// Puts an image on drives that hold nothing.
async fn put(image: &[u8], drives: &[DriveHandle]) {
    let mut rest = image;
    while let [a, b, c, d, e, f, more @ ..] = rest {
        let number = u32::from_le_bytes([*a, *b, *c, *d]) as usize;
        let (kept, behind) = more.split_at(usize::from(u16::from_le_bytes([*e, *f])));
        let mut block = kept.to_vec();
        block.resize(BLOCK_BYTES, 0);
        let buf = BufMut::copy_from(&block, PayloadWidth::REAL).freeze();
        let at = Lba((number % BLOCKS * 8) as u64);
        drives[number / BLOCKS].write(at, buf, true).await.expect("the drive is good");
        rest = behind;
    }
    for drive in drives {
        drive.flush().await.expect("the drive is good");
    }
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// Commits of the life whose end the images show.
const ROUNDS: u32 = 150;

fn freeze(name: &str) {
    let rack = Rack::new(DRIVES, 3);
    let known = Rc::new(Known::default());
    rack.run(0, |world, drives| live(world, drives, known, ROUNDS)).expect("the power stays");
    rack.power_cut();
    std::fs::write(fixture(name), image(&rack)).expect("the image can be written");
}

/// The state in which the life ended that the images show.
fn expected() -> Essence {
    let rack = Rack::new(DRIVES, 3);
    let known = Rc::new(Known::default());
    let kept = known.clone();
    rack.run(0, |world, drives| live(world, drives, kept, ROUNDS)).expect("the power stays");
    let states = known.states.borrow();
    states.last().expect("there is one").clone()
}

async fn open(world: &World, drives: &[DriveHandle]) -> Metadata {
    let found = only_pool(survey(drives.to_vec()).await).expect("there is a pool");
    let metadata = found.open(world, no_hook()).await.unwrap_or_else(|error| panic!("{error}"));
    metadata.state().verify().expect("sound");
    metadata
}

/// The versions of the checkpoints in both slots of the drives that carry metadata.
async fn versions(drives: &[DriveHandle], carriers: &[u32]) -> Vec<u8> {
    let area = new_state().geometry().area;
    let mut versions = Vec::new();
    for (carrier, slot) in carriers.iter().flat_map(|carrier| [(*carrier, 0), (*carrier, 1)]) {
        let drive = &drives[carrier as usize];
        let (result, buf) = drive.read(area.checkpoint_start(slot), drive.world().buffer(8)).await;
        result.expect("the drive is good");
        versions.push(buf.as_slice()[8]);
    }
    versions
}

#[test]
fn frozen_pools_of_both_versions_open_and_go_on() {
    let newest = "pool-checkpoint-3.img";
    if !fixture(newest).exists() && std::env::var_os("TIER0_FREEZE").is_some() {
        freeze(newest);
    }
    for name in ["pool-checkpoint-2.img", newest] {
        let image = std::fs::read(fixture(name)).expect("the image is there");
        let rack = Rack::new(DRIVES, 4);
        let opened = rack.run(0, move |world, drives| async move {
            put(&image, &drives).await;
            let metadata = open(&world, &drives).await;
            let found = essence(&metadata.state());
            let carriers = metadata.carriers();
            drop(metadata);
            let after = versions(&drives, &carriers).await;
            assert!(after.contains(&(tier0_pool::checkpoint::VERSION as u8)), "{name}: {after:?}");
            assert_eq!(essence(&open(&world, &drives).await.state()), found, "{name}");
            found
        });
        assert_eq!(opened.expect("the power stays"), expected(), "{name}");
    }
}

/// The old checkpoint lies where the pages of the new one go next, and counts until that one's root is stable.
#[test]
fn a_crash_anywhere_in_the_upgrade_leaves_the_old_or_the_new() {
    let image: Rc<[u8]> = std::fs::read(fixture("pool-checkpoint-2.img")).expect("the image is there").into();
    let (expected, mut old, mut new) = (expected(), 0, 0);
    for at in 1..200 {
        let rack = Rack::new(DRIVES, at);
        let kept = image.clone();
        rack.run(0, |_, drives| async move { put(&kept, &drives).await }).expect("the power stays");
        rack.switch.arm(at);
        let ended = rack.run(1, |world, drives| async move { drop(open(&world, &drives).await) });
        rack.power_cut();
        let (found, versions) = rack
            .run(2, |world, drives| async move {
                let versions = versions(&drives, &[1, 2, 3]).await;
                (essence(&open(&world, &drives).await.state()), versions)
            })
            .expect("the power stays");
        assert_eq!(found, expected, "command {at}");
        let is_new = versions.contains(&3);
        (old, new) = (old + u32::from(!is_new), new + u32::from(is_new));
        if ended.is_some() {
            break;
        }
    }
    assert!(old > 10 && new > 10, "{old} crashes left the old format alone, {new} the new one");
}

/// Crashes at command `at` of a life, then in the middle of opening, then opens; whether the life had ended before.
fn crash(at: u64, seed: u64) -> bool {
    let rack = Rack::new(DRIVES, seed);
    let known = Rc::new(Known::default());
    rack.switch.arm(at);
    let kept = known.clone();
    let ended = rack.run(0, |world, drives| live(world, drives, kept, 120)).is_some();
    rack.power_cut();
    let mut random = Random::new(seed, at);
    if *known.acknowledged.borrow() == 0 {
        return ended;
    }
    for life in 1..1 + random.below(3) {
        rack.switch.arm(1 + random.below(60));
        rack.run(life, |world, drives| async move { drop(open(&world, &drives).await) });
        rack.power_cut();
    }
    let found = rack.run(99, |world, drives| async move { essence(&open(&world, &drives).await.state()) });
    let found = found.expect("the power stays");
    let states = known.states.borrow();
    let number = states.iter().rposition(|state| *state == found);
    let number = number.unwrap_or_else(|| panic!("command {at}: the state is none of those that were"));
    let acknowledged = *known.acknowledged.borrow();
    assert!(number + 1 >= acknowledged, "command {at}: state {number}, {acknowledged} were acknowledged");
    ended
}

#[test]
fn nothing_is_lost_while_extents_move_and_pages_are_written() {
    let mut at = 1;
    while !crash(at, 1 + at % 3) {
        at += 2;
    }
    assert!(at > 400, "the life had only {at} commands");
}

#[test]
fn planted_bugs_are_found() {
    std::panic::set_hook(Box::new(|_| {}));
    let bugs = [PlantedBug::PageInPlace, PlantedBug::RootBeforePages];
    let is_missed = |bug: &PlantedBug| {
        let _planted = plant(*bug);
        std::panic::catch_unwind(|| (1..1500).step_by(2).for_each(|at| _ = crash(at, 1))).is_ok()
    };
    let mut missed: Vec<PlantedBug> = bugs.into_iter().filter(is_missed).collect();
    let bug = PlantedBug::ForgetFrozenPage;
    let _planted = plant(bug);
    if std::panic::catch_unwind(|| (0..40).for_each(move_while_frozen)).is_ok() {
        missed.push(bug);
    }
    let _ = std::panic::take_hook();
    assert_eq!(missed, []);
}

/// A page that one carrier cannot read is taken from another, and written again.
#[test]
fn a_page_is_read_from_whoever_has_it() {
    let rack = Rack::new(DRIVES, 9);
    rack.run(0, |world, drives| live(world, drives, Rc::default(), 20)).expect("the power stays");
    let area = new_state().geometry().area;
    let before = rack.run(1, |world, drives| async move {
        let metadata = open(&world, &drives).await;
        (essence(&metadata.state()), metadata.carriers())
    });
    let (before, carriers) = before.expect("the power stays");
    // Each carrier lacks other pages, on both sides.
    for (page, carrier) in (0..5u64).zip(carriers.iter().cycle()) {
        for side in 0..2 {
            let at = area.checkpoint_start(side + 1).0 - (page + 1) * 8;
            rack.media[*carrier as usize].make_unreadable(at + 3..at + 4);
        }
    }
    let after = rack.run(2, |world, drives| async move { essence(&open(&world, &drives).await.state()) });
    assert_eq!(after, Some(before));
}

/// Twenty-four pages: more than are encoded in a turn.
const LARGE_SETS: u32 = 60;
const LARGE_DRIVE_SECTORS: u64 = 65_536;
const LARGE_EXTENTS: u32 = 3_000;

/// What was committed, in order, and how many of the commits were acknowledged.
#[derive(Default)]
struct History {
    records: RefCell<Vec<Vec<MetaRecord>>>,
    acknowledged: Cell<usize>,
}

/// A full map, and extents that move at any moment while all pages are written, again and again.
async fn live_frozen(world: World, drives: Vec<DriveHandle>, history: Rc<History>, seed: u64) {
    // What will be when all commits have been accepted; while a journal begins anew they wait.
    let state = RefCell::new(state_of(LARGE_SETS, LARGE_EXTENTS, LARGE_DRIVE_SECTORS));
    let first = state.borrow().clone();
    let metadata = Metadata::create(&world, drives, first, no_hook()).await.expect("created");
    let mut random = Random::new(seed, 1);
    let slots = metadata.state().slot_count();
    let home = |i: u32| SlotRef { slot: u64::from(i) * 7 % slots, allocation: u64::from(i) + 1 };
    let all = (0..LARGE_EXTENTS).map(|index| (ExtentId { volume: 0, index }, home(index)));
    let commit = |records: Vec<MetaRecord>| {
        state.borrow_mut().apply_all(&records).expect("sound");
        history.records.borrow_mut().push(records.clone());
        let (number, commit) = (history.records.borrow().len(), metadata.commit(records));
        let history = history.clone();
        async move {
            commit.await.expect("accepted");
            history.acknowledged.set(number.max(history.acknowledged.get()));
        }
    };
    for some in all.collect::<Vec<_>>().chunks(1_000) {
        commit(vec![MetaRecord::map(some.iter().copied())]).await;
    }
    let renewing = metadata.clone();
    world.spawn(async move { while renewing.renew().await.is_ok() {} }).detach();
    for allocation in 1_000_000..1_003_000 {
        let index = random.below(u64::from(LARGE_EXTENTS)) as u32;
        let extent = ExtentId { volume: 0, index };
        let slot = random.below(slots);
        let is_free = !state.borrow().used_slots().contains(slot);
        if is_free {
            let to = SlotRef { slot, allocation };
            let moved = commit(vec![MetaRecord::unmap([extent]), MetaRecord::map([(extent, to)])]);
            world.spawn(moved).detach();
        }
        world.sleep(Nanos(random.below(4_000))).await;
    }
}

/// The power fails at some moment of such a life, and what is found is one of the states that were.
fn move_while_frozen(seed: u64) {
    let switch = PowerSwitch::new();
    let medium = |number| {
        let sectors = SectorCount(LARGE_DRIVE_SECTORS);
        SimMedium::new(SimOptions::new(&format!("sim{number}"), sectors, seed * 100 + number), &switch)
    };
    let media = (0..u64::from(MEMBERS)).map(medium).collect();
    let rack = Rack { switch, media, seed };
    let history = Rc::new(History::default());
    let kept = history.clone();
    rack.switch.arm(120 + Random::new(seed, 0).below(400));
    rack.run(0, |world, drives| live_frozen(world, drives, kept, seed));
    rack.power_cut();
    let found = rack.run(1, |world, drives| async move { open(&world, &drives).await.state().clone() });
    let found = found.expect("the power stays");
    let mut state = state_of(LARGE_SETS, LARGE_EXTENTS, LARGE_DRIVE_SECTORS);
    let (records, acknowledged) = (history.records.borrow(), history.acknowledged.get());
    records[..acknowledged].iter().for_each(|records| state.apply_all(records).expect("sound"));
    let mut later = records[acknowledged..].iter();
    while state.map(0) != found.map(0) {
        let next = later.next();
        let next = next.unwrap_or_else(|| panic!("seed {seed}: the state is none of those that were"));
        state.apply_all(next).expect("sound");
    }
}

#[test]
fn extents_move_while_all_pages_are_written() {
    (0..40).for_each(move_while_frozen);
}
