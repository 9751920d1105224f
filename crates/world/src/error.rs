//! How an I/O fails at the seam: small, copyable, without words about drives or volumes. The layers above wrap
//! it with what they know (which drive, which address).

use thiserror::Error;

/// The failure of one I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum IoError {
    /// The operating system refused it; the value is the errno.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    Os(i32),
    /// The device could not read or write there. Why it says not: the medium may be bad, or the way to it.
    #[error("input/output error (EIO)")]
    Medium,
    /// The device did not answer in time.
    #[error("the device did not answer in time")]
    Timeout,
    /// The device is gone or was failed on purpose.
    #[error("the device is gone")]
    Gone,
    /// The range ends behind the end of the device.
    #[error("the range ends behind the end of the device")]
    OutOfRange,
    /// Address or length is no multiple of the device's block, or the buffer does not fit the length.
    #[error("address or length is not aligned to the device's blocks")]
    Misaligned,
    /// There is no space left for the write.
    #[error("no space left")]
    NoSpace,
    /// The device cannot do this at all.
    #[error("the device does not support the operation")]
    Unsupported,
    /// More drives are lost than the redundancy can make up for.
    #[error("too many drives of the set are lost")]
    RedundancyLost,
    /// The data there fail their checksum, and nothing that is left makes them right.
    #[error("the data fail their checksum and no copy that passes is left; restore them from a backup")]
    DataLost,
    /// The target is read-only.
    #[error("the target is read-only")]
    ReadOnly,
}

impl From<std::io::Error> for IoError {
    fn from(error: std::io::Error) -> IoError {
        IoError::Os(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl From<rustix::io::Errno> for IoError {
    fn from(errno: rustix::io::Errno) -> IoError {
        IoError::Os(errno.raw_os_error())
    }
}
