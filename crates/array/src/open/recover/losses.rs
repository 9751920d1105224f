//! What may be lost, by volume and address.

use std::collections::BTreeMap;

use serde::Serialize;
use tier0_pool::{PoolState, Volume};
use tier0_units::SECTOR_BYTES;
use tier0_world::{PlantedBug, planted};

use super::choice::Fate;

/// What a volume may have lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VolumeLoss {
    /// The volume.
    pub name: String,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Parts that no drive that is there holds: they cannot be read. Ascending, in bytes.
    pub lost: Vec<ByteRange>,
    /// Parts that are read from drives that have missed writes: older content, zeros where it was written first since
    /// then, or errors. Ascending, in bytes.
    pub stale: Vec<ByteRange>,
    /// Parts that need what a drive does not store, although it is there: it was cut short, or hosts have discarded all of
    /// that. Ascending, in bytes.
    pub cut: Vec<ByteRange>,
    /// Writes that were acknowledged and only in a part of the write log that is gone, at most this many bytes, anywhere
    /// in the volume.
    pub log_bytes_max: u64,
    /// Whether drives that are missing may have gone on, so that all of the volume may be older than what they hold.
    pub may_be_older: bool,
}

/// Bytes of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ByteRange {
    /// The first.
    pub first_byte: u64,
    /// Behind the last.
    pub end_byte: u64,
}

impl VolumeLoss {
    /// Whether nothing of it can be lost.
    pub fn is_nothing(&self) -> bool {
        let has_all = self.lost.is_empty() && self.stale.is_empty() && self.cut.is_empty();
        has_all && self.log_bytes_max == 0 && !self.may_be_older
    }
}

/// By volume, those that lose nothing included; `is_cut` is whether a slot needs what no drive stores.
pub(super) fn losses(
    state: &PoolState,
    fates: &BTreeMap<u32, Fate>,
    is_cut: impl Fn(u64) -> bool,
    log_bytes_max: u64,
    may_be_older: bool,
) -> Vec<VolumeLoss> {
    let has_fate =
        |slot: u64, fate: Fate| state.slot_home(slot).is_some_and(|home| fates.get(&home.set) == Some(&fate));
    let of = |volume: &Volume| VolumeLoss {
        name: volume.name.clone(),
        size_bytes: volume.sectors * SECTOR_BYTES,
        lost: ranges(state, volume, |slot| has_fate(slot, Fate::Dead)),
        stale: match planted(PlantedBug::HideStaleLosses) {
            true => Vec::new(),
            false => ranges(state, volume, |slot| has_fate(slot, Fate::Stale)),
        },
        cut: ranges(state, volume, &is_cut),
        log_bytes_max,
        may_be_older,
    };
    state.volumes().map(of).collect()
}

/// The parts of a volume that lie in such slots.
fn ranges(state: &PoolState, volume: &Volume, is_such: impl Fn(u64) -> bool) -> Vec<ByteRange> {
    let extent_bytes = state.geometry().extent_sectors * SECTOR_BYTES;
    let size = volume.sectors * SECTOR_BYTES;
    let extents = state.map(volume.number).into_iter().flat_map(|map| map.iter());
    let mut ranges: Vec<ByteRange> = Vec::new();
    for (index, _) in extents.filter(|(_, slot)| is_such(slot.slot)) {
        let first_byte = u64::from(index) * extent_bytes;
        let end_byte = (first_byte + extent_bytes).min(size);
        match ranges.last_mut().filter(|last| last.end_byte == first_byte) {
            Some(last) => last.end_byte = end_byte,
            None => ranges.push(ByteRange { first_byte, end_byte }),
        }
    }
    ranges
}
