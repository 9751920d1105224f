//! The headers of the write log's data records, byte by byte.
//!
//! A record is what one request, or a piece of it, changes in one extent. Its pages are the data pages of all runs, one
//! after the other; zeros have none. Integers are little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 0–3 | `wbk1` |
//! | 4–7 | the extent's volume |
//! | 8–11 | the extent's number in it |
//! | 12–19 | version: higher ones are newer, over all records of the extent in whatever ring |
//! | 20–23 | runs, n, at least 1 |
//! | 8 each, n times | first page (4), kind (1 bit, the highest: 1 for zeros) and number of pages (31 bits, at least 1); ascending, without overlap |
//!
//! The other kind of record in the ring is the intent, whose header is `tier0_integrity::Intent`'s.

use thiserror::Error;
use tier0_units::ExtentId;

const MAGIC: [u8; 4] = *b"wbk1";
const FIXED_BYTES: usize = 24;
const RUN_BYTES: usize = 8;
const ZERO_BIT: u32 = 1 << 31;

/// Pages of an extent that follow each other and are all data or all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first page.
    pub first: u32,
    /// How many, at least 1 and below 2^31.
    pub count: u32,
    /// Whether they are zeros; else the record has their data.
    pub zero: bool,
}

/// A record's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// The extent.
    pub extent: ExtentId,
    /// Higher is newer.
    pub version: u64,
    /// What it changes, by ascending page.
    pub runs: Vec<Run>,
}

/// Why bytes are no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecordHeaderError {
    /// It begins as nothing that is known.
    #[error("the record is of no known kind")]
    Magic,
    /// It is longer or shorter than its count says.
    #[error("the record's header has {found} bytes instead of {expected}")]
    Length {
        /// Its length.
        found: usize,
        /// What its count asks for.
        expected: u64,
    },
    /// Its runs are empty, unordered or overlap.
    #[error("the record's runs are not in ascending order")]
    Runs,
    /// The record's pages are more or fewer than its runs need.
    #[error("the record has {found} pages instead of {expected}")]
    Pages {
        /// Pages there are.
        found: usize,
        /// Pages its runs need.
        expected: u64,
    },
}

impl RecordHeader {
    /// Its bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(FIXED_BYTES + RUN_BYTES * self.runs.len());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.extent.volume.to_le_bytes());
        bytes.extend_from_slice(&self.extent.index.to_le_bytes());
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&(self.runs.len() as u32).to_le_bytes());
        for run in &self.runs {
            debug_assert!(run.count > 0 && run.count < ZERO_BIT, "a run has at least one page");
            bytes.extend_from_slice(&run.first.to_le_bytes());
            bytes.extend_from_slice(&(run.count | if run.zero { ZERO_BIT } else { 0 }).to_le_bytes());
        }
        bytes
    }

    /// Reads a header from arbitrary bytes; `pages` is how many pages the record has.
    ///
    /// # Errors
    /// [`RecordHeaderError`] when they are none.
    pub fn decode(bytes: &[u8], pages: usize) -> Result<RecordHeader, RecordHeaderError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(RecordHeaderError::Magic);
        }
        let (fixed, rest) = bytes
            .split_first_chunk::<FIXED_BYTES>()
            .ok_or(RecordHeaderError::Length { found: bytes.len(), expected: FIXED_BYTES as u64 })?;
        let expected = u64::from(word(fixed, 20)) * RUN_BYTES as u64;
        if rest.len() as u64 != expected {
            let expected = expected + FIXED_BYTES as u64;
            return Err(RecordHeaderError::Length { found: bytes.len(), expected });
        }
        let runs: Vec<Run> = rest.as_chunks::<RUN_BYTES>().0.iter().map(decode_run).collect();
        check_runs(&runs)?;
        let expected = runs.iter().filter(|run| !run.zero).map(|run| u64::from(run.count)).sum();
        if expected != pages as u64 {
            return Err(RecordHeaderError::Pages { found: pages, expected });
        }
        let extent = ExtentId { volume: word(fixed, 4), index: word(fixed, 8) };
        let version = u64::from_le_bytes(fixed[12..20].try_into().expect("eight bytes"));
        Ok(RecordHeader { extent, version, runs })
    }
}

fn decode_run(bytes: &[u8; RUN_BYTES]) -> Run {
    let count = word(bytes, 4);
    Run { first: word(bytes, 0), count: count & !ZERO_BIT, zero: count & ZERO_BIT != 0 }
}

fn check_runs(runs: &[Run]) -> Result<(), RecordHeaderError> {
    let mut end = 0;
    for run in runs {
        if run.count == 0 || u64::from(run.first) < end {
            return Err(RecordHeaderError::Runs);
        }
        end = u64::from(run.first) + u64::from(run.count);
    }
    if runs.is_empty() || end > u64::from(u32::MAX) { Err(RecordHeaderError::Runs) } else { Ok(()) }
}

fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sample() -> RecordHeader {
        RecordHeader {
            extent: ExtentId { volume: 7, index: 1 << 20 },
            version: 1 << 40,
            runs: vec![
                Run { first: 3, count: 2, zero: false },
                Run { first: 5, count: 100, zero: true },
                Run { first: 200, count: 1, zero: false },
            ],
        }
    }

    #[test]
    fn the_bytes_are_those_of_version_1() {
        let header = RecordHeader { runs: sample().runs[..2].to_vec(), ..sample() };
        let expected: Vec<u8> = [
            &b"wbk1"[..],
            &[7, 0, 0, 0, 0, 0, 16, 0],
            &[0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0],
            &[3, 0, 0, 0, 2, 0, 0, 0],
            &[5, 0, 0, 0, 100, 0, 0, 128],
        ]
        .concat();
        assert_eq!(header.encode(), expected);
    }

    #[test]
    fn a_head_reads_back() {
        assert_eq!(RecordHeader::decode(&sample().encode(), 3), Ok(sample()));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let bytes = sample().encode();
        assert_eq!(RecordHeader::decode(&bytes, 2), Err(RecordHeaderError::Pages { found: 2, expected: 3 }));
        assert_eq!(
            RecordHeader::decode(&bytes[..30], 3),
            Err(RecordHeaderError::Length { found: 30, expected: 48 })
        );
        assert_eq!(RecordHeader::decode(b"wbk", 0), Err(RecordHeaderError::Magic));
        let reversed = RecordHeader { runs: sample().runs.into_iter().rev().collect(), ..sample() };
        assert_eq!(RecordHeader::decode(&reversed.encode(), 3), Err(RecordHeaderError::Runs));
        let none = RecordHeader { runs: vec![], ..sample() };
        assert_eq!(RecordHeader::decode(&none.encode(), 0), Err(RecordHeaderError::Runs));
        let mut huge = bytes;
        huge[20..24].fill(0xff);
        assert!(matches!(RecordHeader::decode(&huge, 3), Err(RecordHeaderError::Length { .. })));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(mut bytes in proptest::collection::vec(any::<u8>(), 0..80), runs in 0_u32..7, magic: bool, pages in 0_usize..4) {
            if magic && bytes.len() >= FIXED_BYTES {
                bytes[..4].copy_from_slice(&MAGIC);
                bytes[20..24].copy_from_slice(&runs.to_le_bytes());
            }
            if let Ok(header) = RecordHeader::decode(&bytes, pages) {
                prop_assert_eq!(header.encode(), bytes);
            }
        }
    }
}
