//! Requests: their 28 bytes, and the stream they arrive in ("Request message").

use super::super::constants::{REQUEST_MAGIC, cmd, cmd_flag};
use super::super::error::ProtocolError;
use super::super::wire::Cursor;

/// Bytes of a request without its payload.
pub const REQUEST_BYTES: usize = 28;

/// Request types this crate knows ("Request types").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum RequestKind {
    /// Read bytes.
    Read = cmd::READ,
    /// Write the bytes that follow.
    Write = cmd::WRITE,
    /// Finish what is in flight and close; has no reply.
    Disconnect = cmd::DISC,
    /// Persist every write answered so far.
    Flush = cmd::FLUSH,
    /// The bytes are no longer needed.
    Trim = cmd::TRIM,
    /// Read the bytes into the server's cache.
    Cache = cmd::CACHE,
    /// Write zeroes without sending them.
    WriteZeroes = cmd::WRITE_ZEROES,
    /// Tell what is allocated.
    BlockStatus = cmd::BLOCK_STATUS,
}

impl RequestKind {
    pub(super) fn from_wire(kind: u16) -> Option<RequestKind> {
        Some(match kind {
            cmd::READ => RequestKind::Read,
            cmd::WRITE => RequestKind::Write,
            cmd::DISC => RequestKind::Disconnect,
            cmd::FLUSH => RequestKind::Flush,
            cmd::TRIM => RequestKind::Trim,
            cmd::CACHE => RequestKind::Cache,
            cmd::WRITE_ZEROES => RequestKind::WriteZeroes,
            cmd::BLOCK_STATUS => RequestKind::BlockStatus,
            _ => return None,
        })
    }
}

/// A request as it stands on the wire; nothing about it is checked but the magic number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Command flags.
    pub flags: u16,
    /// Request type.
    pub kind: u16,
    /// The client's mark, repeated in every reply.
    pub cookie: u64,
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub length: u32,
}

impl Request {
    /// A request without flags.
    pub fn new(kind: RequestKind, cookie: u64, offset: u64, length: u32) -> Request {
        Request { flags: 0, kind: kind as u16, cookie, offset, length }
    }

    /// This request with `FUA`: answer only once the data is persistent.
    pub fn fua(self, fua: bool) -> Request {
        self.flag(cmd_flag::FUA, fua)
    }

    /// This write of zeroes with `NO_HOLE`: keep the space allocated.
    pub fn no_hole(self, no_hole: bool) -> Request {
        self.flag(cmd_flag::NO_HOLE, no_hole)
    }

    /// This write of zeroes with `FAST_ZERO`: fail rather than be slow.
    pub fn fast_zero(self, fast_zero: bool) -> Request {
        self.flag(cmd_flag::FAST_ZERO, fast_zero)
    }

    /// This read with `DF`: send the data in one chunk.
    pub fn dont_fragment(self, dont_fragment: bool) -> Request {
        self.flag(cmd_flag::DF, dont_fragment)
    }

    /// This block status request with `REQ_ONE`: one extent is enough.
    pub fn one_extent(self, one_extent: bool) -> Request {
        self.flag(cmd_flag::REQ_ONE, one_extent)
    }

    fn flag(mut self, bit: u16, on: bool) -> Request {
        self.flags |= if on { bit } else { 0 };
        self
    }

    /// Whether [`Request::length`] bytes of payload follow it, as they do after a write and nothing else.
    pub fn carries_payload(&self) -> bool {
        self.kind == cmd::WRITE
    }

    /// The request as sent.
    pub fn to_wire(&self) -> [u8; REQUEST_BYTES] {
        let mut wire = [0; REQUEST_BYTES];
        wire[..4].copy_from_slice(&REQUEST_MAGIC.to_be_bytes());
        wire[4..6].copy_from_slice(&self.flags.to_be_bytes());
        wire[6..8].copy_from_slice(&self.kind.to_be_bytes());
        wire[8..16].copy_from_slice(&self.cookie.to_be_bytes());
        wire[16..24].copy_from_slice(&self.offset.to_be_bytes());
        wire[24..].copy_from_slice(&self.length.to_be_bytes());
        wire
    }

    /// The request at the start of `input`; `None` where more bytes are needed. A wrong magic number is seen as
    /// soon as its four bytes are there.
    pub fn parse(input: &[u8]) -> Result<Option<Request>, ProtocolError> {
        let mut cursor = Cursor::new(input);
        let Some(magic) = cursor.u32() else { return Ok(None) };
        if magic != REQUEST_MAGIC {
            return Err(ProtocolError::BadRequestMagic { found: magic });
        }
        let mut fields = || {
            Some(Request {
                flags: cursor.u16()?,
                kind: cursor.u16()?,
                cookie: cursor.u64()?,
                offset: cursor.u64()?,
                length: cursor.u32()?,
            })
        };
        Ok(fields())
    }
}

/// What a server receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestEvent<'a> {
    /// A request; if it is a write, its payload follows in [`RequestEvent::Payload`].
    Request(Request),
    /// The next bytes of the last write's payload.
    Payload(&'a [u8]),
    /// The client is done; no reply, nothing may follow.
    Disconnect,
}

/// Cuts what a client sends into requests and payload.
#[derive(Debug)]
pub struct RequestStream {
    payload_bytes_max: u32,
    payload_bytes_left: u32,
    disconnected: bool,
}

impl RequestStream {
    /// A stream whose writes may carry `payload_bytes_max` bytes.
    pub fn new(payload_bytes_max: u32) -> RequestStream {
        RequestStream { payload_bytes_max, payload_bytes_left: 0, disconnected: false }
    }

    /// Takes the next event off the front of `input`; `None` where more bytes are needed. What is left of `input`
    /// then, fewer than [`REQUEST_BYTES`] bytes, is to be given again in front of what comes next.
    ///
    /// # Errors
    /// Where the connection must be closed. Unknown commands and flags are no such errors: they have replies.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<RequestEvent<'a>>, ProtocolError> {
        if self.payload_bytes_left > 0 {
            return Ok(self.take_payload(input));
        }
        if self.disconnected {
            return if input.is_empty() { Ok(None) } else { Err(ProtocolError::BytesAfterDisconnect) };
        }
        let Some(request) = Request::parse(input)? else { return Ok(None) };
        *input = &input[REQUEST_BYTES..];
        match request.kind {
            cmd::WRITE if request.length > self.payload_bytes_max => {
                return Err(ProtocolError::PayloadTooLong {
                    length: request.length,
                    max: self.payload_bytes_max,
                });
            }
            cmd::WRITE => self.payload_bytes_left = request.length,
            cmd::DISC => {
                self.disconnected = true;
                return Ok(Some(RequestEvent::Disconnect));
            }
            _ => {}
        }
        Ok(Some(RequestEvent::Request(request)))
    }

    fn take_payload<'a>(&mut self, input: &mut &'a [u8]) -> Option<RequestEvent<'a>> {
        let take = input.len().min(self.payload_bytes_left as usize);
        if take == 0 {
            return None;
        }
        let (payload, rest) = input.split_at(take);
        *input = rest;
        self.payload_received(take as u32);
        Some(RequestEvent::Payload(payload))
    }

    /// Payload bytes of the last write that have not come yet.
    pub fn payload_bytes_left(&self) -> u32 {
        self.payload_bytes_left
    }

    /// Notes that `bytes` of the payload were received past this stream, straight to where they belong.
    ///
    /// # Panics
    /// Where they are more than are left.
    pub fn payload_received(&mut self, bytes: u32) {
        self.payload_bytes_left =
            self.payload_bytes_left.checked_sub(bytes).expect("no more payload than announced");
    }
}
