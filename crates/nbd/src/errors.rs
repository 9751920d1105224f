//! The one table between the engine's errors and those of the protocol.

use tier0_world::IoError;

use crate::protocol::Errno;

/// What a client is told.
pub(crate) fn errno_of(error: IoError) -> Errno {
    match error {
        IoError::Os(code) => Errno::from_os(code),
        IoError::OutOfRange | IoError::Misaligned => Errno::Invalid,
        IoError::NoSpace => Errno::NoSpace,
        IoError::Unsupported => Errno::NotSupported,
        IoError::ReadOnly => Errno::NotPermitted,
        IoError::Medium | IoError::Timeout | IoError::Gone | IoError::RedundancyLost | IoError::DataLost => {
            Errno::Io
        }
    }
}

/// What a server's answer means to the engine of this side.
pub(crate) fn io_error_of(errno: Errno) -> IoError {
    match errno {
        Errno::NotPermitted => IoError::ReadOnly,
        Errno::NoSpace => IoError::NoSpace,
        Errno::NotSupported => IoError::Unsupported,
        Errno::Shutdown => IoError::Gone,
        Errno::Io => IoError::Medium,
        Errno::NoMemory | Errno::Invalid | Errno::Overflow => IoError::Os(errno.os_code()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_protocol_can_say_survives_both_ways() {
        for error in [IoError::ReadOnly, IoError::NoSpace, IoError::Unsupported, IoError::Medium] {
            assert_eq!(io_error_of(errno_of(error)), error);
        }
        assert_eq!(errno_of(IoError::Os(libc::EDQUOT)), Errno::NoSpace);
        assert_eq!(errno_of(IoError::RedundancyLost), Errno::Io);
        assert_eq!(io_error_of(Errno::Invalid), IoError::Os(libc::EINVAL));
    }
}
