//! Heads of the write log's records: data, and intents with their buffers.
//!
//! The first byte says how many pages come with the header.

use tier0_cache::{RecordHeader, Run};
use tier0_integrity::{Intent, IntentPage, LogPlace, ParityPiece};
use tier0_raid::layout::{Column, Row};
use tier0_raid::set::SetIndex;
use tier0_units::{ExtentId, Lba, SlotRef};
use tier0_world::{Buf, BufMut, PayloadWidth};

use crate::Target;

pub(super) const TARGET: Target = Target {
    name: "log-record",
    seeds,
    repair: |_| {},
    run,
    input_bytes_max: 4096,
    inputs_in_tests: 4000,
    // Up to 255 buffers of no width beside the parts of the header.
    memory_bytes_max: (64 << 10, 16),
};

fn extent() -> ExtentId {
    ExtentId { volume: 7, index: 1 << 20 }
}

fn seeds() -> Vec<Vec<u8>> {
    let run = |first, count, zero| Run { first, count, zero };
    let runs = vec![run(3, 2, false), run(5, 100, true), run(200, 1, false)];
    let data = RecordHeader { extent: extent(), version: 1 << 40, runs };
    let place = |page| IntentPage::Log(LogPlace { position: 77, page });
    let piece = |column, lba| ParityPiece { column: Column(column), lba: Lba(lba), buf: buffer(8) };
    let intent = Intent {
        extent: extent(),
        slot: SlotRef { slot: 1 << 40, allocation: 12 },
        set: SetIndex(9),
        row: Row(1000),
        pages: vec![(1, place(0)), (2, IntentPage::ZeroFill), (9, place(1))],
        parity: vec![piece(3, 128), piece(4, 128)],
    };
    let with_pages = |pages: u8, header: Vec<u8>| [vec![pages], header].concat();
    vec![with_pages(3, data.encode()), with_pages(2, intent.encode_header())]
}

/// A buffer without content: headers say only how many sectors there are.
fn buffer(sectors: u32) -> Buf {
    BufMut::new(sectors, PayloadWidth::NONE).freeze()
}

fn run(bytes: &[u8]) -> bool {
    let Some((pages, header)) = bytes.split_first() else { return false };
    let pages = usize::from(*pages);
    if let Ok(read) = RecordHeader::decode(header, pages) {
        assert_eq!(read.encode(), header, "what is written is what was read");
        return true;
    }
    let sectors = Intent::buffer_sectors(header).unwrap_or_default();
    let buffers = sectors.iter().take(pages).map(|sectors| buffer(*sectors)).collect();
    let Ok(read) = Intent::decode(header, buffers) else { return false };
    assert_eq!(Intent::buffer_sectors(header), Some(sectors), "both readers agree");
    assert!(Intent::is_intent(&read.encode_header()), "what is written is an intent");
    true
}
