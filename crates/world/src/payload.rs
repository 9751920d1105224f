//! What travels with an I/O: nothing, a block buffer to fill, one to write, bytes, or a gather list for a socket.

use crate::{Buf, BufMut};

/// Bytes a world keeps per sector of data.
///
/// Real worlds and fault simulations keep all 512. A performance study keeps none. A few are for tests of single layers.
/// What an array must find again (log, tables, metadata) is in whole sectors in every world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadWidth(pub(crate) u16);

impl PayloadWidth {
    /// Whole sectors: 512 bytes.
    pub const REAL: PayloadWidth = PayloadWidth(512);
    /// No payload at all.
    pub const NONE: PayloadWidth = PayloadWidth(0);

    /// `bytes` per sector, 0 to 512.
    pub const fn new(bytes: u16) -> PayloadWidth {
        assert!(bytes <= 512, "a sector has 512 bytes");
        PayloadWidth(bytes)
    }

    /// Bytes per sector.
    pub const fn bytes(self) -> usize {
        self.0 as usize
    }
}

/// What an I/O carries while it is under way; it comes back with the completion.
#[derive(Debug, Default)]
pub enum Payload {
    /// Nothing.
    #[default]
    None,
    /// A buffer to be filled.
    Read(BufMut),
    /// A buffer to be written.
    Write(Buf),
    /// Bytes received from a socket are appended, up to the capacity.
    Bytes(Vec<u8>),
    /// Bytes to be sent to a socket.
    Gather(Box<Gather>),
}

impl Payload {
    /// The buffer of a read. Panics on any other payload: the completion gave back what it was not given.
    pub fn into_read(self) -> BufMut {
        match self {
            Payload::Read(buf) => buf,
            other => panic!("a read gave back {other:?}"),
        }
    }

    /// The bytes of a receive; see [`Payload::into_read`].
    pub fn into_bytes(self) -> Vec<u8> {
        match self {
            Payload::Bytes(bytes) => bytes,
            other => panic!("a receive gave back {other:?}"),
        }
    }

    /// The gather list of a send; see [`Payload::into_read`].
    pub fn into_gather(self) -> Box<Gather> {
        match self {
            Payload::Gather(gather) => gather,
            other => panic!("a send gave back {other:?}"),
        }
    }
}

/// A list of headers and block buffers to be sent in one call, in order.
#[derive(Debug, Default)]
pub struct Gather {
    headers: Vec<u8>,
    parts: Vec<Part>,
    bytes: usize,
    /// The kernel reads these two while the send is under way, so they live as long as it.
    pub(crate) vectors: Vec<libc::iovec>,
    pub(crate) message: Option<Box<libc::msghdr>>,
}

// SAFETY: the raw pointers in `vectors` and `message` point into the gather list itself, are rebuilt by
// `prepare` before each use, and are read by the kernel only while the list sits in a completion slot.
unsafe impl Send for Gather {}

#[derive(Debug)]
enum Part {
    Header { start: usize, end: usize },
    Data { buf: Buf, start: usize },
}

/// The most parts one send takes: the kernel's UIO_MAXIOV.
const PARTS_PER_SEND_MAX: usize = 1024;

impl Gather {
    /// An empty list.
    pub fn new() -> Gather {
        Gather::default()
    }

    /// Appends bytes, which are copied; neighbouring headers become one part.
    pub fn push_header(&mut self, bytes: &[u8]) {
        let start = self.headers.len();
        self.headers.extend_from_slice(bytes);
        self.bytes += bytes.len();
        match self.parts.last_mut() {
            Some(Part::Header { end, .. }) if *end == start => *end += bytes.len(),
            _ => self.parts.push(Part::Header { start, end: start + bytes.len() }),
        }
    }

    /// Appends the bytes of a block buffer, which are not copied.
    pub fn push_data(&mut self, buf: Buf) {
        if !buf.as_slice().is_empty() {
            self.bytes += buf.as_slice().len();
            self.parts.push(Part::Data { buf, start: 0 });
        }
    }

    /// Bytes still to be sent.
    pub fn remaining_bytes(&self) -> usize {
        self.bytes
    }

    /// Takes `sent` bytes off the front.
    pub fn advance(&mut self, mut sent: usize) {
        assert!(sent <= self.bytes, "sent {sent} bytes of {}", self.bytes);
        self.bytes -= sent;
        if self.bytes == 0 {
            self.parts.clear();
            self.headers.clear();
            return;
        }
        let mut done = 0;
        for part in &mut self.parts {
            let (start, end) = match part {
                Part::Header { start, end } => (start, *end),
                Part::Data { buf, start } => (start, buf.as_slice().len()),
            };
            let step = sent.min(end - *start);
            *start += step;
            sent -= step;
            if *start < end {
                break;
            }
            done += 1;
        }
        self.parts.drain(..done);
    }

    /// A copy of the first `count` bytes.
    pub(crate) fn copy_front(&self, count: usize) -> Vec<u8> {
        let mut copy = Vec::with_capacity(count);
        for part in &self.parts {
            let bytes = match part {
                Part::Header { start, end } => &self.headers[*start..*end],
                Part::Data { buf, start } => &buf.as_slice()[*start..],
            };
            copy.extend_from_slice(&bytes[..bytes.len().min(count - copy.len())]);
            if copy.len() == count {
                break;
            }
        }
        copy
    }

    /// Rebuilds the vectors for the kernel and returns them.
    pub(crate) fn prepare(&mut self) -> &mut libc::msghdr {
        self.vectors.clear();
        for part in self.parts.iter().take(PARTS_PER_SEND_MAX) {
            let bytes = match part {
                Part::Header { start, end } => &self.headers[*start..*end],
                Part::Data { buf, start } => &buf.as_slice()[*start..],
            };
            self.vectors
                .push(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
        }
        let message = self.message.get_or_insert_with(|| {
            // SAFETY: msghdr is a C struct of pointers and lengths, for which all zero is a valid "empty".
            Box::new(unsafe { std::mem::zeroed() })
        });
        message.msg_iov = self.vectors.as_mut_ptr();
        message.msg_iovlen = self.vectors.len();
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(gather: &mut Gather) -> Vec<u8> {
        gather.prepare();
        let mut all = Vec::new();
        for v in &gather.vectors {
            // SAFETY: `prepare` built the vector from live slices of the list just now.
            all.extend_from_slice(unsafe { std::slice::from_raw_parts(v.iov_base.cast::<u8>(), v.iov_len) });
        }
        all
    }

    #[test]
    fn partial_sends_at_every_length_leave_the_rest() {
        for sent in 0..=10 {
            let mut gather = Gather::new();
            gather.push_header(&[1, 2]);
            gather.push_header(&[3]);
            gather.push_data(BufMut::copy_from(&[4, 5, 6, 7], PayloadWidth::new(4)).freeze());
            gather.push_header(&[8, 9, 10]);
            assert_eq!(gather.remaining_bytes(), 10);
            gather.advance(sent);
            let rest: Vec<u8> = (1..=10).skip(sent).collect();
            assert_eq!(bytes_of(&mut gather), rest, "after {sent} bytes");
        }
    }
}
