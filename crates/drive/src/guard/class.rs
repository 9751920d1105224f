//! What an error of a drive means: whether it may pass, and what has to be done about it.

use tier0_world::IoError;

/// Kinds of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// This address cannot be read or written; the drive itself may be well.
    Medium,
    /// The drive, or the way to it, is away: it may come back, with or without its cache.
    Outage,
    /// What lies behind it is full.
    NoSpace,
    /// The command makes no sense, here or anywhere: the fault is not the drive's.
    Refused,
}

/// What `error` means.
pub(super) fn class(error: IoError) -> Class {
    match error {
        IoError::Medium | IoError::ReadOnly => Class::Medium,
        IoError::NoSpace => Class::NoSpace,
        IoError::OutOfRange
        | IoError::Misaligned
        | IoError::Unsupported
        | IoError::RedundancyLost
        | IoError::DataLost => Class::Refused,
        IoError::Os(errno) => match errno {
            // ENODATA is a medium error, EILSEQ a failed protection check (block/blk-core.c, blk_errors).
            libc::EIO | libc::ENODATA | libc::EILSEQ => Class::Medium,
            libc::ENOSPC | libc::EDQUOT => Class::NoSpace,
            // What the drive has done a thousand times it refuses now: it is being reset or resized, or its file system was
            // mounted read-only. It may pass, and says nothing of the command.
            libc::EINVAL | libc::EOPNOTSUPP | libc::ENOSYS | libc::EROFS | libc::EFBIG => Class::Medium,
            _ => Class::Outage,
        },
        IoError::Timeout | IoError::Gone => Class::Outage,
    }
}

/// The error as the layers above know it.
pub(super) fn plain(error: IoError) -> IoError {
    match (class(error), error) {
        (Class::Medium, _) => IoError::Medium,
        (Class::NoSpace, _) => IoError::NoSpace,
        (Class::Outage, IoError::Timeout | IoError::Os(libc::ETIMEDOUT)) => IoError::Timeout,
        (Class::Outage, _) => IoError::Gone,
        (Class::Refused, error) => error,
    }
}
