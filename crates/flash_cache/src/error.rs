//! Why a device part cannot be used.

use thiserror::Error;
use tier0_journal::RingError;
use tier0_units::Nanos;
use tier0_world::IoError;

/// The failure of an operation on a device part.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FlashError {
    /// What the part holds does not count here.
    #[error("what the flash cache's part holds does not count: {reason}; it is made anew")]
    NotOurs {
        /// Why.
        reason: String,
    },
    /// The pieces are not whole pages inside of the drive, or the first ones have changed.
    #[error(
        "the pieces of the flash cache's part must be whole pages of 4 KiB inside of the drive, and the first ones stay"
    )]
    BadPieces,
    /// There is no room for the log and a way.
    #[error("the flash cache's part has {pages} pages at its front, which is too small; give it more pieces")]
    TooSmall {
        /// Pages of the part.
        pages: u64,
    },
    /// The drive failed.
    #[error("the drive of the flash cache failed: {0}; replace it")]
    Drive(#[from] IoError),
    /// The log failed.
    #[error("the log of the flash cache: {0}")]
    Log(#[from] RingError),
    /// The drive did not answer.
    #[error("the drive of the flash cache did not answer for {0}")]
    Slow(Nanos),
    /// There is no such device, or it is in another state than the call needs.
    #[error("device {0} of the flash cache is not in a state for this")]
    WrongState(u32),
}
