//! Checkpoints: the whole state of a pool as bytes, in pieces with a checksum each.
//!
//! A checkpoint says how much of the journal it covers. It has a root, which is everything but the map, and the map in
//! pages, of which it writes those that have changed. Two slots on every drive that carries metadata are used in turn for
//! the root, and so are two places for each page, so nothing of the newest one is ever overwritten. The sizes of its parts are known before, so that a state which could
//! outgrow the slot is refused instead ([`fixed_bytes`], [`table_bytes`]).
//!
//! What it does not do: it reads and writes no drives.

mod body;
#[cfg(test)]
pub(crate) mod image;
mod page;
mod pieces;
mod sizes;
#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use body::Body;
pub(crate) use body::{
    Around, PATHS_COUNT_BYTES, decode_area, decode_body, decode_member, decode_paths, encode_area,
    encode_member, encode_paths, encode_state,
};
pub(crate) use page::{
    PAGE_BYTES, PAGE_SLOTS, PageBytes, PageTable, Stored, decode_page, encode_page, is_page, most_places,
    page_count,
};
pub(crate) use pieces::{
    HEADER_BYTES, PIECE_BYTES, body_bytes_max, decode_header, encode_pieces, join_pieces, slot_bytes,
};
pub use pieces::{Header, HeaderPlace, VERSION};
pub(crate) use sizes::{
    BATCH_BYTES, BRANCH_BYTES, CEILINGS_GROWTH, CHUNKLET_BYTES, MEMBER_BYTES_MAX, SWITCH_BYTES,
    WEIGHTS_GROWTH, families_bytes, fixed_bytes, flash_cache_bytes, group_bytes, groups_bytes, log_bytes,
    member_bytes, of_group_bytes, rebuild_bytes, rebuilds_bytes, stages_bytes, stages_growth, switches_bytes,
    volume_bytes,
};
