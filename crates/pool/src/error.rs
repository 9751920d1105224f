//! What can be wrong with a pool, its metadata or its drives.

use std::fmt::{self, Display, Formatter};

use thiserror::Error;
use tier0_journal::RingError;
use tier0_units::SectorCount;
use tier0_world::IoError;

use crate::features::Bits;
use crate::state::MetaError;

/// What drives that went on without others know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The names of the drives.
    pub drives: Vec<String>,
    /// Where each of them lies.
    pub places: Vec<String>,
    /// Their generation.
    pub generation: u64,
    /// The names of those that they went on without.
    pub without: Vec<String>,
}

impl Display for History {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let drives = self.drives.iter().zip(&self.places);
        let drives: Vec<String> = drives.map(|(name, place)| format!("{name:?} at {place:?}")).collect();
        write!(f, "{} (generation {}", drives.join(", "), self.generation)?;
        match self.without.is_empty() {
            true => f.write_str(")"),
            false => write!(f, ", without {})", names(self.without.iter())),
        }
    }
}

/// Names in a sentence.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a String>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    quoted.join(", ")
}

/// An error of a pool or of one of its drives.
#[derive(Clone, Debug, Error)]
pub enum PoolError {
    /// A drive does not answer.
    #[error("drive {drive:?} failed: {source}; replace it, or check its cabling and permissions")]
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
        "drive {drive:?} has superblock format {found}, but this tier0 supports up to {known}; use a newer tier0"
    )]
    TooNew {
        /// Its name.
        drive: String,
        /// Its format.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// A structure needs features that this tier0 does not know.
    #[error("{what} has features that this tier0 does not support ({}); use a newer tier0", Bits(*.bits))]
    Features {
        /// Which structure.
        what: String,
        /// The features, a bit each.
        bits: u64,
    },
    /// A structure has features without which it may be read, but not written.
    #[error(
        "{what} has features that allow this tier0 read access only ({}), but a start writes; use a newer tier0",
        Bits(*.bits)
    )]
    ReadOnlyFeatures {
        /// Which structure.
        what: String,
        /// The features, a bit each.
        bits: u64,
    },
    /// The superblock was written by a pre-release.
    #[error(
        "drive {drive:?} was used by a pre-release of tier0, which this version does not support; create a new array"
    )]
    PreRelease {
        /// Its name.
        drive: String,
    },
    /// A drive is smaller than the metadata and one chunklet.
    #[error(
        "drive {drive:?} holds {:#}, too small for metadata and one chunklet ({:#}); use a larger drive or a \
         smaller chunklet",
        SectorCount(*.sectors).saturating_bytes(),
        SectorCount(*.needed).saturating_bytes()
    )]
    TooSmall {
        /// Its name.
        drive: String,
        /// Its size in sectors.
        sectors: u64,
        /// What is needed, sectors.
        needed: u64,
    },
    /// A drive is smaller than it was as a member, and the pool cannot do without it.
    #[error(
        "drive {drive:?} has shrunk: it holds {:#}, and held {:#} when it became a member of the pool, which cannot be opened without it; restore its end or connect the drives that are missing",
        SectorCount(*.sectors).saturating_bytes(),
        SectorCount(*.before).saturating_bytes()
    )]
    Shrunk {
        /// Its name.
        drive: String,
        /// Its size in sectors.
        sectors: u64,
        /// What it had, sectors.
        before: u64,
    },
    /// More drives than a superblock can name.
    #[error(
        "the superblock has no space for another drive: too many drives were members of the pool (removed \
         ones included), or their names are too long; use shorter names, or move the data to a new pool"
    )]
    LabelTooLarge,
    /// A change that contradicts the pool's state.
    #[error("{0}")]
    Refused(#[from] MetaError),
    /// A change too large for the journal.
    #[error("a metadata change of {bytes} bytes exceeds the limit of {max}; split it")]
    ChangeTooLarge {
        /// Its size.
        bytes: usize,
        /// The most there can be.
        max: usize,
    },
    /// Too few drives to know that nothing newer exists.
    #[error("pool {pool:?} needs at least half of its {active} drives, but has {present}; connect {missing}")]
    NoQuorum {
        /// The pool's name.
        pool: String,
        /// Drives that should be there.
        active: usize,
        /// Drives that are.
        present: usize,
        /// The names of those that are not.
        missing: String,
    },
    /// No drive with the metadata.
    #[error("no drive with the metadata of pool {pool:?} is connected; connect one of {carriers}")]
    NoCarrier {
        /// The pool's name.
        pool: String,
        /// The names of the carriers.
        carriers: String,
    },
    /// Two halves of a pool went on without each other, or some drives are of a copy of it that was served elsewhere.
    #[error(
        "split brain: the drives of pool {pool:?} ran as two groups without each other, or some belong to a \
         copy that ran elsewhere: {one}, and {other}; nothing was written; connect the right drives, or give \
         up the writes of one group: start with \"tier0 serve ARRAY --without DRIVE\" for each of its drives \
         (by path where names repeat); if neither group can start alone, \"tier0 pool recover ARRAY \
         --without DRIVE\" shows what one of them has"
    )]
    Split {
        /// The pool's name.
        pool: String,
        /// One group and its history.
        one: Box<History>,
        /// The other group and its history.
        other: Box<History>,
    },
    /// One member twice.
    #[error("drives {first:?} and {second:?} are copies of the same drive; disconnect the copy")]
    Twice {
        /// One of them.
        first: String,
        /// The other.
        second: String,
    },
    /// No checkpoint can be read.
    #[error(
        "no drive of pool {pool:?} has a valid checkpoint; connect missing drives or restore from a backup"
    )]
    NoCheckpoint {
        /// The pool's name.
        pool: String,
    },
    /// The checkpoint was written by a newer tier0.
    #[error(
        "pool {pool:?} has checkpoint format {found}, but this tier0 supports up to {known}; use a newer tier0"
    )]
    CheckpointTooNew {
        /// The pool's name.
        pool: String,
        /// The format.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// The journal cannot be read.
    #[error("the metadata journal of pool {pool:?}: {source}")]
    Journal {
        /// The pool's name.
        pool: String,
        /// What is wrong.
        source: RingError,
    },
    /// The journal does not go on from the newest checkpoint that can be read.
    #[error(
        "the metadata journal of pool {pool:?} does not continue from the checkpoint: {fact}; connect \
         missing drives, or restore from a backup"
    )]
    JournalGap {
        /// The pool's name.
        pool: String,
        /// What does not fit.
        fact: String,
    },
    /// A record that contradicts those before it.
    #[error(
        "record {position} of the metadata journal of pool {pool:?} is invalid: {fact}; use a newer tier0 if \
         one wrote it, or restore from a backup"
    )]
    BadRecord {
        /// The pool's name.
        pool: String,
        /// The record's position.
        position: u64,
        /// Why.
        fact: String,
    },
    /// The caller that opens the pool refuses its state.
    #[error("{fact}")]
    Unopenable {
        /// The fact and the remedy.
        fact: String,
    },
    /// The pool was closed while a change waited.
    #[error("the pool was closed before its metadata was stable; start the array again")]
    Closed,
    /// No drive is left that could take a change.
    #[error(
        "no drive of pool {pool:?} accepts metadata any more; reconnect its drives, and start the array again"
    )]
    Failed {
        /// The pool's name.
        pool: String,
    },
}

impl PoolError {
    /// Whether a drive or the metadata have failed, and not what was asked of the pool is wrong.
    pub fn is_failure(&self) -> bool {
        matches!(
            self,
            PoolError::Drive { .. }
                | PoolError::Damaged { .. }
                | PoolError::Failed { .. }
                | PoolError::Closed
        )
    }
}
