//! Data that can tell what it is, and the one oracle of what must be found where.
//!
//! A written sector carries its address, its version and the run's seed, and the rest of it is derived from these three
//! ([`stamp`]); a look at a sector shows what it [`Holds`]. The [`Book`] knows which versions every sector, or every
//! block, may hold at any moment: writes under way, failed ones, crashes and volatile caches included. Whatever verifies
//! data asks it: the [`Verifier`] of loads here, the auditor of `tier0-sim` and the ledger of `tier0-torture`. They differ
//! in how they number what they write and in what they say of a wrong sector; the verifier says whether it is stale,
//! misdirected, foreign or corrupt ([`Mismatch`]).
//!
//! Invariants: a sector that passes is exactly what a write of this run put there, or what was there before the run.
//! Writes are atomic per sector and no further, as block devices promise.

mod book;
mod holds;
mod mismatch;
mod read;
mod stamp;
#[cfg(test)]
mod tests;
mod verifier;
mod write;

pub use book::Book;
pub use holds::{Holds, first_difference};
pub use mismatch::{Found, Mismatch};
pub use read::{Allowed, ReadTicket};
pub use stamp::{STAMP_BYTES_MIN, stamp};
pub use verifier::{VERSION_MAP_MAX, Verifier, WriteTicket};
pub use write::{Effect, Moment, Version};
