//! Transactions of the metadata journal.

use tier0_pool::{ExtentRun, MetaRecord, ScrubCursor, record};
use tier0_units::{ExtentId, SlotRef};

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "pool-records",
    seeds,
    repair,
    run,
    input_bytes_max: 16 << 10,
    inputs_in_tests: 4000,
    // A record takes up to some hundred bytes in memory and may take one on the drive; vectors double.
    memory_bytes_max: (64 << 10, 1024),
};

fn seeds() -> Vec<Vec<u8>> {
    let extent = |index| ExtentId { volume: 3, index };
    let slot = |slot| SlotRef { slot, allocation: slot + 9 };
    let records = [
        MetaRecord::map([(extent(0), slot(4)), (extent(1), slot(5)), (extent(7), slot(1))]),
        MetaRecord::UnmapExtents(vec![ExtentRun { first: extent(2), count: 3 }]),
        MetaRecord::SlotsRebuilt { set: 1, column: 2, ranges: vec![0..4, 9..10] },
        MetaRecord::AllocationsReserved { end: 1 << 33 },
        MetaRecord::ScrubCursor(ScrubCursor { next_slot: 5, passes: 2 }),
        MetaRecord::VolumeRenamed { volume: 2, name: "redo log".into() },
        MetaRecord::MemberLost { member: 3 },
    ];
    vec![record::encode(&records), record::encode(&records[5..])]
}

fn repair(bytes: &mut Vec<u8>) {
    if bytes.len() < 2 {
        bytes.resize(2, 0);
    }
    bytes[..2].copy_from_slice(&record::VERSION.to_le_bytes());
}

fn run(bytes: &[u8]) -> bool {
    let Some(records) = record::decode(bytes) else { return false };
    assert_eq!(record::decode(&record::encode(&records)), Some(records), "what is written is read back");
    true
}
