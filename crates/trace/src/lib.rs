//! Block traces that people have, read for the replay of cache policies.
//!
//! | module | concept |
//! |---|---|
//! | [`reader`] | the iterator over the accesses of a trace |
//! | [`access`] | what an access is, the same for every format |
//! | [`format`](mod@format) | the formats, their names, and how one is recognised |
//! | `blkparse`, `fio`, `ids`, `binary` | one format each: a line or a record in, an access out |
//! | [`columns`] | text in columns: which column holds what, in which unit |
//! | `table` | a line of such a text in, an access out |
//! | `preset` | such texts that are known by a name, and how they are recognised |
//! | `doubt` | what speaks against the format that was named, and what was assumed |
//! | `source` | bytes, decompressed, as lines and records of bounded length |
//! | `volumes` | names of disks and files, as small numbers |
//! | [`error`] | what can go wrong, with the place and the remedy |
//!
//! Files are read as they are found: plain, or compressed with gzip, zstd or xz, which their first bytes tell.
//!
//! Invariants:
//! - A trace is read as a stream. Memory does not depend on its length: a buffer of 256 KiB, names of volumes of at
//!   most 256 bytes each and 256 MiB in all, and a decompressor, which gets at most 128 MiB of window.
//! - An access costs no allocation.
//! - Nothing that is malformed is passed over in silence. What a format has besides accesses is counted
//!   ([`TraceReader::skipped`]), and everything else is an error, after which the iterator ends. All that came before
//!   the error has been delivered.
//!
//! What this crate does not do: it does not cut accesses into blocks, and it does not merge traces.

pub mod access;
mod binary;
mod blkparse;
pub mod columns;
mod compression;
mod doubt;
pub mod error;
mod fio;
pub mod format;
mod gzip;
mod ids;
mod preset;
pub mod reader;
mod source;
mod table;
mod text;
mod volumes;
mod zstd;

pub use access::{Access, Op, Place};
pub use blkparse::{Action, UnknownAction};
pub use columns::{Columns, ColumnsError};
pub use compression::Compression;
pub use error::TraceError;
pub use format::{Format, UnknownFormat};
pub use reader::{Options, TraceReader};
