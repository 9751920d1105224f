//! Checkpoints as bytes: whole states, damaged ones, arbitrary ones, the frozen image.

use tier0_units::{ExtentId, SectorCount, SlotRef, WriteCache};
use tier0_world::Random;
use uuid::Uuid;

use super::image::{decode, decode_parts, encode, encode_page_of, encode_parts, header_of};
use super::*;
use crate::codec::{Reader, Writer, crc64};
use crate::features::{FLASH_CACHE, STAGES, SWITCHES};
use crate::fixtures;
use crate::samples::{area, chunklet, empty, extent, flash_cache, full, grouped, member, ring, slot, volume};
use crate::state::{Branch, DriveRole, Member, Tenant};
use crate::{
    CacheSwitches, Caching, Ceilings, FlashCachePlacement, LogPlacement, MetaError, MetaRecord, Pin, Place,
    Placement, PoolState, RebuildSource, SetGroup, SharedRun, TierSettings, Volume,
};

#[test]
fn states_come_back() {
    for state in [
        empty(1),
        empty(4),
        full(),
        with_family(),
        with_switches(),
        with_flash_cache(),
        with_roles(),
        with_placements(),
        with_leaving_groups(),
    ] {
        let bytes = encode(&state);
        assert!(bytes.len().is_multiple_of(4096));
        assert_eq!(decode(&bytes), Some(Ok(state)));
    }
}

#[test]
fn a_member_larger_than_bytes_can_tell_is_damage() {
    for (sectors, is_sound) in [(SectorCount::MOST.0, true), (SectorCount::MOST.0 + 1, false)] {
        let mut writer = Writer::default();
        encode_member(&mut writer, &Member { sectors, ..full().inventory.members[0].clone() });
        assert_eq!(decode_member(&mut Reader(&writer.0)).is_some(), is_sound, "{sectors} sectors");
    }
}

#[test]
fn the_size_is_known_before() {
    for state in [empty(1), full(), with_family(), with_switches(), with_flash_cache()] {
        let pages = page_count(state.slot_count());
        let expected = fixed_bytes(&state) + most_places(pages, state.has_families()).1;
        assert_eq!(encode_parts(&state).0.len() as u64, expected);
        assert!(expected <= area().body_bytes_max(pages));
    }
}

#[test]
fn bodies_of_any_size_come_back_from_their_pieces() {
    for bytes in [0, 1, 4071, 4072, 4073, 65_511, 65_512, 65_513, 131_024, 300_000] {
        let body: Vec<u8> = (0..bytes).map(|i| (i * 7 % 251) as u8).collect();
        let header = header_of(&body);
        let whole = encode_pieces(&header, &body);
        assert_eq!(whole.len() as u64, slot_bytes(header.body_bytes), "{bytes} bytes");
        assert!(body_bytes_max(whole.len() as u64) >= header.body_bytes);
        assert_eq!(join_pieces(&header, &whole[HEADER_BYTES..]), Some(body), "{bytes} bytes");
    }
    for slot in (8192..400_000).step_by(4096) {
        assert!(slot_bytes(body_bytes_max(slot)) <= slot);
    }
}

#[test]
fn any_flipped_bit_is_damage() {
    let state = full();
    let bytes = encode(&state);
    let (body, stored) = encode_parts(&state);
    assert_eq!(stored.len(), 1);
    let used = (0..104).chain(HEADER_BYTES..HEADER_BYTES + 24 + body.len());
    let used = used.chain(bytes.len() - PAGE_BYTES..bytes.len());
    for at in used {
        for bit in [0, 3, 7] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            assert!(decode(&damaged).is_none(), "bit {bit} of byte {at}");
        }
    }
}

#[test]
fn pieces_of_an_older_checkpoint_do_not_count() {
    let body = vec![5; 200_000];
    let older = Header { generation: 5, ..header_of(&body) };
    let (old, new) = (encode_pieces(&older, &body), encode_pieces(&header_of(&body), &body));
    for piece in 0..4 {
        let at = HEADER_BYTES + piece * PIECE_BYTES;
        let end = (at + PIECE_BYTES).min(new.len());
        let mut mixed = new.clone();
        mixed[at..end].copy_from_slice(&old[at..end]);
        assert_eq!(join_pieces(&header_of(&body), &mixed[HEADER_BYTES..]), None, "piece {piece}");
    }
    let mut swapped = new.clone();
    swapped.copy_within(HEADER_BYTES + PIECE_BYTES..HEADER_BYTES + 2 * PIECE_BYTES, HEADER_BYTES);
    assert_eq!(join_pieces(&header_of(&body), &swapped[HEADER_BYTES..]), None);
}

#[test]
fn a_newer_format_is_recognised_even_if_all_else_changed() {
    let mut bytes = encode(&full());
    bytes[8] = 4;
    bytes[12..80].fill(9);
    assert_eq!(decode_header(&bytes), HeaderPlace::TooNew(4));
}

#[test]
fn damage_behind_valid_checksums_is_refused_or_sound() {
    let mut random = Random::new(11, 0);
    let (image, stored) = encode_parts(&full());
    let stored = stored.concat();
    let (mut sound, mut refused) = (0, 0);
    for _ in 0..30_000 {
        let mut body = image.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(body.len() as u64) as usize;
            body[at] = [random.bits() as u8, 0, 1, 0xff][random.below(4) as usize];
        }
        if random.chance(0.1) {
            body.truncate(random.below(body.len() as u64) as usize);
        }
        let mut stored = stored.clone();
        if random.chance(0.5) {
            // An entry, and the checksums that belong to it.
            let at = 64 + random.below(24 * 16) as usize;
            stored[at] = [random.bits() as u8, 0, 1, 0xff][random.below(4) as usize];
            let before: [u8; 8] = stored[..8].try_into().expect("a checksum");
            let sum = crc64(&[&stored[8..]]).to_le_bytes();
            stored[..8].copy_from_slice(&sum);
            if let Some(at) = body.windows(8).position(|bytes| bytes == before) {
                body[at..at + 8].copy_from_slice(&sum);
            }
        }
        match decode_parts(&header_of(&body), &body, &stored) {
            Some(Ok(state)) => {
                sound += 1;
                state.verify().expect("what is read is sound");
                // It comes back once more: nothing was read that cannot be written.
                assert_eq!(decode(&encode(&state)), Some(Ok(state)));
            }
            Some(Err(_)) | None => refused += 1,
        }
    }
    assert!(sound > 1000 && refused > 1000, "{sound} sound, {refused} refused");
}

#[test]
fn a_map_that_contradicts_itself_is_refused() {
    let mut state = full();
    state.apply_all(&[MetaRecord::VolumeCreated(volume(9, 9, true))]).expect("valid");
    // Behind the state's back: the slot of another volume's extent.
    state.maps.get_mut(&9).expect("it has a map").insert(3, slot(20, 800));
    assert_eq!(state.verify(), Err(MetaError::SlotTaken { slot: 20 }));
    state.maps.get_mut(&9).expect("it has a map").insert(3, slot(21, 18));
    state.verify().expect_err("the slot is not known to be taken");
    state.maps.get_mut(&9).expect("it has a map").remove(3);
    // Two slots of a page say the same extent, one that there is not, and an allocation that was not reserved.
    let refused = |pairs: &[(ExtentId, SlotRef)]| {
        let tenant = |(extent, slot): &(ExtentId, SlotRef)| {
            (*slot, Tenant { allocation: slot.allocation, extent: *extent, branches: 0 })
        };
        state.clone().take_in(&pairs.iter().map(tenant).collect::<Vec<_>>()).expect_err("a contradiction")
    };
    let (one, other) = (extent(9, 3), extent(9, 4));
    assert_eq!(refused(&[(one, slot(20, 18))]), MetaError::SlotTaken { slot: 20 });
    assert_eq!(refused(&[(one, slot(21, 18)), (one, slot(22, 19))]), MetaError::ExtentMapped { extent: one });
    assert_eq!(refused(&[(one, slot(21, 18)), (other, slot(21, 19))]), MetaError::SlotTaken { slot: 21 });
    assert_eq!(refused(&[(extent(9, 9), slot(21, 18))]), MetaError::ExtentOutside { extent: extent(9, 9) });
    assert_eq!(refused(&[(extent(8, 0), slot(21, 18))]), MetaError::NoVolume { volume: 8 });
    assert_eq!(refused(&[(one, slot(21, 1000))]), MetaError::Allocation { allocation: 1000, end: 1000 });
    let count = state.slot_count();
    assert_eq!(refused(&[(one, slot(count, 18))]), MetaError::SlotOutside { slot: count, count });
}

#[test]
fn a_page_of_another_pool_or_place_is_none() {
    let state = full();
    let page = encode_page_of(&state, 0).tenants.expect("it has extents");
    let count = decode_page(&page, None, state.id(), 0).map(|found| found.len() as u64);
    assert_eq!(count, Some(state.slots.count()));
    assert_eq!(decode_page(&page, None, state.id(), 1), None);
    assert_eq!(decode_page(&page, Some(&page), state.id(), 0), None, "it names no branches");
    assert_eq!(decode_page(&page, None, Uuid::from_u128(2 << 64), 0), None);
    assert_eq!(decode_page(&page[..4095], None, state.id(), 0), None);
    assert_eq!(encode_page_of(&empty(4), 0), PageBytes::default(), "nothing has a slot");
}

/// A state with a family of three volumes, which have slots together.
fn with_family() -> PoolState {
    let mut state = full();
    let member = |number: u32, branch: u8| {
        let branch = Some(Branch { family: 0, number: branch });
        MetaRecord::VolumeCreated(Volume { branch, ..volume(number, 9, true) })
    };
    let share = |of: u32, by: u32, count: u32| SharedRun { of, first: extent(by, 0), count };
    let records = [
        member(4, 3),
        MetaRecord::ShareExtents(vec![share(0, 4, 9)]),
        member(5, 1),
        MetaRecord::ShareExtents(vec![share(4, 5, 4)]),
        MetaRecord::unmap([extent(0, 3)]),
        MetaRecord::map([(extent(0, 3), slot(21, 30))]),
    ];
    state.apply_all(&records).expect("valid");
    state
}

#[test]
fn the_frozen_image_of_a_pool_with_families_is_read_and_written() {
    let state = with_family();
    assert!(state.owners(3).eq([extent(0, 0), extent(4, 0), extent(5, 0)]));
    assert!(state.owners(6).eq([extent(4, 3), extent(5, 3)]));
    assert!(state.owners(7).eq([extent(0, 4), extent(4, 4)]));
    assert!(state.owners(21).eq([extent(0, 3)]));
    state.verify().expect("sound");
    check_frozen("checkpoint-v3-families.bin", &state);
}

/// The same with a volume whose read cache is off, in a pool whose write cache is.
fn with_switches() -> PoolState {
    let mut state = with_family();
    let records = [
        MetaRecord::ReadCacheChanged { volume: 4, read_cache: false },
        MetaRecord::PoolCacheChanged(CacheSwitches { read: true, write: false }),
    ];
    state.apply_all(&records).expect("valid");
    state
}

/// A pool whose drives 2 and 4 have chunklets for a flash cache.
fn with_flash_cache() -> PoolState {
    let mut state = full();
    state.apply_all(&[MetaRecord::FlashCachePlaced(flash_cache())]).expect("valid");
    state
}

#[test]
fn the_frozen_image_of_a_pool_with_a_flash_cache_is_read_and_written() {
    let mut state = with_flash_cache();
    state.verify().expect("sound");
    check_frozen("checkpoint-v3-flash-cache.bin", &state);
    let has_feature = |state: &PoolState| encode_state(state).features().incompatible & FLASH_CACHE != 0;
    assert!(has_feature(&state));
    state.apply_all(&[MetaRecord::FlashCachePlaced(FlashCachePlacement::default())]).expect("valid");
    assert!(!has_feature(&state) && encode(&state) == encode(&full()), "not a byte differs");
}

/// A pool that says of two drives what they are for, one of which took a column over from a drive that another one replaces.
fn with_roles() -> PoolState {
    let mut state = full();
    let (set, column) = (5, 1);
    let records = [
        MetaRecord::MemberRole { member: 0, role: DriveRole::Data },
        MetaRecord::MemberRole { member: 4, role: DriveRole::Auxiliary },
        MetaRecord::ColumnRebuilding { set, column, target: chunklet(4, 6) },
        MetaRecord::ColumnRebuilt { set, column, with_lost_pages: false },
        MetaRecord::MemberAdded(Member { role: DriveRole::Data, ..member(5) }),
        MetaRecord::MemberReplaced { member: 3, by: 5 },
    ];
    state.apply_all(&records).expect("valid");
    state
}

#[test]
fn the_frozen_image_of_a_pool_with_roles_is_read_and_written() {
    let state = with_roles();
    state.verify().expect("sound");
    check_frozen("checkpoint-v3-roles.bin", &state);
    // Who does not know of them reads the rest.
    let (body, stored) = encode_parts(&state);
    let features = crate::Features { compatible: 1 << 9, ..crate::Features::NONE };
    let mut forgetful = state.clone();
    forgetful.inventory.members.iter_mut().for_each(|member| member.role = DriveRole::ByUse);
    forgetful.inventory.displaced.clear();
    let header = Header { features, ..header_of(&body) };
    assert_eq!(decode_parts(&header, &body, &stored.concat()), Some(Ok(forgetful)));
}

/// A pool with a tier, and volumes that are to lie in it.
fn with_placements() -> PoolState {
    let mut state = full();
    let pin = |extents, to, until_unix_s| Pin { extents, to, until_unix_s };
    let all = Placement { place: Place::Auto, pins: Vec::new() };
    let pinned = all.clone().with(pin(1..3, Place::Fast, 0)).with(pin(2..3, Place::Home, 1 << 40));
    let records = [
        MetaRecord::PlacementChanged { volume: 0, placement: pinned },
        MetaRecord::PlacementChanged { volume: 2, placement: all },
        MetaRecord::TierChanged(TierSettings { is_on: false, rate_bytes_per_s: 1 << 20 }),
    ];
    state.apply_all(&records).expect("valid");
    state
}

/// Volumes with ceilings, in a pool that also says what drives are for.
fn with_ceilings() -> PoolState {
    let mut state = with_roles();
    let ceilings = |iops_max, mbps_max, burst_seconds| Ceilings { iops_max, mbps_max, burst_seconds };
    let records = [
        MetaRecord::CeilingsChanged { volume: 0, ceilings: ceilings(5000, 0, 10) },
        MetaRecord::CeilingsChanged { volume: 2, ceilings: ceilings(0, 200, 0) },
    ];
    state.apply_all(&records).expect("valid");
    state
}

#[test]
fn the_frozen_image_of_a_pool_with_weights_is_read_and_written() {
    let mut state = with_ceilings();
    let weights = |first, second| {
        [(0, first), (2, second)].map(|(volume, weight)| MetaRecord::WeightChanged { volume, weight })
    };
    state.apply_all(&weights(1, 100)).expect("valid");
    assert_eq!([0, 2, 4].map(|volume| state.weight(volume)), [1, 100, 10]);
    state.verify().expect("sound");
    check_frozen("checkpoint-v3-weights.bin", &state);
    // Who does not know of them reads the rest.
    let (body, stored) = encode_parts(&state);
    let known = encode_state(&with_ceilings()).features();
    let features = crate::Features { compatible: known.compatible | 1 << 9, ..known };
    let header = Header { features, ..header_of(&body) };
    assert_eq!(decode_parts(&header, &body, &stored.concat()), Some(Ok(with_ceilings())));
    // Where all are as usual, nothing is left behind.
    state.apply_all(&weights(10, 10)).expect("valid");
    assert!(encode(&state) == encode(&with_ceilings()), "not a byte differs");
}

#[test]
fn the_frozen_image_of_a_pool_with_placements_is_read_and_written() {
    let mut state = with_placements();
    state.verify().expect("sound");
    check_frozen("checkpoint-v3-placements.bin", &state);
    let usual = [
        MetaRecord::PlacementChanged { volume: 0, placement: Placement::default() },
        MetaRecord::PlacementChanged { volume: 2, placement: Placement::default() },
        MetaRecord::TierChanged(TierSettings::default()),
    ];
    state.apply_all(&usual).expect("valid");
    assert!(encode(&state) == encode(&full()), "not a byte differs");
}

#[test]
fn the_frozen_image_of_a_pool_with_ceilings_is_read_and_written() {
    let mut state = with_ceilings();
    assert_eq!(state.ceilings(2), Ceilings { mbps_max: 200, ..Ceilings::default() });
    state.verify().expect("sound");
    check_frozen("checkpoint-v3-ceilings.bin", &state);
    // Who does not know of them reads the rest.
    let (body, stored) = encode_parts(&state);
    let known = encode_state(&with_roles()).features();
    let features = crate::Features { compatible: known.compatible | 1 << 9, ..known };
    let header = Header { features, ..header_of(&body) };
    assert_eq!(decode_parts(&header, &body, &stored.concat()), Some(Ok(with_roles())));
    // Lifted ceilings leave nothing behind.
    let lift = |volume| MetaRecord::CeilingsChanged { volume, ceilings: Ceilings::default() };
    state.apply_all(&[lift(0), lift(2)]).expect("valid");
    assert!(encode(&state) == encode(&with_roles()), "not a byte differs");
}

#[test]
fn the_frozen_image_of_a_pool_with_cache_switches_is_read_and_written() {
    let state = with_switches();
    let caching = |number| state.caching(state.volume(number).expect("it is there"));
    assert_eq!(caching(4), Caching { read: false, write: WriteCache::Off });
    assert_eq!(caching(0), Caching { read: true, write: WriteCache::Off });
    state.verify().expect("sound");
    check_frozen("checkpoint-v3-switches.bin", &state);
}

/// A program from before the switches refuses a pool where one is off, and opens it again where all are on.
#[test]
fn switches_are_an_incompatible_feature_while_one_is_off() {
    let has_feature = |state: &PoolState| encode_state(state).features().incompatible & SWITCHES != 0;
    let mut state = full();
    let before = encode(&state);
    let off = CacheSwitches { read: false, write: true };
    let pairs = [
        [false, true].map(|read_cache| MetaRecord::ReadCacheChanged { volume: 2, read_cache }),
        [off, CacheSwitches::default()].map(MetaRecord::PoolCacheChanged),
    ];
    for [off, on] in pairs {
        state.apply_all(&[off]).expect("valid");
        assert!(has_feature(&state));
        state.apply_all(&[on]).expect("valid");
        assert!(!has_feature(&state));
        assert!(encode(&state) == before, "not a byte differs");
    }
    // A body that says that all are on is none.
    let (body, stored) = encode_parts(&state);
    let features = crate::Features { incompatible: SWITCHES, ..crate::Features::NONE };
    assert!(!matches!(
        decode_parts(&Header { features, ..header_of(&body) }, &body, &stored.concat()),
        Some(Ok(_))
    ));
}

#[test]
fn extents_that_cannot_have_a_slot_together_are_refused() {
    let state = with_family();
    let page = encode_page_of(&state, 0);
    let (own, branches) = (page.tenants.expect("extents"), page.branches.expect("branches"));
    assert_eq!(decode_page(&own, Some(&own), state.id(), 0), None);
    assert_eq!(decode_page(&branches, None, state.id(), 0), None);
    let found = decode_page(&own, Some(&branches), state.id(), 0).expect("it is whole");
    let (slot, tenant) = found[1];
    assert_eq!((slot.slot, tenant.extent, tenant.branches), (3, extent(0, 0), 0b1011));
    let empty = || {
        let mut empty = state.clone();
        empty.maps.values_mut().for_each(|map| *map = Default::default());
        empty.slots = crate::state::Tenants::new(state.slot_stretches());
        empty
    };
    empty().take_in(&found).expect("it is its own");
    let refused = |changed: Tenant| empty().take_in(&[(slot, changed)]).expect_err("a contradiction");
    // A branch that there is not, the first extent not among the owners, and not the first of them.
    for branches in [0b1111, 0b1010] {
        assert!(matches!(refused(Tenant { branches, ..tenant }), MetaError::Contradiction { .. }));
    }
    let second = Tenant { extent: extent(4, 0), ..tenant };
    assert!(matches!(refused(second), MetaError::Contradiction { .. }));
    // An extent that is not one of its volume's.
    let behind = Tenant { extent: extent(0, 9), ..tenant };
    assert_eq!(refused(behind), MetaError::ExtentOutside { extent: extent(0, 9) });
}

#[test]
fn the_frozen_image_of_a_pool_with_groups_is_read_and_written() {
    let mut state = grouped();
    let records = [
        MetaRecord::AllocationsReserved { end: 100 },
        MetaRecord::VolumeCreated(Volume { group: 1, ..volume(0, 5, false) }),
        MetaRecord::map([(extent(0, 2), slot(11, 7))]),
        MetaRecord::ColumnEvacuating { set: 2, column: 0, target: chunklet(7, 3) },
        MetaRecord::SlotsRebuilt { set: 2, column: 0, ranges: vec![8..10] },
    ];
    state.apply_all(&records).expect("valid");
    check_frozen("checkpoint-v3-groups.bin", &state);
    let rings = (0..2).map(|number| ring(number, &[0, 1])).collect();
    state.apply_all(&[MetaRecord::LogPlaced(LogPlacement { rings, lanes: 2 })]).expect("valid");
    check_frozen("checkpoint-v3-lanes.bin", &state);
}

/// The image in this file is of this state, and no damage to it is taken for another one.
fn check_frozen(file: &str, state: &PoolState) {
    let bytes = encode(state);
    fixtures::check(file, &bytes, |bytes| assert_eq!(decode(bytes), Some(Ok(state.clone()))));
    let changed = (0..bytes.len()).filter(|at| {
        let mut damaged = bytes.clone();
        damaged[*at] ^= 0x40;
        matches!(decode(&damaged), Some(Ok(read)) if read != *state)
    });
    assert_eq!(changed.count(), 0, "{file}");
}

#[test]
fn the_frozen_image_is_read_and_written() {
    let mut state = full();
    let records = [
        MetaRecord::MemberMoved { member: 0, path: "/dev/disk/by-id/sample-0".into() },
        MetaRecord::MemberMoved { member: 4, path: "/srv/d4.img".into() },
        MetaRecord::ColumnEvacuating { set: 0, column: 0, target: chunklet(4, 7) },
    ];
    state.apply_all(&records).expect("valid");
    fixtures::check("checkpoint-v3.bin", &encode(&state), |bytes| {
        assert_eq!(decode(bytes), Some(Ok(state.clone())))
    });
}

#[test]
fn the_frozen_image_of_version_2_is_read() {
    let mut state = full();
    let records = [
        MetaRecord::MemberMoved { member: 0, path: "/dev/disk/by-id/sample-0".into() },
        MetaRecord::MemberMoved { member: 4, path: "/srv/d4.img".into() },
        MetaRecord::ColumnEvacuating { set: 0, column: 0, target: chunklet(4, 7) },
    ];
    state.apply_all(&records).expect("valid");
    assert_eq!(decode(&fixtures::read("checkpoint-v2.bin")), Some(Ok(state)));
}

#[test]
fn the_frozen_image_of_version_1_is_read() {
    assert_eq!(decode(&fixtures::read("checkpoint-v1.bin")), Some(Ok(full())));
}

#[test]
fn incompatible_features_are_refused() {
    let (body, _) = encode_parts(&full());
    let features = crate::Features { compatible: 9, read_only: 0, incompatible: 1 << 40 };
    let bytes = encode_pieces(&Header { features, ..header_of(&body) }, &body);
    assert_eq!(decode_header(&bytes), HeaderPlace::Unknown(1 << 40));
}

#[test]
fn an_evacuation_whose_drive_is_lost_is_a_rebuild() {
    let mut state = full();
    let evacuate = MetaRecord::ColumnEvacuating { set: 0, column: 0, target: chunklet(4, 7) };
    state.apply_all(&[evacuate]).expect("valid");
    assert_eq!(state.rebuild(0, 0).map(|rebuild| rebuild.source), Some(RebuildSource::Whole));
    let drive = state.column(0, 0).drive;
    state.apply_all(&[MetaRecord::MemberLost { member: drive }]).expect("valid");
    assert_eq!(state.rebuild(0, 0).map(|rebuild| rebuild.source), Some(RebuildSource::Lost));
    state.verify().expect("sound");
}

/// What a lost drive held of a column that was rebuilt elsewhere with pages lost is known after a restart.
#[test]
fn what_was_left_behind_is_remembered() {
    let mut state = full();
    assert_eq!(state.left_behind(3).count(), 0);
    let (set, column) = (5, 1);
    let (before, target) = (state.column(set, column), chunklet(4, 6));
    assert_eq!(before.drive, 3);
    let rebuilt = |with_lost_pages| {
        [
            MetaRecord::ColumnRebuilding { set, column, target },
            MetaRecord::SlotsRebuilt { set, column, ranges: vec![0..4] },
            MetaRecord::ColumnRebuilt { set, column, with_lost_pages },
        ]
    };
    let mut whole = state.clone();
    whole.apply_all(&rebuilt(false)).expect("valid");
    assert_eq!(whole.left_behind(3).count(), 0, "nothing was lost");
    state.apply_all(&rebuilt(true)).expect("valid");
    assert_eq!(state.left_behind(3).collect::<Vec<_>>(), [(set, column, before)]);
    state.verify().expect("sound");
    assert_eq!(decode(&encode(&state)), Some(Ok(state.clone())));
    let (body, stored) = encode_parts(&state);
    // Who does not know of it reads the rest.
    let features = crate::Features { compatible: 1 << 9, ..crate::Features::NONE };
    let header = Header { features, ..header_of(&body) };
    let mut forgetful = state.clone();
    forgetful.inventory.left_behind.clear();
    forgetful.inventory.displaced.clear();
    assert_eq!(decode_parts(&header, &body, &stored.concat()), Some(Ok(forgetful)));
}

/// A pool of three groups, of which the second has left and the third is to leave.
fn with_leaving_groups() -> PoolState {
    let mut state = grouped();
    let third = SetGroup { name: "third".to_owned(), ..state.groups()[1].clone() };
    let records = [
        MetaRecord::GroupAdded(third),
        MetaRecord::GroupLeaving { group: 1, leaving: true },
        MetaRecord::GroupRemoved { group: 1 },
        MetaRecord::GroupLeaving { group: 2, leaving: true },
    ];
    state.apply_all(&records).expect("valid");
    state
}

#[test]
fn the_frozen_image_of_a_pool_with_leaving_groups_is_read_and_written() {
    let mut state = with_leaving_groups();
    state.verify().expect("sound");
    check_frozen("checkpoint-v3-leaving-groups.bin", &state);
    let has_feature = |state: &PoolState| encode_state(state).features().incompatible & STAGES != 0;
    assert!(has_feature(&state));
    // A group that has left stays so, and a pool of which none has says nothing.
    state.apply_all(&[MetaRecord::GroupLeaving { group: 2, leaving: false }]).expect("it is there");
    assert!(has_feature(&state) && !has_feature(&grouped()));
}
