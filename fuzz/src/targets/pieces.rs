//! A stream in pieces, as sockets deliver it.

/// A stream of bytes that comes in pieces of one length.
pub(crate) struct Pieces<'a> {
    rest: &'a [u8],
    length: usize,
}

/// Streams longer than this are not read byte by byte, which takes time in proportion to the square of what is buffered.
const SINGLE_BYTES_MAX: usize = 512;

impl<'a> Pieces<'a> {
    /// All at once.
    pub(crate) fn whole(bytes: &'a [u8]) -> Pieces<'a> {
        Pieces { rest: bytes, length: bytes.len().max(1) }
    }

    /// In pieces of several lengths, none of which divides a header.
    pub(crate) fn several(bytes: &'a [u8]) -> impl Iterator<Item = Pieces<'a>> {
        let lengths =
            [1, 13, 101].into_iter().filter(|length| *length > 1 || bytes.len() <= SINGLE_BYTES_MAX);
        lengths.map(|length| Pieces { rest: bytes, length })
    }

    /// Appends the next piece; false where the stream has ended.
    pub(crate) fn receive(&mut self, received: &mut Vec<u8>) -> bool {
        let (piece, rest) = self.rest.split_at(self.length.min(self.rest.len()));
        self.rest = rest;
        received.extend_from_slice(piece);
        !piece.is_empty()
    }
}

/// A state machine that was given `given` bytes uses some of them, or waits for more, or both.
pub(crate) fn assert_progress(used: usize, given: usize, waits: bool) {
    assert!(used <= given, "{used} of {given} bytes were used");
    assert!(used > 0 || waits, "nothing was used of {given} bytes, and nothing is waited for");
}
