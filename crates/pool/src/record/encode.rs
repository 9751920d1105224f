//! Records as bytes: a transaction is what one journal record carries, and takes effect as a whole. Integers are
//! little-endian; `docs/format.md` has every byte.

use tier0_units::{ExtentId, SlotRef};

use super::{ExtentRun, MappedRun, MetaRecord, ScrubCursor, SharedRun};
use crate::codec::{Reader, Writer};
use crate::state::Run;

/// The newest format of transactions that is known, and the one that is written.
pub const VERSION: u16 = 1;

/// Volumes whose extents get the slots of a mapped run: one. More get them by a record of their own.
const REFERENCES: u32 = 1;
const MAPPED_RUN_BYTES: usize = 32;
const EXTENT_RUN_BYTES: usize = 12;
const SHARED_RUN_BYTES: usize = 16;
const RANGE_BYTES: usize = 8;

const MAP: u8 = 1;
const UNMAP: u8 = 2;
const SLOTS_REBUILT: u8 = 3;
const ALLOCATIONS_RESERVED: u8 = 4;
const SCRUB_CURSOR: u8 = 5;
const SHARE: u8 = 6;
const JSON: u8 = 16;

/// The bytes of a transaction.
pub fn encode(records: &[MetaRecord]) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.u16(VERSION);
    writer.count(records.len());
    records.iter().for_each(|record| encode_one(&mut writer, record));
    writer.0
}

/// Reads a transaction from arbitrary bytes: none if they are no transaction of a version that is known. Allocates no
/// more than a small multiple of the bytes' length.
pub fn decode(bytes: &[u8]) -> Option<Vec<MetaRecord>> {
    let mut reader = Reader(bytes);
    if reader.u16()? != VERSION {
        return None;
    }
    let records = reader.many(1, decode_one)?;
    reader.is_empty().then_some(records)
}

fn encode_one(writer: &mut Writer, record: &MetaRecord) {
    match record {
        MetaRecord::MapExtents(runs) => {
            writer.u8(MAP);
            writer.count(runs.len());
            for MappedRun { volume, run } in runs {
                writer.u32(*volume);
                encode_run(writer, run);
            }
        }
        MetaRecord::UnmapExtents(runs) => {
            writer.u8(UNMAP);
            writer.count(runs.len());
            for ExtentRun { first, count } in runs {
                [first.volume, first.index, *count].into_iter().for_each(|value| writer.u32(value));
            }
        }
        MetaRecord::ShareExtents(runs) => {
            writer.u8(SHARE);
            writer.count(runs.len());
            for SharedRun { of, first, count } in runs {
                [*of, first.volume, first.index, *count].into_iter().for_each(|value| writer.u32(value));
            }
        }
        MetaRecord::SlotsRebuilt { set, column, ranges } => {
            writer.u8(SLOTS_REBUILT);
            writer.u32(*set);
            writer.u32(*column);
            writer.count(ranges.len());
            for range in ranges {
                writer.u32(range.start);
                writer.u32(range.end);
            }
        }
        MetaRecord::AllocationsReserved { end } => {
            writer.u8(ALLOCATIONS_RESERVED);
            writer.u64(*end);
        }
        MetaRecord::ScrubCursor(ScrubCursor { next_slot, passes }) => {
            writer.u8(SCRUB_CURSOR);
            writer.u64(*next_slot);
            writer.u64(*passes);
        }
        record => {
            writer.u8(JSON);
            let text = serde_json::to_vec(record).expect("a record has only text and numbers");
            writer.count(text.len());
            writer.0.extend_from_slice(&text);
        }
    }
}

fn decode_one(reader: &mut Reader<'_>) -> Option<MetaRecord> {
    Some(match reader.u8()? {
        MAP => MetaRecord::MapExtents(reader.many(MAPPED_RUN_BYTES, |reader| {
            Some(MappedRun { volume: reader.u32()?, run: decode_run(reader)? })
        })?),
        UNMAP => MetaRecord::UnmapExtents(reader.many(EXTENT_RUN_BYTES, |reader| {
            let first = ExtentId { volume: reader.u32()?, index: reader.u32()? };
            Some(ExtentRun { first, count: reader.u32()? })
        })?),
        SHARE => MetaRecord::ShareExtents(reader.many(SHARED_RUN_BYTES, |reader| {
            let of = reader.u32()?;
            let first = ExtentId { volume: reader.u32()?, index: reader.u32()? };
            Some(SharedRun { of, first, count: reader.u32()? })
        })?),
        SLOTS_REBUILT => MetaRecord::SlotsRebuilt {
            set: reader.u32()?,
            column: reader.u32()?,
            ranges: reader.many(RANGE_BYTES, |reader| Some(reader.u32()?..reader.u32()?))?,
        },
        ALLOCATIONS_RESERVED => MetaRecord::AllocationsReserved { end: reader.u64()? },
        SCRUB_CURSOR => {
            MetaRecord::ScrubCursor(ScrubCursor { next_slot: reader.u64()?, passes: reader.u64()? })
        }
        JSON => {
            let length = reader.count(1)?;
            serde_json::from_slice(reader.bytes(length)?).ok()?
        }
        _ => return None,
    })
}

/// A run: 28 bytes.
fn encode_run(writer: &mut Writer, run: &Run) {
    writer.u32(run.index);
    writer.u32(run.count);
    writer.u32(REFERENCES);
    writer.u64(run.slot.slot);
    writer.u64(run.slot.allocation);
}

/// Reads a run, here and in checkpoints before version 3; none where it is said to be of several volumes.
pub(crate) fn decode_run(reader: &mut Reader<'_>) -> Option<Run> {
    let (index, count, references) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let slot = SlotRef { slot: reader.u64()?, allocation: reader.u64()? };
    (references == REFERENCES).then_some(Run { index, count, slot })
}
