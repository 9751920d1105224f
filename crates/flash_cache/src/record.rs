//! A record of the log: what lies at some lines from now on, each as a whole, so that records can be applied to any
//! earlier state.

use crate::bytes::{long, put_long, put_word, word};
use crate::entry::{Entry, Line};

const VERSION: u32 = 1;
/// Bytes in front of the changes.
const HEAD_BYTES: usize = 16;
/// Bytes of a change.
const CHANGE_BYTES: usize = 12;

/// What has changed at a line: an entry, or nothing is there any more.
pub type Change = (Line, Option<Entry>);

/// What a record says.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// What was left of the budget of writes, bytes.
    pub budget: f64,
    /// What has changed; a later one of a line counts.
    pub changes: Vec<Change>,
}

/// How many changes a record of so many bytes has at most.
pub(crate) fn most_changes(bytes: u64) -> usize {
    (bytes.saturating_sub(HEAD_BYTES as u64) / CHANGE_BYTES as u64).max(1) as usize
}

/// Bytes of a record of so many changes.
pub(crate) fn bytes_of(changes: usize) -> usize {
    HEAD_BYTES + changes * CHANGE_BYTES
}

/// The bytes of a record.
pub fn encode(budget: f64, changes: &[Change]) -> Vec<u8> {
    let mut bytes = vec![0; bytes_of(changes.len())];
    put_word(&mut bytes, 0, VERSION);
    put_word(&mut bytes, 4, changes.len() as u32);
    put_long(&mut bytes, 8, budget.to_bits());
    for (place, (line, entry)) in bytes[HEAD_BYTES..].chunks_exact_mut(CHANGE_BYTES).zip(changes) {
        put_word(place, 0, line.set);
        let (word, check) = entry.map_or((0, 0), |entry| (entry.word(), entry.check));
        put_word(place, 4, u32::from(line.way) << 24 | word);
        put_word(place, 8, check);
    }
    bytes
}

/// Reads a record from arbitrary bytes; none where they are none. A change that nobody writes counts as that nothing is
/// at its line.
pub fn decode(bytes: &[u8]) -> Option<Changes> {
    if bytes.len() < HEAD_BYTES || word(bytes, 0) != VERSION {
        return None;
    }
    let changes = &bytes[HEAD_BYTES..];
    if Some(changes.len()) != (word(bytes, 4) as usize).checked_mul(CHANGE_BYTES) {
        return None;
    }
    let change = |place: &[u8]| {
        let line = Line { set: word(place, 0), way: (word(place, 4) >> 24) as u8 };
        (line, Entry::of(word(place, 4) & 0x00ff_ffff, word(place, 8)).unwrap_or(None))
    };
    let budget = f64::from_bits(long(bytes, 8));
    let budget = if budget.is_finite() { budget } else { 0.0 };
    Some(Changes { budget, changes: changes.chunks_exact(CHANGE_BYTES).map(change).collect() })
}
