//! The mirrored ring: an append-only log in a region of each of one to three drives.
//!
//! It carries the metadata journal (small records) and the write log of each shard (records with pages of 4096 bytes).
//! [`Ring::append`] ends when the record is stable on every copy that is left; [`Ring::release`] gives space back;
//! [`Ring::recover`] returns what was not released, after a power cut at any instant.
//!
//! Layers: [`Region`] is a part of a drive; [`header`] and [`frame`] are the format, byte by byte, as pure functions;
//! `state` is the ring's bookkeeping without I/O; `commit`, `tail`, `copies` and `join` do the I/O; `recover` and `look` read.
//!
//! Invariants:
//! - Records take effect in the order of [`Ring::append`]; an append ends only after all before it.
//! - What was acknowledged and not released is recovered, in order, exactly once. What was not acknowledged may be
//!   recovered too, but only as a prefix: never without all before it.
//! - Released records may be recovered until the tail is persisted, but only in order and without a gap.
//! - Nothing is assumed of a drive but its flush: between two flushes any subset of sectors may have been written. A
//!   frame counts if one copy has its header, and each of its pages is on one copy.
//! - A frame behind a hole is never believed, not even after other frames have filled the hole: each frame names the
//!   checksum of the one before it, and carries the incarnation of the ring.
//! - A copy that fails is dropped, and nothing is acknowledged before the owner has made the loss durable elsewhere.
//!   A copy that missed something must never be passed to [`Ring::recover`] again.
//! - Space is reused only when a header that does not need it is stable in both places on every copy.
//!
//! What it does not do: it does not know what its records mean, keeps no record in memory, does not record which copies
//! count, and encodes nothing in a world whose sectors are not whole (the I/Os are the same).

mod append;
mod bytes;
mod commit;
mod copies;
mod error;
pub mod frame;
pub mod header;
mod join;
mod look;
mod position;
mod reader;
mod recover;
mod region;
mod ring;
mod state;
mod tail;

pub use append::{Append, Appended, Record};
pub use copies::{COPIES_MAX, CopyState, LossReport};
pub use error::RingError;
pub use header::VERSION;
pub use position::Position;
pub use recover::{Entry, Inspected, Recovered, RecoveryReport};
pub use region::Region;
pub use ring::{Ring, Settings, Space};
