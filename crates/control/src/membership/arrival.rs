//! Where a drive that joins lies, whence it comes, and what it holds.

use std::path::PathBuf;

use tier0_pool::DriveClass;
use tier0_units::ByteCount;

/// Where a drive that is to join lies.
pub(crate) struct NewPlace {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) size: Option<ByteCount>,
    pub(crate) force: bool,
    pub(crate) class: Option<DriveClass>,
}

/// Whence a drive comes that joins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Origin {
    /// It is one more.
    New,
    /// It takes the place of another member.
    Replaces { replaced: u32 },
    /// It is the drive of a lost member, and was left so.
    Returns { from: u32, content: Content },
}

impl Origin {
    /// The member that it was, or replaces.
    pub(crate) fn before(self) -> Option<u32> {
        match self {
            Origin::New => None,
            Origin::Replaces { replaced } => Some(replaced),
            Origin::Returns { from, .. } => Some(from),
        }
    }

    /// The member that it was.
    pub(crate) fn returns(self) -> Option<u32> {
        match self {
            Origin::Returns { from, .. } => Some(from),
            Origin::New | Origin::Replaces { .. } => None,
        }
    }
}

/// How the drive of a lost member was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// It was in service in this run, and has not been written to since: it holds all that was stable when it was lost.
    Unchanged,
    /// Nothing is known of what it lacks.
    Unknown,
}
