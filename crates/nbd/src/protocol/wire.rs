//! Big-endian reading and writing over byte slices. Reading past the end answers `None`; nothing panics.

use super::error::StringFault;
use super::limits::STRING_BYTES_MAX;

/// Reads fields one after another.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { rest: bytes }
    }

    /// The bytes not read yet.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*head)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A field of 32 bits that says how many bytes follow, and those bytes.
    pub(crate) fn counted(&mut self) -> Option<&'a [u8]> {
        let count = self.u32()?;
        self.bytes(usize::try_from(count).ok()?)
    }
}

/// Appends fields one after another.
pub(crate) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn put_u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }

    fn put_u32(&mut self, value: u32) {
        self.put(&value.to_be_bytes());
    }

    fn put_u64(&mut self, value: u64) {
        self.put(&value.to_be_bytes());
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// The length of something already limited to far less than 4 GiB.
pub(crate) fn length_u32(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("lengths are limited before they are encoded")
}

/// A string of the protocol: UTF-8 without NUL of at most 4096 bytes ("Conventions").
pub(crate) fn string(bytes: &[u8]) -> Result<&str, StringFault> {
    if bytes.len() > STRING_BYTES_MAX {
        return Err(StringFault::TooLong);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| StringFault::NotUtf8)?;
    if text.contains('\0') { Err(StringFault::HasNul) } else { Ok(text) }
}

/// `text` cut at a character so that it may be sent as a string.
pub(crate) fn clip(text: &str) -> &str {
    &text[..text.floor_char_boundary(STRING_BYTES_MAX)]
}
