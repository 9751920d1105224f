//! The intent: what is about to be written in place in one row of a level with parity, stable in the log before the
//! first write, so that a power cut in the middle can be finished afterwards even without a drive.
//!
//! As a log record it has a header, little-endian, and the parity as the record's buffers:
//!
//! | bytes | content |
//! |---|---|
//! | 0–3 | `itn1` |
//! | 4–7 | the extent's volume |
//! | 8–11 | the extent's number in it |
//! | 12–19 | slot |
//! | 20–27 | allocation |
//! | 28–31 | set |
//! | 32–39 | row of the set |
//! | 40–43 | pages that follow, n, at least 1 |
//! | 44–47 | parity pieces that follow, m |
//! | 16 each, n times | page of the slot (4), page within the log record or 2^32 − 1 for "filled with zeros" (4), position of the log record (8; 0 for zeros); by ascending page |
//! | 16 each, m times | column (1), zeros (3), sectors (4), first sector within the column's rows (8); buffer i is the content of piece i |
//!
//! A record of another length, with unordered pages or with buffers that do not fit is refused; nothing is allocated
//! beyond the bytes that are there.

use std::future::Future;
use std::pin::Pin;

use thiserror::Error;
use tier0_raid::layout::{Column, Row};
use tier0_raid::set::SetIndex;
use tier0_units::{ExtentId, Lba, SlotRef};
use tier0_world::{Buf, IoError};

const MAGIC: [u8; 4] = *b"itn1";
const HEADER_BYTES: usize = 48;
const ENTRY_BYTES: usize = 16;
const ZERO_FILL: u32 = u32::MAX;

/// Where a page lies in the write log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPlace {
    /// The position of its record.
    pub position: u64,
    /// Its number among the record's pages, below 2^32 − 1.
    pub page: u32,
}

/// Where the content of a page comes from when an intent is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentPage {
    /// From the log.
    Log(LogPlace),
    /// It is filled with zeros, because its row was never written; its table entry stays "reads as zeros".
    ZeroFill,
}

/// New content of a part of a parity column.
#[derive(Clone, Debug)]
pub struct ParityPiece {
    /// The column.
    pub column: Column,
    /// The first sector within the column's rows.
    pub lba: Lba,
    /// The content.
    pub buf: Buf,
}

/// What is about to be written in one row.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The extent that has the slot.
    pub extent: ExtentId,
    /// The slot, as that extent has it: an intent of another allocation is skipped.
    pub slot: SlotRef,
    /// The set.
    pub set: SetIndex,
    /// The row of the set.
    pub row: Row,
    /// The pages of the slot that are written, ascending.
    pub pages: Vec<(u32, IntentPage)>,
    /// The parity that goes with them, on the columns that were not lost.
    pub parity: Vec<ParityPiece>,
}

/// The log that keeps intents until the rows they speak of are stable.
pub trait IntentLog {
    /// Appends intents; ends when all of them are stable. Nothing they speak of has been written before that.
    fn append(&self, intents: Vec<Intent>) -> Pin<Box<dyn Future<Output = Result<(), IoError>> + '_>>;
}

/// Why bytes are no intent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum IntentError {
    /// The header does not begin as an intent does.
    #[error("the record is no intent")]
    Magic,
    /// The header is shorter or longer than its counts say.
    #[error("the intent has {found} bytes instead of {expected}")]
    Length {
        /// Its length.
        found: usize,
        /// What its counts ask for.
        expected: u64,
    },
    /// There are no pages, or they are not in ascending order.
    #[error("the intent's pages are not in ascending order")]
    Pages,
    /// The buffers are not those of the parity pieces.
    #[error("the intent's parity does not fit its buffers")]
    Parity,
}

impl Intent {
    /// The header of the log record; its buffers are those of [`Intent::parity`], in order.
    pub fn encode_header(&self) -> Vec<u8> {
        let mut bytes =
            Vec::with_capacity(HEADER_BYTES + ENTRY_BYTES * (self.pages.len() + self.parity.len()));
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.extent.volume.to_le_bytes());
        bytes.extend_from_slice(&self.extent.index.to_le_bytes());
        bytes.extend_from_slice(&self.slot.slot.to_le_bytes());
        bytes.extend_from_slice(&self.slot.allocation.to_le_bytes());
        bytes.extend_from_slice(&self.set.0.to_le_bytes());
        bytes.extend_from_slice(&self.row.0.to_le_bytes());
        bytes.extend_from_slice(&(self.pages.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&(self.parity.len() as u32).to_le_bytes());
        for (page, source) in &self.pages {
            let (log_page, position) = match source {
                IntentPage::Log(place) => (place.page, place.position),
                IntentPage::ZeroFill => (ZERO_FILL, 0),
            };
            bytes.extend_from_slice(&page.to_le_bytes());
            bytes.extend_from_slice(&log_page.to_le_bytes());
            bytes.extend_from_slice(&position.to_le_bytes());
        }
        for piece in &self.parity {
            bytes.extend_from_slice(&[piece.column.0, 0, 0, 0]);
            bytes.extend_from_slice(&piece.buf.sectors().to_le_bytes());
            bytes.extend_from_slice(&piece.lba.0.to_le_bytes());
        }
        bytes
    }

    /// The buffers of the log record.
    pub fn buffers(&self) -> Vec<Buf> {
        self.parity.iter().map(|piece| piece.buf.clone()).collect()
    }

    /// Whether a header claims to be that of an intent.
    pub fn is_intent(header: &[u8]) -> bool {
        header.starts_with(&MAGIC)
    }

    /// The sectors of each of an intent's buffers, from arbitrary bytes; none if they are no intent's header. For a log
    /// that gives a record's pages back one by one.
    pub fn buffer_sectors(header: &[u8]) -> Option<Vec<u32>> {
        let (fixed, entries) =
            header.split_first_chunk::<HEADER_BYTES>().filter(|_| Intent::is_intent(header))?;
        let parity = entries.get(usize::try_from(word(fixed, 40)).ok()?.checked_mul(ENTRY_BYTES)?..)?;
        Some(parity.as_chunks::<ENTRY_BYTES>().0.iter().map(|entry| word(entry, 4)).collect())
    }

    /// Reads a log record, from arbitrary bytes.
    ///
    /// # Errors
    /// [`IntentError`] when they are no intent.
    pub fn decode(header: &[u8], buffers: Vec<Buf>) -> Result<Intent, IntentError> {
        if !Intent::is_intent(header) {
            return Err(IntentError::Magic);
        }
        let (fixed, entries) = header
            .split_first_chunk::<HEADER_BYTES>()
            .ok_or(IntentError::Length { found: header.len(), expected: HEADER_BYTES as u64 })?;
        let (page_count, parity_count) = (word(fixed, 40), word(fixed, 44));
        let expected = (u64::from(page_count) + u64::from(parity_count)) * ENTRY_BYTES as u64;
        if entries.len() as u64 != expected {
            let expected = expected + HEADER_BYTES as u64;
            return Err(IntentError::Length { found: header.len(), expected });
        }
        let (pages, parity) = entries.split_at(page_count as usize * ENTRY_BYTES);
        Ok(Intent {
            extent: ExtentId { volume: word(fixed, 4), index: word(fixed, 8) },
            slot: SlotRef { slot: long(fixed, 12), allocation: long(fixed, 20) },
            set: SetIndex(word(fixed, 28)),
            row: Row(long(fixed, 32)),
            pages: decode_pages(pages)?,
            parity: decode_parity(parity, buffers)?,
        })
    }
}

fn decode_pages(bytes: &[u8]) -> Result<Vec<(u32, IntentPage)>, IntentError> {
    let decode = |entry: &[u8; ENTRY_BYTES]| {
        let source = match word(entry, 4) {
            ZERO_FILL => IntentPage::ZeroFill,
            page => IntentPage::Log(LogPlace { position: long(entry, 8), page }),
        };
        (word(entry, 0), source)
    };
    let pages: Vec<(u32, IntentPage)> = bytes.as_chunks::<ENTRY_BYTES>().0.iter().map(decode).collect();
    let ascending = pages.windows(2).all(|pair| pair[0].0 < pair[1].0);
    if pages.is_empty() || !ascending {
        return Err(IntentError::Pages);
    }
    Ok(pages)
}

fn decode_parity(bytes: &[u8], buffers: Vec<Buf>) -> Result<Vec<ParityPiece>, IntentError> {
    let entries = bytes.as_chunks::<ENTRY_BYTES>().0;
    if entries.len() != buffers.len() {
        return Err(IntentError::Parity);
    }
    let decode = |(entry, buf): (&[u8; ENTRY_BYTES], Buf)| {
        let fits = word(entry, 4) == buf.sectors() && buf.sectors() > 0 && entry[1..4] == [0; 3];
        let piece = ParityPiece { column: Column(entry[0]), lba: Lba(long(entry, 8)), buf };
        fits.then_some(piece).ok_or(IntentError::Parity)
    };
    entries.iter().zip(buffers).map(decode).collect()
}

fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn long<const N: usize>(bytes: &[u8; N], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tier0_world::{BufMut, PayloadWidth};

    use super::*;

    fn buffer(sectors: u32) -> Buf {
        BufMut::zeroed(sectors, PayloadWidth::REAL).freeze()
    }

    fn sample() -> Intent {
        Intent {
            extent: ExtentId { volume: 3, index: 70_000 },
            slot: SlotRef { slot: 1 << 40, allocation: 12 },
            set: SetIndex(9),
            row: Row(1234),
            pages: vec![
                (5, IntentPage::Log(LogPlace { position: 1 << 33, page: 2 })),
                (6, IntentPage::ZeroFill),
                (8, IntentPage::Log(LogPlace { position: 77, page: 0 })),
            ],
            parity: vec![
                ParityPiece { column: Column(4), lba: Lba(1 << 35), buf: buffer(8) },
                ParityPiece { column: Column(5), lba: Lba(64), buf: buffer(16) },
            ],
        }
    }

    fn same(a: &Intent, b: &Intent) -> bool {
        let pieces = |intent: &Intent| -> Vec<_> {
            intent.parity.iter().map(|p| (p.column, p.lba, p.buf.as_slice().to_vec())).collect()
        };
        (a.extent, a.slot, a.set, a.row) == (b.extent, b.slot, b.set, b.row)
            && a.pages == b.pages
            && pieces(a) == pieces(b)
    }

    #[test]
    fn an_intent_reads_back() {
        let intent = sample();
        let header = intent.encode_header();
        assert!(same(&Intent::decode(&header, intent.buffers()).expect("valid"), &intent));
        assert_eq!(Intent::buffer_sectors(&header), Some(vec![8, 16]));
        assert_eq!(Intent::buffer_sectors(&header[..HEADER_BYTES]), None);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let intent = sample();
        let header = intent.encode_header();
        assert_eq!(
            Intent::decode(&header[..50], vec![]).unwrap_err(),
            IntentError::Length { found: 50, expected: 128 }
        );
        assert_eq!(Intent::decode(&header, vec![buffer(8)]).unwrap_err(), IntentError::Parity);
        assert_eq!(Intent::decode(&header, vec![buffer(8), buffer(8)]).unwrap_err(), IntentError::Parity);
        assert_eq!(Intent::decode(b"frame", vec![]).unwrap_err(), IntentError::Magic);
        let mut unordered = header.clone();
        unordered[HEADER_BYTES] = 6;
        assert_eq!(Intent::decode(&unordered, intent.buffers()).unwrap_err(), IntentError::Pages);
        let mut huge = header;
        huge[40..48].fill(0xff);
        assert!(matches!(Intent::decode(&huge, vec![]), Err(IntentError::Length { .. })));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(mut header in proptest::collection::vec(any::<u8>(), 0..200), magic: bool, buffers in 0_u32..4) {
            if magic && header.len() >= 4 {
                header[..4].copy_from_slice(&MAGIC);
            }
            if let Ok(intent) = Intent::decode(&header, (0..buffers).map(|_| buffer(8)).collect()) {
                prop_assert_eq!(intent.encode_header().len(), header.len());
            }
        }
    }
}
