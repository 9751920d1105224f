//! Data that can tell what it is, and the book of what must be found where.
//!
//! A written sector carries its address, its version and the run's seed, and the rest of it is derived from
//! these three ([`stamp`]); the [`Verifier`] knows which versions each block may hold at any moment, writes
//! under way included, and says of a wrong sector whether it is stale, misdirected, foreign or corrupt
//! ([`Mismatch`]).
//!
//! Invariants: a sector that passes is exactly what a write of this run put there, or what was there before
//! the run. Writes are atomic per sector and no further, as block devices promise.

mod book;
mod mismatch;
mod stamp;
#[cfg(test)]
mod tests;
mod verifier;

pub use mismatch::{Found, Mismatch};
pub use stamp::{STAMP_BYTES_MIN, stamp};
pub use verifier::{ReadTicket, VERSION_MAP_MAX, Verifier, WriteTicket};
