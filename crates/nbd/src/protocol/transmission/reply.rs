//! What the server sends: simple replies and chunks of structured ones ("Simple reply message",
//! "Structured reply chunk message", "Structured reply types").
//!
//! Payload is never copied here: a header is written, and the sender lets the data follow it.

use super::super::constants::{SIMPLE_REPLY_MAGIC, STRUCTURED_REPLY_MAGIC, chunk};
use super::super::errno::Errno;
use super::super::wire::{Put, clip, length_u32};
use super::extent::Extent;

/// Bytes of a simple reply without its payload.
pub const SIMPLE_REPLY_BYTES: usize = 16;

/// Bytes in front of the data in a chunk of data: the chunk's header and the offset.
pub const DATA_HEADER_BYTES: usize = 28;

/// A simple reply; after a successful read, its data must follow.
pub fn put_simple(out: &mut Vec<u8>, cookie: u64, error: Option<Errno>) {
    let mut reply = [0; SIMPLE_REPLY_BYTES];
    reply[..4].copy_from_slice(&SIMPLE_REPLY_MAGIC.to_be_bytes());
    reply[4..8].copy_from_slice(&error.map_or(0, Errno::wire).to_be_bytes());
    reply[8..].copy_from_slice(&cookie.to_be_bytes());
    out.put(&reply);
}

fn put_chunk(out: &mut Vec<u8>, cookie: u64, kind: u16, length: u32, done: bool) {
    let flags = if done { chunk::FLAG_DONE } else { 0 };
    let mut header = [0; 20];
    header[..4].copy_from_slice(&STRUCTURED_REPLY_MAGIC.to_be_bytes());
    header[4..6].copy_from_slice(&flags.to_be_bytes());
    header[6..8].copy_from_slice(&kind.to_be_bytes());
    header[8..16].copy_from_slice(&cookie.to_be_bytes());
    header[16..].copy_from_slice(&length.to_be_bytes());
    out.put(&header);
}

/// `OFFSET_DATA`: `length` bytes of data, at least one, must follow. It may be the last chunk only where no error
/// can come up while it is sent, that is, where the data is already in memory.
pub fn put_data_header(out: &mut Vec<u8>, cookie: u64, offset: u64, length: u32, done: bool) {
    debug_assert!(length > 0, "a chunk of data has data");
    put_chunk(out, cookie, chunk::OFFSET_DATA, 8 + length, done);
    out.put_u64(offset);
}

/// `OFFSET_HOLE`: `length` bytes, at least one, read as zeroes. Not for requests with `DF` that have data as well.
pub fn put_hole(out: &mut Vec<u8>, cookie: u64, offset: u64, length: u32, done: bool) {
    debug_assert!(length > 0, "a hole has a length");
    put_chunk(out, cookie, chunk::OFFSET_HOLE, 12, done);
    out.put_u64(offset);
    out.put_u32(length);
}

/// `NONE`: the end of a reply.
pub fn put_done(out: &mut Vec<u8>, cookie: u64) {
    put_chunk(out, cookie, chunk::NONE, 0, true);
}

/// `ERROR` with a message for people, as the last chunk.
pub fn put_error(out: &mut Vec<u8>, cookie: u64, errno: Errno, message: &str) {
    let message = clip(message).as_bytes();
    put_chunk(out, cookie, chunk::ERROR, 6 + length_u32(message.len()), true);
    put_error_body(out, errno, message);
}

/// `ERROR_OFFSET`: like [`put_error`], and everything of the request before `offset` is good.
pub fn put_error_at(out: &mut Vec<u8>, cookie: u64, errno: Errno, message: &str, offset: u64) {
    let message = clip(message).as_bytes();
    put_chunk(out, cookie, chunk::ERROR_OFFSET, 14 + length_u32(message.len()), true);
    put_error_body(out, errno, message);
    out.put_u64(offset);
}

fn put_error_body(out: &mut Vec<u8>, errno: Errno, message: &[u8]) {
    out.put_u32(errno.wire());
    out.put_u16(message.len() as u16); // at most 4096
    out.put(message);
}

/// `BLOCK_STATUS` for one context, as the last chunk. `extents` are consecutive from the request's offset, at least
/// one, none empty, in sum no longer than the request, and only one where the client asked for one.
pub fn put_block_status(out: &mut Vec<u8>, cookie: u64, context_id: u32, extents: &[Extent]) {
    debug_assert!(!extents.is_empty() && extents.iter().all(|extent| extent.length > 0));
    put_chunk(out, cookie, chunk::BLOCK_STATUS, 4 + 8 * length_u32(extents.len()), true);
    out.put_u32(context_id);
    for extent in extents {
        out.put_u32(extent.length);
        out.put_u32(extent.flags());
    }
}
