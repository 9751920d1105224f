//! What can be wrong with a pool's drives.

use thiserror::Error;
use tier0_world::IoError;

/// An error of a pool or of one of its drives.
#[derive(Debug, Error)]
pub enum PoolError {
    /// A drive does not answer.
    #[error("drive {drive:?} fails: {source}; replace it or check its cabling and permissions")]
    Drive {
        /// Its name.
        drive: String,
        /// How it fails.
        source: IoError,
    },
    /// The superblock's two copies are both damaged.
    #[error("both copies of the superblock of drive {drive:?} are damaged; replace the drive")]
    Damaged {
        /// Its name.
        drive: String,
    },
    /// The superblock was written by a newer tier0.
    #[error(
        "drive {drive:?} has superblock format {found}, and this tier0 knows up to {known}; use a newer tier0"
    )]
    TooNew {
        /// Its name.
        drive: String,
        /// Its format.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// The superblock was written by a pre-release.
    #[error(
        "drive {drive:?} was used by a pre-release of tier0, which this one does not read; create the array anew"
    )]
    PreRelease {
        /// Its name.
        drive: String,
    },
    /// The record is larger than its place.
    #[error(
        "the pool's record of {bytes} bytes does not fit the superblock's {room}; use fewer or larger volumes"
    )]
    RecordTooLarge {
        /// Its size.
        bytes: usize,
        /// The room there is.
        room: usize,
    },
    /// A drive is smaller than the metadata and one chunklet.
    #[error(
        "drive {drive:?} has {sectors} sectors, too few for metadata and one chunklet ({needed}); use a larger drive or a smaller chunklet"
    )]
    TooSmall {
        /// Its name.
        drive: String,
        /// Its size.
        sectors: u64,
        /// What is needed.
        needed: u64,
    },
}
