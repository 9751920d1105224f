//! Why a load cannot be run on a target.

use thiserror::Error;
use tier0_units::ByteCount;

use crate::spec::SpecError;

/// Why a load cannot be run on a target.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError {
    /// The load itself is wrong, or does not fit the target.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Requests would not be aligned to the target's blocks.
    #[error(
        "stream {stream:?}: requests are aligned to {granule}, but the target's block size is {block}; use \
         sizes, start and alignment that are multiples of {block}"
    )]
    Misaligned {
        /// The stream's name.
        stream: String,
        /// What its requests are multiples of.
        granule: ByteCount,
        /// The target's block.
        block: ByteCount,
    },
    /// The world keeps too few bytes per sector to tell them apart.
    #[error(
        "verification needs at least 16 bytes of payload per sector, but this run keeps {0}; run it with payload"
    )]
    NoPayload(usize),
}
