//! Cuts what a server sends into events, checking every chunk against the request it answers.
//!
//! Payload and extents pass through as they come; the only thing that must be whole before it is read is a header
//! or an error chunk, so [`REPLY_BUFFER_BYTES`](crate::protocol::limits::REPLY_BUFFER_BYTES) of buffer suffice.

use super::super::constants::{SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk};
use super::super::errno::Errno;
use super::super::error::ProtocolError;
use super::super::limits::STRING_BYTES_MAX;
use super::super::wire::Cursor;
use super::extent::Extent;
use super::request::{Request, RequestKind};

/// What the client remembers of a request in flight.
#[derive(Clone, Copy, Debug)]
pub struct PendingReply {
    kind: u16,
    offset: u64,
    length: u32,
    /// Bytes of data, holes or extents that came so far.
    content_bytes: u32,
    error: Option<Errno>,
}

impl PendingReply {
    /// Nothing of the reply to `request` has come yet.
    pub fn new(request: &Request) -> PendingReply {
        let Request { kind, offset, length, .. } = *request;
        PendingReply { kind, offset, length, content_bytes: 0, error: None }
    }

    fn is(&self, kind: RequestKind) -> bool {
        self.kind == kind as u16
    }

    /// Counts a content chunk of a read; returns where in the request it lies.
    fn content(&mut self, offset: u64, length: u32) -> Result<u32, &'static str> {
        if !self.is(RequestKind::Read) {
            return Err("only reads have data");
        }
        let at = offset.checked_sub(self.offset).ok_or("before the request's offset")?;
        let fits = at.checked_add(u64::from(length)).is_some_and(|end| end <= u64::from(self.length));
        if length == 0 || !fits {
            return Err("empty or beyond the request's end");
        }
        self.count(length)?;
        Ok(at as u32)
    }

    fn count(&mut self, length: u32) -> Result<(), &'static str> {
        let sum = self.content_bytes.checked_add(length).filter(|sum| *sum <= self.length);
        self.content_bytes = sum.ok_or("more content than the request asked for")?;
        Ok(())
    }

    /// The request's outcome once its last chunk came.
    fn outcome(&self) -> Result<Option<Errno>, &'static str> {
        let complete = match self.kind {
            _ if self.error.is_some() => true,
            kind if kind == RequestKind::Read as u16 => self.content_bytes == self.length,
            kind if kind == RequestKind::BlockStatus as u16 => self.content_bytes > 0,
            _ => true,
        };
        if complete { Ok(self.error) } else { Err("success without the whole content") }
    }
}

/// The requests in flight, by cookie.
pub trait InFlight {
    /// The request with this cookie, if it is in flight.
    fn pending(&mut self, cookie: u64) -> Option<&mut PendingReply>;
}

/// What a client receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyEvent<'a> {
    /// Bytes of a read, to be put `at` this many bytes into its buffer.
    Data {
        /// The request.
        cookie: u64,
        /// Position in the request, in bytes.
        at: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// Bytes of a read that are zero.
    Zeroes {
        /// The request.
        cookie: u64,
        /// Position in the request, in bytes.
        at: u32,
        /// How many.
        length: u32,
    },
    /// The next extent of a block status request.
    Extent {
        /// The request.
        cookie: u64,
        /// The extent.
        extent: Extent,
    },
    /// The reply is complete; the cookie is free again.
    Done {
        /// The request.
        cookie: u64,
        /// Why it failed, if it did.
        error: Option<Errno>,
    },
}

#[derive(Clone, Copy, Debug)]
enum State {
    Header,
    Data { cookie: u64, at: u32, left: u32, done: bool },
    Zeroes { cookie: u64, at: u32, length: u32, done: bool },
    Extents { cookie: u64, left: u32, done: bool },
    Done { cookie: u64 },
}

/// State of one connection's replies.
#[derive(Debug)]
pub struct ReplyStream {
    structured_replies: bool,
    base_allocation: Option<u32>,
    state: State,
}

/// The fields of a structured reply chunk's header.
#[derive(Clone, Copy)]
struct ChunkHeader {
    done: bool,
    kind: u16,
    cookie: u64,
    length: u32,
}

impl ChunkHeader {
    fn malformed(&self, reason: &'static str) -> ProtocolError {
        ProtocolError::MalformedChunk { cookie: self.cookie, kind: self.kind, reason }
    }
}

impl ReplyStream {
    /// A stream of replies as negotiated.
    pub fn new(structured_replies: bool, base_allocation: Option<u32>) -> ReplyStream {
        ReplyStream { structured_replies, base_allocation, state: State::Header }
    }

    /// Takes the next event off the front of `input`; `None` where more bytes are needed. What is left of `input`
    /// then is to be given again in front of what comes next.
    ///
    /// # Errors
    /// Where the server breaks the protocol; the connection is of no further use.
    pub fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
        in_flight: &mut impl InFlight,
    ) -> Result<Option<ReplyEvent<'a>>, ProtocolError> {
        loop {
            match self.state {
                State::Header => {
                    let mut cursor = Cursor::new(input);
                    if !self.header(&mut cursor, in_flight)? {
                        return Ok(None);
                    }
                    let taken = input.len() - cursor.rest().len();
                    *input = &input[taken..];
                }
                State::Data { left: 0, cookie, done, .. } | State::Extents { left: 0, cookie, done } => {
                    self.state = after_chunk(cookie, done);
                }
                State::Zeroes { cookie, at, length, done } => {
                    self.state = after_chunk(cookie, done);
                    return Ok(Some(ReplyEvent::Zeroes { cookie, at, length }));
                }
                State::Data { cookie, at, left, .. } => {
                    let take = input.len().min(left as usize);
                    if take == 0 {
                        return Ok(None);
                    }
                    let (bytes, rest) = input.split_at(take);
                    *input = rest;
                    self.data_received(take as u32);
                    return Ok(Some(ReplyEvent::Data { cookie, at, bytes }));
                }
                State::Extents { cookie, left, done } => {
                    let Some(extent) = self.extent(cookie, input, in_flight)? else { return Ok(None) };
                    self.state = State::Extents { cookie, left: left - 1, done };
                    return Ok(Some(ReplyEvent::Extent { cookie, extent }));
                }
                State::Done { cookie } => {
                    self.state = State::Header;
                    let outcome = pending(in_flight, cookie)?.outcome();
                    let error = outcome.map_err(|reason| ProtocolError::MalformedChunk {
                        cookie,
                        kind: chunk::NONE,
                        reason,
                    })?;
                    return Ok(Some(ReplyEvent::Done { cookie, error }));
                }
            }
        }
    }

    /// The read whose data is being received, how far it is and how much of the chunk is left: for a client that
    /// receives it straight to where it belongs.
    pub fn data_expected(&self) -> Option<(u64, u32, u32)> {
        match self.state {
            State::Data { cookie, at, left, .. } if left > 0 => Some((cookie, at, left)),
            _ => None,
        }
    }

    /// Notes that `bytes` of the expected data were received past this stream.
    ///
    /// # Panics
    /// Where they are more than [`ReplyStream::data_expected`] says.
    pub fn data_received(&mut self, bytes: u32) {
        let State::Data { at, left, .. } = &mut self.state else { panic!("no data is expected") };
        *left = left.checked_sub(bytes).expect("no more data than announced");
        *at += bytes;
    }

    /// Reads one header and whatever small body belongs to it. False where more bytes are needed.
    fn header(
        &mut self,
        cursor: &mut Cursor<'_>,
        in_flight: &mut impl InFlight,
    ) -> Result<bool, ProtocolError> {
        let Some(magic) = cursor.u32() else { return Ok(false) };
        let state = match magic {
            SIMPLE_REPLY_MAGIC => self.simple(cursor, in_flight)?,
            STRUCTURED_REPLY_MAGIC => self.chunk(cursor, in_flight)?,
            found => return Err(ProtocolError::BadReplyMagic { found }),
        };
        let Some(state) = state else { return Ok(false) };
        self.state = state;
        Ok(true)
    }

    fn simple(
        &self,
        cursor: &mut Cursor<'_>,
        in_flight: &mut impl InFlight,
    ) -> Result<Option<State>, ProtocolError> {
        let (Some(error), Some(cookie)) = (cursor.u32(), cursor.u64()) else { return Ok(None) };
        let pending = pending(in_flight, cookie)?;
        if self.structured_replies && pending.is(RequestKind::Read) {
            return Err(ProtocolError::ReplyNotNegotiated { cookie });
        }
        pending.error = Errno::from_wire(error);
        if !pending.is(RequestKind::Read) || pending.error.is_some() {
            return Ok(Some(State::Done { cookie }));
        }
        pending.content_bytes = pending.length;
        Ok(Some(State::Data { cookie, at: 0, left: pending.length, done: true }))
    }

    fn chunk(
        &self,
        cursor: &mut Cursor<'_>,
        in_flight: &mut impl InFlight,
    ) -> Result<Option<State>, ProtocolError> {
        let (Some(flags), Some(kind), Some(cookie), Some(length)) =
            (cursor.u16(), cursor.u16(), cursor.u64(), cursor.u32())
        else {
            return Ok(None);
        };
        if !self.structured_replies {
            return Err(ProtocolError::ReplyNotNegotiated { cookie });
        }
        let header = ChunkHeader { done: flags & chunk::FLAG_DONE != 0, kind, cookie, length };
        let pending = pending(in_flight, cookie)?;
        match kind {
            chunk::NONE if length == 0 && header.done => Ok(Some(State::Done { cookie })),
            chunk::NONE => Err(header.malformed("must be empty and the last")),
            chunk::OFFSET_DATA => data_chunk(header, cursor, pending),
            chunk::OFFSET_HOLE => hole_chunk(header, cursor, pending),
            chunk::BLOCK_STATUS => self.block_status_chunk(header, cursor, pending),
            kind if kind & chunk::ERROR_BIT != 0 => error_chunk(header, cursor, pending),
            _ => Err(header.malformed("unknown type")),
        }
    }

    fn block_status_chunk(
        &self,
        header: ChunkHeader,
        cursor: &mut Cursor<'_>,
        pending: &PendingReply,
    ) -> Result<Option<State>, ProtocolError> {
        if !pending.is(RequestKind::BlockStatus) {
            return Err(header.malformed("only block status requests have extents"));
        }
        if header.length < 12 || !(header.length - 4).is_multiple_of(8) {
            return Err(header.malformed("length is not 4 and a multiple of 8"));
        }
        let Some(context) = cursor.u32() else { return Ok(None) };
        if Some(context) != self.base_allocation {
            return Err(header.malformed("context was not selected"));
        }
        let left = (header.length - 4) / 8;
        Ok(Some(State::Extents { cookie: header.cookie, left, done: header.done }))
    }

    fn extent(
        &self,
        cookie: u64,
        input: &mut &[u8],
        in_flight: &mut impl InFlight,
    ) -> Result<Option<Extent>, ProtocolError> {
        let malformed = |reason| ProtocolError::MalformedChunk { cookie, kind: chunk::BLOCK_STATUS, reason };
        let mut cursor = Cursor::new(input);
        let (Some(length), Some(flags)) = (cursor.u32(), cursor.u32()) else { return Ok(None) };
        if length == 0 {
            return Err(malformed("empty extent"));
        }
        pending(in_flight, cookie)?.count(length).map_err(malformed)?;
        *input = &input[8..];
        Ok(Some(Extent::from_wire(length, flags)))
    }
}

fn pending<I: InFlight>(in_flight: &mut I, cookie: u64) -> Result<&mut PendingReply, ProtocolError> {
    in_flight.pending(cookie).ok_or(ProtocolError::UnknownCookie { cookie })
}

fn after_chunk(cookie: u64, done: bool) -> State {
    if done { State::Done { cookie } } else { State::Header }
}

fn data_chunk(
    header: ChunkHeader,
    cursor: &mut Cursor<'_>,
    pending: &mut PendingReply,
) -> Result<Option<State>, ProtocolError> {
    let left = header.length.checked_sub(8).ok_or_else(|| header.malformed("shorter than its offset"))?;
    let Some(offset) = cursor.u64() else { return Ok(None) };
    let at = pending.content(offset, left).map_err(|reason| header.malformed(reason))?;
    Ok(Some(State::Data { cookie: header.cookie, at, left, done: header.done }))
}

fn hole_chunk(
    header: ChunkHeader,
    cursor: &mut Cursor<'_>,
    pending: &mut PendingReply,
) -> Result<Option<State>, ProtocolError> {
    if header.length != 12 {
        return Err(header.malformed("length is not 12"));
    }
    let (Some(offset), Some(length)) = (cursor.u64(), cursor.u32()) else { return Ok(None) };
    let at = pending.content(offset, length).map_err(|reason| header.malformed(reason))?;
    Ok(Some(State::Zeroes { cookie: header.cookie, at, length, done: header.done }))
}

/// All error chunks begin alike, so that unknown ones can be understood: error, message length, message.
fn error_chunk(
    header: ChunkHeader,
    cursor: &mut Cursor<'_>,
    pending: &mut PendingReply,
) -> Result<Option<State>, ProtocolError> {
    if header.length < 6 {
        return Err(header.malformed("shorter than its fixed fields"));
    }
    if header.length as usize > 14 + STRING_BYTES_MAX {
        return Err(header.malformed("longer than an error can be"));
    }
    let Some(body) = cursor.bytes(header.length as usize) else { return Ok(None) };
    let mut body = Cursor::new(body);
    let (error, message_bytes) = (body.u32(), body.u16());
    let (Some(error), Some(message_bytes)) = (error, message_bytes) else { return Ok(None) };
    let tail_bytes = if header.kind == chunk::ERROR_OFFSET { 8 } else { 0 };
    if body.rest().len() < usize::from(message_bytes) + tail_bytes {
        return Err(header.malformed("message is longer than the chunk"));
    }
    let errno = Errno::from_wire(error).ok_or_else(|| header.malformed("error is zero"))?;
    pending.error.get_or_insert(errno);
    Ok(Some(after_chunk(header.cookie, header.done)))
}
