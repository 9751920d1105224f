//! Why a write cache cannot be recovered.

use thiserror::Error;
use tier0_integrity::IntentError;
use tier0_units::ExtentId;
use tier0_world::IoError;

use crate::HeadError;

/// The failure of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecoverError {
    /// A record cannot be understood, though its checksum is right.
    #[error("record {position} of ring {ring}: {source}; use the version of the program that wrote it")]
    Head {
        /// The ring, by its place in the arguments.
        ring: usize,
        /// The record.
        position: u64,
        /// What is wrong with it.
        source: HeadError,
    },
    /// An intent cannot be understood, though its checksum is right.
    #[error("record {position} of ring {ring}: {source}; use the version of the program that wrote it")]
    Intent {
        /// The ring, by its place in the arguments.
        ring: usize,
        /// The record.
        position: u64,
        /// What is wrong with it.
        source: IntentError,
    },
    /// An intent names a page that its ring cannot have had.
    #[error(
        "the intent at record {position} of ring {ring} names data that is not there; restore from a backup"
    )]
    IntentData {
        /// The ring, by its place in the arguments.
        ring: usize,
        /// The intent's record.
        position: u64,
    },
    /// What was replayed cannot be made stable.
    #[error("the rows that were made whole cannot be made stable: {0}; bring the missing drives back")]
    Sync(IoError),
    /// An extent with data in the log has no slot and gets none.
    #[error("{extent} has acknowledged data in the log and gets no slot: {source}; add drives to the pool")]
    Allocate {
        /// The extent.
        extent: ExtentId,
        /// Why not.
        source: IoError,
    },
    /// Pages must be taken over from other rings, and do not fit.
    #[error(
        "{pages} pages of other rings do not fit into this shard's log; open with as many shards as before"
    )]
    LogTooSmall {
        /// Pages to be taken over.
        pages: u64,
    },
    /// The log failed.
    #[error("the log takes no records: {0}; bring its drives back")]
    Log(IoError),
}
