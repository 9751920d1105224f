//! Why an array cannot be created or opened.

use std::path::PathBuf;

use thiserror::Error;
use tier0_control::admin::AdminError;
use tier0_description::{DescriptionError, Mismatch};
use tier0_drive::{OpenError, SystemUse};
use tier0_plan::{ConsentNeeded, PlanError};
use tier0_pool::PoolError;
use uuid::Uuid;

/// An error of the array as a whole.
#[derive(Debug, Error)]
pub enum ArrayError {
    /// The description is wrong.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// The description is not that of what is there.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// A pool cannot be as it is described, or is not what its record says.
    #[error(transparent)]
    Plan(PlanError),
    /// Consent is needed, and not given.
    #[error(transparent)]
    Consent(#[from] ConsentNeeded),
    /// A drive cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// What lies where a drive should is none.
    #[error("drive {drive:?}: {path:?} is neither a regular file nor a block device; correct its path")]
    NotADrive {
        /// Its name.
        drive: String,
        /// Its path.
        path: PathBuf,
    },
    /// What a drive is to lie on is used by the system.
    #[error("drive {drive:?} cannot use {path:?}: {usage}, or name another file or device")]
    InUse {
        /// Its name.
        drive: String,
        /// Its path.
        path: PathBuf,
        /// By what.
        usage: SystemUse,
    },
    /// The flash cache cannot be divided among the shards.
    #[error("pool {pool:?}: {fact}")]
    FlashCacheTooSmall {
        /// The pool.
        pool: String,
        /// A sentence.
        fact: String,
    },
    /// A drive's metadata cannot be read or written.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// A drive to be used holds something.
    #[error(
        "drive {drive:?} holds data of no array: it is not tier0's, or a \"tier0 create\" was interrupted; \
         choose another drive, or add --force to overwrite it"
    )]
    Foreign {
        /// Its name.
        drive: String,
    },
    /// A drive to be used belongs to an array already.
    #[error(
        "drive {drive:?} belongs to pool {pool:?} of array {array:?}; choose another drive, or add --force to overwrite it"
    )]
    Taken {
        /// Its name.
        drive: String,
        /// Its pool.
        pool: String,
        /// Its array.
        array: String,
    },
    /// A drive to be used belongs to this very array already.
    #[error(
        "array {array:?} already exists: drive {drive:?} belongs to its pool {pool:?}; start it (tier0 \
         serve), or add --force to overwrite it"
    )]
    CreatedAlready {
        /// Its name.
        drive: String,
        /// Its pool.
        pool: String,
        /// The array.
        array: String,
    },
    /// Drives are to be done without, and no other one knows the pool.
    #[error("--without {drive}: this leaves out every connected drive of pool {pool:?}; keep at least one")]
    NotWithout {
        /// One of them.
        drive: String,
        /// Their pool.
        pool: String,
    },
    /// Two pools of one name, and the array file does not tell which is meant.
    #[error(
        "there are two pools {pool:?} of this array: one on {one}, one on {other}; name the drives of the \
         right one in the array file, or remove those of the other from it and from array.search"
    )]
    TwoPools {
        /// The pool.
        pool: String,
        /// Where the drives of one lie.
        one: String,
        /// Where those of the other lie.
        other: String,
    },
    /// No drive of a pool is to be found, but of others.
    #[error(
        "pool {pool:?} of array {array:?} is on none of the connected drives: they hold {found}; correct the \
         names in the array file, or connect the pool's drives"
    )]
    OtherPool {
        /// The pool.
        pool: String,
        /// Its array.
        array: String,
        /// What the drives hold.
        found: String,
    },
    /// Too many of a pool's drives are missing.
    #[error(
        "pool {pool:?} is missing {missing}, more than {level} tolerates; reconnect the drives, or add their \
         directory to array.search; if they are lost for good, \"tier0 pool recover\" shows what is left"
    )]
    Missing {
        /// The pool.
        pool: String,
        /// The names of what is missing.
        missing: String,
        /// The RAID level.
        level: String,
    },
    /// The same drive is there twice.
    #[error("{first:?} and {second:?} are copies of the same drive; remove one of them")]
    Twice {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// What a crash left behind cannot be made good.
    #[error(
        "pool {pool:?} cannot be recovered: {fact}; \"tier0 pool recover\" shows what is left, and resumes \
         an interrupted recovery"
    )]
    Recovery {
        /// The pool.
        pool: String,
        /// The fact and the remedy.
        fact: String,
    },
    /// No drive with the write log is there.
    #[error(
        "no drive with the write log of pool {pool:?} is connected ({drives}), and it holds acknowledged writes; connect one of them; if all are lost for good, \"tier0 pool recover\" shows what is left"
    )]
    NoLog {
        /// The pool.
        pool: String,
        /// The names of the drives.
        drives: String,
    },
    /// Two drives of the file are one.
    #[error("drives {first:?} and {second:?} are the same file or device; name two different ones")]
    SameDrive {
        /// One.
        first: String,
        /// The other.
        second: String,
    },
    /// A pool that remembers is to be without checksums.
    #[error(
        "pool {pool:?}: checksums = false is allowed only on drives in memory: checksums detect torn rows \
         and stale drives; remove the field"
    )]
    WithoutChecksums {
        /// The pool.
        pool: String,
    },
    /// A drive that is there cannot be opened.
    #[error("{fact}; the drive may still be good: fix this, or start without it (--without {drive})")]
    NotOpened {
        /// Its name.
        drive: String,
        /// What the system says.
        fact: String,
    },
    /// Drives are elsewhere than they were, and one that is missing is where it was.
    #[error(
        "drive {drive:?} is missing; a drive with its identity is at its last path {path:?}, but {moved} \
         moved, so these may be copies, which must not touch the original; if it belongs to this array, name \
         its path in the array file, otherwise start without it (--without {drive})"
    )]
    LeftBehind {
        /// Its name.
        drive: String,
        /// Where it was last.
        path: PathBuf,
        /// Those that are elsewhere.
        moved: String,
    },
    /// What is missing may be there, and is not recognised.
    #[error("drive {drive:?} of pool {pool:?} is missing: {fact}, or start without it (--without {drive})")]
    Unrecognised {
        /// Its name.
        drive: String,
        /// Its pool.
        pool: String,
        /// The fact and the remedy.
        fact: String,
    },
    /// The witness knows that a pool had come further than the drives that are there.
    #[error(
        "the connected drives of pool {pool:?} have generation {has}, but the witness has seen {had}: they \
         were restored to an older state, or missed writes of {drives}; connect the newer drives, or start \
         with {options} to give their data up"
    )]
    Older {
        /// The pool.
        pool: String,
        /// The generation of the drives that are there.
        has: u64,
        /// The generation that the witness has noted.
        had: u64,
        /// The names of what the pool would do without.
        drives: String,
        /// The options that give consent.
        options: String,
    },
    /// What emptied the write log for another number of cores is still on its way to a drive.
    #[error(
        "{left} to the drives have not completed since the write log was emptied to change the number of \
         cores; find the drive that hangs, then start again"
    )]
    Unsettled {
        /// How many.
        left: String,
    },
    /// The witness does not let a pool go on without drives.
    #[error("pool {pool:?} does not start without drives that could continue on their own: {fact}")]
    NotParted {
        /// The pool.
        pool: String,
        /// What the witness says, and the remedy.
        fact: String,
    },
    /// A drive that is to join is one that this server has open and does without.
    #[error(
        "the file or device of drive {drive:?} was a drive of this array, and the server still has it open; \
         add --force to use it as a blank drive"
    )]
    HeldHere {
        /// The name that it is to have.
        drive: String,
        /// Which member it says that it is.
        member: Option<Uuid>,
    },
    /// Consent is asked for, and a witness has not made it needless.
    #[error("{error}; {hint}")]
    Witnessed {
        /// What consent is asked for.
        error: Box<ArrayError>,
        /// What the witness says.
        hint: String,
    },
    /// Consent to do without a drive that the array does not have.
    #[error(
        "--without {drive}: the array has no such drive; it has {known} (write paths with a slash), and \
         \"tier0 check\" lists missing drives"
    )]
    UnknownDrive {
        /// What was named.
        drive: String,
        /// Those that it has.
        known: String,
    },
    /// Consent to do without all drives of a pool that are there.
    #[error("--without names every connected drive of pool {pool:?}; keep those that the pool needs")]
    NothingLeft {
        /// The pool.
        pool: String,
    },
    /// Consent to do without what lies at a path at which nothing lies.
    #[error(
        "--without {path:?}: no drive of this array is there; name a drive that \"tier0 check\" lists as missing"
    )]
    NothingThere {
        /// The path.
        path: String,
    },
    /// Another error, and what may have to do with it.
    #[error("{error}; in addition: {hints}")]
    Hinted {
        /// The error.
        error: Box<ArrayError>,
        /// What could not be opened, and may be what is missing.
        hints: String,
    },
    /// A pool's state refuses something.
    #[error(transparent)]
    Meta(#[from] tier0_pool::MetaError),
    /// A drive file cannot be made.
    #[error(
        "cannot create drive file {path:?}: {source}; check the directory, its permissions and its free space"
    )]
    CreateFile {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Drive files do not fit the file system.
    #[error(
        "the drive files need {needed:#} in {directory:?}, but its file system has {free:#} free; free space \
         there, make the drives smaller, or choose another directory"
    )]
    NoRoom {
        /// Where they are to be made.
        directory: PathBuf,
        /// What they take.
        needed: tier0_units::ByteCount,
        /// What is free.
        free: tier0_units::ByteCount,
    },
    /// A drive cannot be used this way.
    #[error("drive {drive:?} {fact}")]
    Unusable {
        /// Its name.
        drive: String,
        /// The fact and the remedy.
        fact: String,
    },
    /// The system refuses something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
}

impl From<PlanError> for ArrayError {
    fn from(error: PlanError) -> ArrayError {
        match error {
            PlanError::Pool(error) => ArrayError::Pool(error),
            PlanError::Meta(error) => ArrayError::Meta(error),
            error => ArrayError::Plan(error),
        }
    }
}

impl ArrayError {
    /// Why the drive of this name cannot be opened.
    pub(crate) fn of_opening(drive: &str, error: OpenError) -> ArrayError {
        match error {
            OpenError::NotADrive { path } => ArrayError::NotADrive { drive: drive.to_owned(), path },
            error => error.into(),
        }
    }

    /// The same where drives are missing, with what could not be opened and may be one of them.
    pub(crate) fn with_hints(self, hints: &[String]) -> ArrayError {
        match self {
            error @ (ArrayError::Missing { .. }
            | ArrayError::NoLog { .. }
            | ArrayError::Mismatch(Mismatch::NoPool { .. })
            | ArrayError::Consent(_)
            | ArrayError::Older { .. }
            | ArrayError::Witnessed { .. }) => {
                ArrayError::Hinted { error: Box::new(error), hints: hints.join("; ") }
            }
            error => error,
        }
    }

    /// Whether no drive of a pool was found at all, as before it is created.
    pub fn is_without_pool(&self) -> bool {
        match self {
            ArrayError::Hinted { error, .. } => error.is_without_pool(),
            ArrayError::Mismatch(Mismatch::NoPool { .. }) => true,
            _ => false,
        }
    }

    /// Whether a creation that may overwrite what drives hold would go on.
    pub fn is_about_content(&self) -> bool {
        use ArrayError::{CreatedAlready, Foreign, Pool, Taken};
        matches!(self, CreatedAlready { .. } | Foreign { .. } | Taken { .. } | Pool(_))
    }

    /// Whether what the file, the request or the drives say is wrong, as that names a drive which another process has,
    /// and not what the system or a device refuses.
    pub fn is_input(&self) -> bool {
        if let ArrayError::Hinted { error, .. } = self {
            return error.is_input();
        }
        use tier0_drive::OpenError::System;
        if let ArrayError::CreateFile { source, .. } | ArrayError::Open(System { source, .. }) = self {
            return is_wrong_path(source);
        }
        if let ArrayError::Pool(error) = self {
            return !error.is_failure();
        }
        let failed = matches!(
            self,
            ArrayError::System { .. } | ArrayError::NoRoom { .. } | ArrayError::Unsettled { .. }
        );
        !failed
    }
}

/// Whether the system says that a path is wrong, or that this process may not use it.
fn is_wrong_path(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), NotFound | NotADirectory | PermissionDenied | ReadOnlyFilesystem)
}

impl From<ArrayError> for AdminError {
    /// What the system or a drive refuses has failed; what else is wrong is in the request.
    fn from(error: ArrayError) -> AdminError {
        use ArrayError::{CreatedAlready, Foreign, HeldHere, Taken};
        match error {
            CreatedAlready { .. } | Foreign { .. } | HeldHere { .. } | Taken { .. } => {
                AdminError::Held(error.to_string())
            }
            error if error.is_input() => AdminError::Refused(error.to_string()),
            error => AdminError::Failed(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use tier0_api::AdminReply;
    use tier0_drive::OpenError;

    use super::*;

    /// A drive that was not there, or too small, ended a verb with the code of a failure while running.
    #[test]
    fn what_the_request_names_wrongly_is_refused_and_what_breaks_has_failed() {
        let missing = ArrayError::Open(OpenError::Missing { path: "/nowhere".into() });
        assert!(matches!(AdminError::from(missing), AdminError::Refused(_)));
        let busy =
            ArrayError::Open(OpenError::Busy { path: "/dev/x".into(), held: tier0_drive::HeldAs::Itself });
        assert!(matches!(AdminError::from(busy), AdminError::Refused(_)));
        let small = tier0_pool::PoolError::TooSmall { drive: "d".into(), sectors: 8, needed: 80 };
        assert!(matches!(AdminError::from(ArrayError::from(small)), AdminError::Refused(_)));
        let foreign = AdminError::from(ArrayError::Foreign { drive: "d".into() });
        assert!(matches!(AdminReply::from(foreign), AdminReply::Held(_)));
        let source = std::io::Error::other("the disk is on fire");
        let full = ArrayError::CreateFile { path: "/full".into(), source };
        assert!(matches!(AdminReply::from(AdminError::from(full)), AdminReply::Failed(_)));
    }
}
