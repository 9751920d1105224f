//! Why a write cache cannot be recovered.

use thiserror::Error;
use tier0_integrity::IntentError;
use tier0_units::ExtentId;
use tier0_world::IoError;

use crate::RecordHeaderError;

/// The failure of a recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RecoverError {
    /// A record cannot be understood, though its checksum is right.
    #[error("record {position} of the log: {source}; use the version of the program that wrote it")]
    Header {
        /// The record.
        position: u64,
        /// What is wrong with it.
        source: RecordHeaderError,
    },
    /// An intent cannot be understood, though its checksum is right.
    #[error("record {position} of the log: {source}; use the version of the program that wrote it")]
    Intent {
        /// The record.
        position: u64,
        /// What is wrong with it.
        source: IntentError,
    },
    /// An intent names a page that its ring cannot have had.
    #[error("the intent at record {position} of the log names data that is not there; restore from a backup")]
    IntentData {
        /// The intent's record.
        position: u64,
    },
    /// A record is of an extent that belongs to another write cache.
    #[error(
        "record {position} of the log is of {extent}, which belongs to another part of the log; use the version of the \
         program that wrote it"
    )]
    Foreign {
        /// The record.
        position: u64,
        /// The extent.
        extent: ExtentId,
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
}
