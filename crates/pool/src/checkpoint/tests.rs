//! Checkpoints as bytes: whole states, damaged ones, arbitrary ones, the frozen image.

use tier0_units::SectorCount;
use tier0_world::Random;
use uuid::Uuid;

use super::*;
use crate::codec::{Reader, Writer};
use crate::features::KNOWN;
use crate::fixtures;
use crate::samples::{area, chunklet, empty, extent, full, slot, volume};
use crate::state::Member;
use crate::{MetaError, MetaRecord, PoolState, RebuildSource};

fn header_of(body: &[u8]) -> Header {
    Header {
        pool: Uuid::from_u128(1),
        generation: 7,
        journal: Uuid::from_u128(8),
        position: 99,
        body_bytes: body.len() as u64,
        features: KNOWN,
    }
}

fn decode(bytes: &[u8]) -> Option<Result<PoolState, MetaError>> {
    let HeaderPlace::Valid(header) = decode_header(&bytes[..HEADER_BYTES]) else { return None };
    let body = join_pieces(&header, &bytes[HEADER_BYTES..])?;
    Some(decode_body(&body, header.pool, &area(), header.features))
}

fn encode(state: &PoolState) -> Vec<u8> {
    let body = encode_body(state);
    encode_pieces(&header_of(&body), &body)
}

#[test]
fn states_come_back() {
    for state in [empty(1), empty(4), full()] {
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
    for state in [empty(1), full()] {
        let runs: u64 = state.maps.values().map(|map| map.runs().count() as u64).sum();
        assert_eq!(encode_body(&state).len() as u64, sizes::fixed_bytes(&state) + runs * RUN_BYTES);
        assert!(body_bytes_limit(&state) <= area().body_bytes_max());
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
    let body = encode_body(&state).len();
    let used = (0..80).chain(HEADER_BYTES..HEADER_BYTES + 24 + body);
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
    bytes[8] = 3;
    bytes[12..80].fill(9);
    assert_eq!(decode_header(&bytes), HeaderPlace::TooNew(3));
}

#[test]
fn damage_behind_valid_checksums_is_refused_or_sound() {
    let mut random = Random::new(11, 0);
    let image = encode_body(&full());
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
        match decode_body(&body, Uuid::from_u128(1), &area(), KNOWN) {
            Ok(state) => {
                sound += 1;
                state.verify().expect("what is read is sound");
                // It comes back once more: nothing was read that cannot be written.
                assert_eq!(decode_body(&encode_body(&state), state.id, &area(), KNOWN), Ok(state));
            }
            Err(_) => refused += 1,
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
    let refused = decode_body(&encode_body(&state), state.id, &area(), KNOWN);
    assert_eq!(refused, Err(MetaError::SlotTaken { slot: 20 }));
    state.maps.get_mut(&9).expect("it has a map").insert(3, slot(21, 1000));
    let not_reserved = Err(MetaError::Allocation { allocation: 1000, end: 1000 });
    assert_eq!(decode_body(&encode_body(&state), state.id, &area(), KNOWN), not_reserved);
    state.maps.get_mut(&9).expect("it has a map").insert(3, slot(21, 18));
    state.verify().expect_err("the slot is not known to be taken");
    state.maps.get_mut(&9).expect("it has a map").remove(3);
    state.maps.get_mut(&9).expect("it has a map").insert(9, slot(21, 18));
    let outside = Err(MetaError::ExtentOutside { extent: extent(9, 9) });
    assert_eq!(decode_body(&encode_body(&state), state.id, &area(), KNOWN), outside);
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
    fixtures::check("checkpoint-v2.bin", &encode(&state), |bytes| {
        assert_eq!(decode(bytes), Some(Ok(state.clone())))
    });
}

#[test]
fn the_frozen_image_of_version_1_is_read() {
    assert_eq!(decode(&fixtures::read("checkpoint-v1.bin")), Some(Ok(full())));
}

#[test]
fn incompatible_features_are_refused() {
    let body = encode_body(&full());
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
