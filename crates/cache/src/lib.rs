//! The cache of a shard and pool: the write-back log, dirty pages and destaging, and clean pages in memory ([`ReadCache`]).
//!
//! A write is cut into pages of 4 KiB, kept in memory, appended to the shard's mirrored log and acknowledged when it is
//! stable there ([`WriteBack::write`]); a destager brings pages to their slots in the order of addresses, by itself and
//! as hard as the fill level asks for. Reads see the newest content, wherever it is.
//!
//! Invariants:
//! - What was acknowledged is in the log until it is stable in its slot and the slot's mapping is durable: the log is
//!   released up to the oldest record that a dirty page, a batch or an intent needs, and a record is needed until its
//!   successor is stable.
//! - Of one page, records in the log are in the order of its versions, and memory has the newest.
//! - A slot is taken before anything that needs it is logged; a pool without space refuses the write and nothing else.
//! - No two batches touch one extent at once; no slot is read where it is being written, or after it was given back.
//! - Destaging always finds room in the log for its intents, whatever was destaged before and whenever power fails (see
//!   `level`), provided that the ring has [`ring_settings`] and at least [`ring_sectors_min`].
//! - Whatever could not be destaged stays in memory and log and is tried again.
//!
//! What it costs: 16 bytes per dirty page (23 with the tree's usual slack) and 48 per record of the log that is alive,
//! which is 47 bytes per page for writes of 8 KiB and 26 for writes of 64 KiB, beside the data.
//!
//! What it does not do: it knows no volumes' sizes, keeps no map and no free space of its own
//! ([`Mapping`]), and knows neither RAID nor checksums, which are
//! [`SlotIo`](tier0_integrity::SlotIo)'s.

mod accesses;
mod flushing;
mod level;
mod locks;
mod mapping;
mod options;
mod pages;
mod rate;
mod read_ahead;
mod read_cache;
mod readers;
mod record_header;
mod records;
mod recovery;
mod status;
mod write_back;

pub use accesses::AccessCounter;
pub use flushing::{FlushCounts, Flushed, Flushing};
pub use mapping::{LocalFuture, Mapping, Relocation};
pub use options::{WriteBackOptions, ring_sectors_min, ring_settings};
pub use read_ahead::{Ahead, ReadAhead};
pub use read_cache::{ReadCache, ReadCacheOptions, ReadCacheStatus};
pub use record_header::{RecordHeader, RecordHeaderError, Run};
pub use recovery::{Belongs, RecoverError, RecoveryReport};
pub use status::{Stage, WriteBackStatus};
pub use write_back::WriteBack;
