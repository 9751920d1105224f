//! Checkpoints: the whole state of a pool as bytes, in pieces with a checksum each.
//!
//! A checkpoint says how much of the journal it covers; two slots on every drive that carries metadata are used in
//! turn, so the newest one is never overwritten. The sizes of its parts are known before, so that a state which could
//! outgrow the slot is refused instead ([`body_bytes_limit`]).
//!
//! What it does not do: it reads and writes no drives.

mod body;
mod pieces;
mod sizes;
#[cfg(test)]
mod tests;

pub(crate) use body::{
    PATHS_COUNT_BYTES, decode_area, decode_body, decode_member, decode_paths, encode_area, encode_body,
    encode_member, encode_paths,
};
pub(crate) use pieces::{
    HEADER_BYTES, PIECE_BYTES, body_bytes_max, decode_header, encode_pieces, join_pieces, slot_bytes,
};
pub use pieces::{Header, HeaderPlace, VERSION};
pub(crate) use sizes::{
    CHUNKLET_BYTES, GROUP_BYTES, MEMBER_BYTES_MAX, RUN_BYTES, body_bytes_limit, log_bytes, member_bytes,
    rebuild_bytes, volume_bytes,
};
