//! UTF-16 as UTF-8, streamed. SQL Server's tools, the redirection of PowerShell and some exports of Windows write it.

use std::io::Read;

/// Bytes that are read at once.
const BLOCK_BYTES: usize = 16 << 10;
/// How much of a file without a mark is looked at.
const LOOKED_AT: usize = 64;

/// Which byte of a unit comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Little,
    Big,
}

/// The order of a file's bytes if it is UTF-16: by its mark, or because every second byte of a text in Latin letters is 0.
pub(super) fn order(head: &[u8]) -> Option<Order> {
    match head {
        [0xff, 0xfe, ..] => return Some(Order::Little),
        [0xfe, 0xff, ..] => return Some(Order::Big),
        _ => {}
    }
    let begin = &head[..head.len().min(LOOKED_AT)];
    let zeros = |parity: usize| {
        let bytes = begin.iter().skip(parity).step_by(2);
        (bytes.clone().filter(|byte| **byte == 0).count(), bytes.count())
    };
    let ((even, evens), (odd, odds)) = (zeros(0), zeros(1));
    match () {
        () if even == 0 && odds >= 8 && odd * 4 >= odds * 3 => Some(Order::Little),
        () if odd == 0 && evens >= 8 && even * 4 >= evens * 3 => Some(Order::Big),
        () => None,
    }
}

/// The text of a file as UTF-8. What is no UTF-16 becomes the replacement character.
pub(super) struct Utf8<R> {
    input: R,
    order: Order,
    /// What was decoded, and how much of it was given away.
    text: String,
    given: usize,
    /// A first byte, and a first half of a pair, whose other one was not read yet.
    byte: Option<u8>,
    half: Option<u16>,
    is_done: bool,
}

impl<R: Read> Utf8<R> {
    /// The text of `input`.
    pub(super) fn new(input: R, order: Order) -> Utf8<R> {
        Utf8 { input, order, text: String::new(), given: 0, byte: None, half: None, is_done: false }
    }

    fn decode(&mut self, bytes: &[u8]) {
        let bytes = self.byte.take().into_iter().chain(bytes.iter().copied());
        let mut units = Vec::with_capacity(BLOCK_BYTES / 2 + 2);
        units.extend(self.half.take());
        let mut first = None;
        for byte in bytes {
            match (first.take(), self.order) {
                (None, _) => first = Some(byte),
                (Some(first), Order::Little) => units.push(u16::from_le_bytes([first, byte])),
                (Some(first), Order::Big) => units.push(u16::from_be_bytes([first, byte])),
            }
        }
        self.byte = first;
        // A pair may be cut by the end of the block.
        if !self.is_done && units.last().is_some_and(|unit| (0xd800..0xdc00).contains(unit)) {
            self.half = units.pop();
        }
        let chars = char::decode_utf16(units).map(|char| char.unwrap_or(char::REPLACEMENT_CHARACTER));
        self.text.extend(chars);
        if self.is_done && self.byte.take().is_some() {
            self.text.push(char::REPLACEMENT_CHARACTER);
        }
    }
}

impl<R: Read> Read for Utf8<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        while self.given == self.text.len() && !self.is_done {
            self.text.clear();
            self.given = 0;
            let mut block = [0; BLOCK_BYTES];
            let read = self.input.read(&mut block)?;
            self.is_done = read == 0;
            self.decode(&block[..read]);
        }
        let rest = &self.text.as_bytes()[self.given..];
        let count = rest.len().min(to.len());
        to[..count].copy_from_slice(&rest[..count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that gives a byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(to.len()).min(1);
            to[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn both_orders_are_read_with_and_without_a_mark() {
        let text = "\u{feff}name;Lesevorgänge;\u{1f4be}\r\n1,5;2;x\r\n";
        let units: Vec<u16> = text.encode_utf16().collect();
        let little: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        let big: Vec<u8> = units.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        for (bytes, wanted) in [(&little, Order::Little), (&big, Order::Big)] {
            assert_eq!((order(bytes), order(&bytes[2..])), (Some(wanted), Some(wanted)));
            let mut found = String::new();
            Utf8::new(Slow(bytes), wanted).read_to_string(&mut found).expect("memory does not fail");
            assert_eq!(found, text);
        }
        assert_eq!((order(b"name,reads\n1,2\n"), order(b"")), (None, None));
        assert_eq!(order(&[0; 64]), None, "binary");
    }

    #[test]
    fn what_is_cut_or_no_pair_is_replaced() {
        let read = |bytes: &[u8]| {
            let mut found = String::new();
            Utf8::new(bytes, Order::Little).read_to_string(&mut found).expect("memory does not fail");
            found
        };
        assert_eq!(read(&[b'a', 0, b'b']), "a\u{fffd}");
        assert_eq!(read(&[0x3d, 0xd8]), "\u{fffd}", "half of a pair at the end");
        assert_eq!(read(&[0x3d, 0xd8, b'a', 0]), "\u{fffd}a");
        assert_eq!(read(&[]), "");
    }
}
