//! Why a ring cannot do what it was asked to.

use thiserror::Error;
use tier0_world::IoError;

use crate::Position;

/// The failure of an operation on a ring.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RingError {
    /// No copy is left that could take a record. What was acknowledged is still on the copy that failed last, as far
    /// as its drive can be read.
    #[error(
        "the last copy of the log failed: {source}; reconnect a drive that holds a copy, and start again"
    )]
    AllCopiesLost {
        /// What the last copy ended with.
        source: IoError,
    },
    /// The ring was dropped while the record waited.
    #[error("the log was closed; open it again")]
    Closed,
    /// The record does not fit even into an empty ring.
    #[error(
        "a record of {sectors} sectors exceeds the log, which has space for {room}; split it, or enlarge the log"
    )]
    RecordTooLarge {
        /// What the record needs, with its frame.
        sectors: u64,
        /// What an empty ring has for it.
        room: u64,
    },
    /// A region cannot hold the ring.
    #[error(
        "copy {copy} of the log has {sectors} sectors at sector {first}; it needs {needed}, aligned to 8 sectors, inside \
         the drive"
    )]
    BadRegion {
        /// Which copy.
        copy: usize,
        /// Its first sector.
        first: u64,
        /// Its length.
        sectors: u64,
        /// What the ring needs.
        needed: u64,
    },
    /// There is none, or more than [`crate::COPIES_MAX`], or a place that is taken.
    #[error("copy {copy} cannot be used: a log has 1 to 3 copies, and only a lost one can be replaced")]
    BadCopy {
        /// Which copy.
        copy: usize,
    },
    /// Another copy is being added.
    #[error("another copy is being added to the log; wait until it is complete")]
    Joining,
    /// No copy holds a header of a ring.
    #[error("no copy holds a log; check that the drives are the right ones, or create the log")]
    NoRing,
    /// The region holds another ring.
    #[error("copy {copy} holds a different log; check which drive is which")]
    WrongRing {
        /// Which copy.
        copy: usize,
    },
    /// The format is newer than this code.
    #[error(
        "the log has format version {found}, but this program supports up to {known}; use a newer program"
    )]
    TooNew {
        /// What the header says.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
    /// A frame that was stable is valid on no copy.
    #[error(
        "the log lost acknowledged records from {from:?} on: no copy holds them intact; restore from a backup"
    )]
    Damaged {
        /// The first record that is missing.
        from: Position,
    },
    /// No copy that is there can be read at a place that may hold what was acknowledged. The drives are there; only
    /// these sectors fail.
    #[error(
        "no copy of the log is readable where a record is due, copy {copy}: {source}; reconnect a drive that \
         holds another copy"
    )]
    Unreadable {
        /// One of the copies.
        copy: usize,
        /// What its drive says.
        source: IoError,
    },
    /// The drive of a copy is gone, or cannot be written.
    #[error("copy {copy} of the log: {source}; replace the drive")]
    Drive {
        /// Which copy.
        copy: usize,
        /// What its drive says.
        source: IoError,
    },
}
