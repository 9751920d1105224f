//! What is known of a cached line, as it is stored: in a map page, and in a record of the log.

use crate::line::TAG_BITS;

/// The most an entry's re-reference value can be: it gives way next.
pub(crate) const RRPV_MAX: u8 = 3;

/// A place of a line on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Which way.
    pub way: u8,
    /// Which set.
    pub set: u32,
}

/// What lies at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which line of those that belong to the set.
    pub tag: u32,
    /// Which of its two pages are there, a bit each; at least one.
    pub valid: u8,
    /// How soon it is expected to be read again: 0 is soon.
    pub rrpv: u8,
    /// The check of its valid pages.
    pub check: u32,
}

/// Bits of an entry's word that are in use.
const WORD_BITS: u32 = TAG_BITS + 4;

impl Entry {
    /// Tag, valid pages and re-reference value in 23 bits. Never 0.
    pub(crate) fn word(&self) -> u32 {
        self.tag | u32::from(self.valid) << TAG_BITS | u32::from(self.rrpv) << (TAG_BITS + 2)
    }

    /// The entry of a word and a check: nothing if both are 0, an error where no entry has them.
    pub(crate) fn of(word: u32, check: u32) -> Result<Option<Entry>, Malformed> {
        if word == 0 && check == 0 {
            return Ok(None);
        }
        let valid = (word >> TAG_BITS & 3) as u8;
        if valid == 0 || word >> WORD_BITS != 0 {
            return Err(Malformed);
        }
        let rrpv = (word >> (TAG_BITS + 2) & 3) as u8;
        Ok(Some(Entry { tag: word & ((1 << TAG_BITS) - 1), valid, rrpv, check }))
    }
}

/// Bytes that nobody has written as an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;
